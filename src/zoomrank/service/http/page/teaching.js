// Shows which learner the playground teaches, and lets the user teach the query itself.

import { ask } from "./asking.js";
import { make, refill } from "./dom.js";
import { plural } from "./format.js";

/** A sentence and a checkbox; `choose` gets whether the query itself is taught. */
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
  const kept = "Nothing reaches the real query, and the copy is thrown away after 15 minutes without use.";
  if (impressions === undefined) return `A copy of “${spelt}” learns here. ${kept}`;
  const before = wasGone ? "The previous copy has expired, with what it had learned. " : "";
  if (impressions === 0) return `${before}“${spelt}” has not been asked yet, so an empty copy learns here. ${kept}`;
  return `${before}A copy of “${spelt}” learns here. It began with ${plural(impressions, "impression")} of the query. ${kept}`;
}

const questionOf = (query) => ({
  heading: `Teach “${query}”?`,
  words: `Clicks here will be learned by “${query}”, for every visitor. So will those of simulated visitors. This cannot be undone.`,
  no: "Cancel",
  yes: "Teach the real query",
});
