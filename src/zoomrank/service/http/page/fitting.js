// Shows where a collection's tree no longer fits, and lets an admin rebuild it.

import { remake, storeKey } from "./api.js";
import { ask } from "./asking.js";
import { button, changes, make, panel, quiet, refill } from "./dom.js";

/** A panel that is shown while it is needed; `done` is called after the tree was rebuilt. */
export function fitting(collection, done) {
  const element = make("div", { hidden: true, test: "collection-fitting" });
  const changed = changes(); // otherwise the next poll would close an open dialog
  let note = null; // outlives the panel
  const show = ({ crowded }) => {
    if (!changed(crowded)) return;
    refill(element, crowded.length ? crowdedPanel(collection, crowded, agreed) : note);
    element.hidden = !element.childElementCount;
  };
  const agreed = ({ edition }) => {
    const words = `The tree was rebuilt: this is version ${edition} of the catalogue.`;
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
    refill(told, quiet("The tree is being rebuilt. Rankings continue meanwhile."));
    try {
      agreed(await remake(collection));
    } catch (error) {
      open.disabled = false;
      refill(told, refusal(error));
    }
  };
  const open = button("Rebuild the tree…", () => ask(element, "remake", questionOf(collection), begin), { test: "remake" });
  const element = panel("The tree no longer fits", make("ul", {}, crowded.map((sentence) => make("li", {}, sentence))),
    quiet("Similar documents should be close together; otherwise what is learned about one says little about the others. What was learned is carried over, document by document."),
    open, told);
  return element;
}

function refusal({ status, message }) {
  const another = () => {
    storeKey("");
    location.reload(); // which asks for a key
  };
  if (status !== 403) return [make("p", {}, message)];
  return [make("p", {}, `${message} Rebuilding a tree needs a key with the role “admin”.`), button("Use another key", another, { test: "another-key" })];
}

const questionOf = (collection) => ({
  heading: `Rebuild the tree of “${collection}”?`,
  words: "Documents are arranged again by their current data. What was learned is carried over, document by document. This may take a while; rankings continue meanwhile. It cannot be undone.",
  no: "Leave it as it is",
  yes: "Rebuild it",
});
