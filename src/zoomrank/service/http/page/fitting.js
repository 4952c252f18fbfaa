// Says where a collection's tree no longer fits, and lets whoever may have it made anew.

import { remake, storeKey } from "./api.js";
import { ask } from "./asking.js";
import { button, changes, make, panel, quiet, refill } from "./dom.js";

/** A panel that is there as long as it is needed; `done` is called when the tree was made anew. */
export function fitting(collection, done) {
  const element = make("div", { hidden: true, test: "collection-fitting" });
  const changed = changes(); // or an open question would be closed by the next poll
  let note = null; // stays when the panel goes
  const show = ({ crowded }) => {
    if (!changed(crowded)) return;
    refill(element, crowded.length ? crowdedPanel(collection, crowded, agreed) : note);
    element.hidden = !element.childElementCount;
  };
  const agreed = ({ edition }) => {
    const words = `The tree was made anew: it is edition ${edition} of the collection.`;
    note = make("p", { class: "panel", role: "status", test: "remade" }, words);
    show({ crowded: [] });
    done();
  };
  return { element, show };
}

function crowdedPanel(collection, crowded, agreed) {
  const told = make("div", { class: "stack", role: "alert", test: "remake-told" });
  const begin = async () => {
    open.disabled = true;
    refill(told, quiet("The tree is being made anew. Rankings go on meanwhile."));
    try {
      agreed(await remake(collection));
    } catch (error) {
      open.disabled = false;
      refill(told, refusal(error));
    }
  };
  const open = button("Make the tree anew…", () => ask(element, "remake", questionOf(collection), begin), { test: "remake" });
  const element = panel("The tree no longer fits", make("ul", {}, crowded.map((sentence) => make("li", {}, sentence))),
    quiet("Documents that are alike should stand together, or what is learned of one says little about the others. What was learned is carried over, document by document."),
    open, told);
  return element;
}

function refusal({ status, message }) {
  const another = () => {
    storeKey("");
    location.reload(); // which asks for one
  };
  if (status !== 403) return [make("p", {}, message)];
  return [make("p", {}, `${message} Making a tree anew needs a key with the role “admin”.`), button("Use another key", another, { test: "another-key" })];
}

const questionOf = (collection) => ({
  heading: `Make the tree of “${collection}” anew?`,
  words: "Documents are put in order again, by what is known of them now. What was learned is carried over, document by document. It may take a while, and rankings go on meanwhile. There is no way back to the tree of today.",
  no: "Leave it as it is",
  yes: "Make it anew",
});
