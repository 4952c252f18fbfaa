// Messages of the page: problems, news for screen readers, and the form for a key.

import { storeKey } from "./api.js";
import { byId, link, make, refill } from "./dom.js";

export function showProblem(error) {
  if (error.wantsKey) return askForKey(error);
  const box = byId("problem");
  if (!box.hidden && box.dataset.text === error.message) return; // otherwise it would be read out at every poll
  box.dataset.text = error.message;
  refill(box, make("strong", {}, error.message), " ", error.status === 404 ? link("Go to the overview.", "#/") : null);
  box.hidden = false;
}

export function clearProblem() {
  byId("problem").hidden = true;
  byId("key-form").hidden = true;
}

export function say(text) {
  byId("status").textContent = text;
}

function askForKey({ status, message }) {
  const form = byId("key-form");
  if (!form.hidden) return;
  byId("problem").hidden = true;
  byId("key-hint").textContent = `${message} ${status === 403
    ? "Viewing and the playground need a key with the role “read”, teaching a query from here one with “admin”." : "The operator of the service can give you one."}`;
  form.hidden = false;
  byId("key").focus();
}

export function listenForKeys(again) {
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    storeKey(byId("key").value.trim());
    byId("key").value = "";
    again();
  });
}
