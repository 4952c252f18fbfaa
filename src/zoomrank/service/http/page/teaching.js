// Says who learns in the playground, and lets whoever is sure of it teach the query itself.

import { button, make, refill } from "./dom.js";
import { plural } from "./format.js";

/** A sentence and a choice; `choose` is told whether the query itself is to learn. */
export function teaching(query, isReal, choose) {
  const said = make("p", { "aria-live": "polite", test: "play-who" });
  const box = make("input", { type: "checkbox", test: "play-teach", onclick: (event) => {
    if (isReal) return choose(false);
    event.preventDefault(); // not before it is confirmed
    question.showModal();
  } });
  box.checked = isReal;
  const question = confirmation(query, () => choose(true));
  const element = make("section", { class: `panel taught${isReal ? " real" : ""}`, says: "Who learns" },
    said, make("label", { class: "check" }, box, "Teach the real query"), question);
  return { element, box, show: (taught) => refill(said, isReal ? whereItGoes(query) : aboutCopy(taught)) };
}

const whereItGoes = (query) => `Clicks here are learned by “${query}”, for every visitor.`;

function aboutCopy({ query, spelt = query, impressions, wasGone }) {
  const kept = "Nothing reaches the real query, and the copy is thrown away when nobody has used it for 15 minutes.";
  if (impressions === undefined) return `A copy of “${spelt}” learns here. ${kept}`;
  const before = wasGone ? "The copy from before was gone, with what it had learned. " : "";
  if (impressions === 0) return `${before}Nobody has asked “${spelt}” yet, so a copy that knows nothing learns here. ${kept}`;
  return `${before}A copy of “${spelt}” learns here. It began with ${plural(impressions, "impression")} of the query. ${kept}`;
}

function confirmation(query, agree) {
  const close = () => dialog.close();
  const dialog = make("dialog", { "aria-labelledby": "teach-question", test: "teach-question" },
    make("h2", { id: "teach-question" }, `Teach “${query}”?`),
    make("p", {}, `Clicks here will be learned by “${query}”, for every visitor. Those of visitors that you send will be, too. This cannot be undone.`),
    make("div", { class: "row" },
      button("Leave it alone", close, { autofocus: true, test: "teach-cancel" }),
      button("Teach the real query", () => {
        close();
        agree();
      }, { class: "primary", test: "teach-confirm" })));
  return dialog;
}
