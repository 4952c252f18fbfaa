// Says who learns in the playground, and lets whoever is sure of it teach the query itself.

import { ask } from "./asking.js";
import { make, refill } from "./dom.js";
import { plural } from "./format.js";

/** A sentence and a choice; `choose` is told whether the query itself is to learn. */
export function teaching(query, isReal, choose) {
  const said = make("p", { "aria-live": "polite", test: "play-who" });
  const box = make("input", { type: "checkbox", test: "play-teach", onclick: (event) => {
    if (isReal) return choose(false);
    event.preventDefault(); // not before it is confirmed
    ask(element, "teach", questionOf(query), () => choose(true));
  } });
  box.checked = isReal;
  const element = make("section", { class: `panel taught${isReal ? " real" : ""}`, says: "Who learns" },
    said, make("label", { class: "check" }, box, "Teach the real query"));
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

const questionOf = (query) => ({
  heading: `Teach “${query}”?`,
  words: `Clicks here will be learned by “${query}”, for every visitor. Those of visitors that you send will be, too. This cannot be undone.`,
  no: "Leave it alone",
  yes: "Teach the real query",
});
