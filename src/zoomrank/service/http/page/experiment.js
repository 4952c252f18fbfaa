// One experiment: what it says, its arms, how that came about, and what can be done with it.

import * as api from "./api.js";
import { ask } from "./asking.js";
import { differenceChart, satisfactionOverTime } from "./charts.js";
import { button, changes, link, make, panel, quiet, refill, spread, title } from "./dom.js";
import { stateOf } from "./experiments.js";
import { ago, chance, count, percent } from "./format.js";
import { keepFresh } from "./live.js";
import { say, showProblem } from "./messages.js";
import { collectionRoute, experimentsRoute } from "./routes.js";

const PAUSE = 5000;
const OF_ARMS = ["algorithm", "parameters", "seed", "prior", "similar", "explore"]; // settings that an arm may have of its own
const HEADS = ["arm", "share", "visitors", "counted", "satisfied", "difference"];

export function experimentPage(page, { collection, experiment }, signal) {
  const parts = {
    state: quiet(), says: make("ul", { class: "says", test: "experiment-says" }), arms: make("div", { class: "stack", test: "experiment-arms" }),
    actions: make("div", { class: "row", test: "experiment-actions" }),
    difference: make("div", { class: "chart", role: "img", says: "The difference over time with its interval; also in words above", test: "experiment-difference" }),
    shares: make("div", { class: "chart", role: "img", says: "Satisfied shares by arm over time; also in the table above", test: "experiment-shares" }),
    early: quiet("A picture needs visitors of two minutes of whom all is known."),
  };
  refill(page, spread(title(experiment), parts.actions), parts.state, panel("What it says", parts.says, quiet(MEANS)),
    panel("Arms", quiet("The others are compared with the first. Each leads to its queries."), parts.arms), panel("How that came about", parts.early, parts.difference, parts.shares));
  const state = { page, parts, collection, experiment, changed: changes() };
  state.look = async () => {
    const [found, { role }] = await Promise.all([api.experiment(collection, experiment, signal), api.role(signal)]);
    parts.state.textContent = stateOf(found);
    if (state.changed([found, role])) show(state, found, role === "admin");
  };
  keepFresh(state.look, signal, PAUSE);
}

const MEANS = "Look whenever you like: with a chance of 95 % none of these intervals misses, from the first visitor to the last. They are about those who came, and learners that still learn: not about what they will be worth, nor about revenue.";

function show(state, found, may) {
  const { parts } = state;
  refill(parts.says, found.says.map((sentence) => make("li", {}, sentence)));
  refill(parts.arms, armTable(state, found, may), quiet(whoCounts(found)));
  refill(parts.actions, may ? actions(state, found) : null);
  const drawn = found.points.length > 1;
  parts.early.hidden = drawn;
  parts.difference.hidden = parts.shares.hidden = !drawn;
  if (!drawn) return;
  differenceChart(parts.difference, found);
  satisfactionOverTime(parts.shares, found);
}

function whoCounts({ arms }) {
  const [came, counted] = ["visitors", "counted"].map((key) => arms.reduce((sum, arm) => sum + arm[key], 0));
  return `Each visitor counts once, in the order in which they came, up to the first of whom it is not known yet what becomes of her: ${count(counted)} of ${count(came)} so far. `
    + "To count answers as they come would favour the arm whose visitors are quicker.";
}

/** On a phone a row becomes a block, in which each cell says what it is. */
function armTable(state, found, may) {
  const differing = OF_ARMS.filter((key) => new Set(found.arms.map(({ settings }) => JSON.stringify(settings[key]))).size > 1);
  return make("table", { class: "arms" }, make("thead", {}, make("tr", {}, HEADS.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, found.arms.map((arm, place) => {
      const cells = [
        [link(arm.name, collectionRoute(arm.collection), { class: "title", key: arm.name, test: "arm-link" }), quiet(about(state, arm, differing)),
          may ? make("div", { class: "row" }, armActions(state, found, arm)) : null],
        chance(arm.share), count(arm.visitors), count(arm.counted), percent(arm.satisfied, arm.counted), place ? interval(arm.difference) : "–"];
      return make("tr", { test: "experiment-arm" }, cells.map((cell, column) => make("td", { "data-head": HEADS[column] }, cell)));
    })));
}

/** What an arm shows, in words, and in which settings arms differ. */
function about({ collection }, { collection: own, settings, stopped }, differing) {
  const { shows } = settings;
  const what = own === collection ? "the collection as it is" : shows === "order" ? "the order that the caller brings"
    : shows === "learned" ? "what it has learned" : `always ${shows.join(", ")}`;
  const more = differing.filter((key) => shows === "learned" || !["algorithm", "parameters"].includes(key)).map((key) => `${key} ${worded(settings[key])}`);
  return [what, ...more, ...(stopped === null ? [] : [`stopped ${ago(stopped)}`])].join("; ");
}

function worded(value) {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value).map(([name, one]) => `${name} = ${one}`).join(", ") || "as they are";
}

const points = (share) => `${share > 0 ? "+" : share < 0 ? "−" : "±"}${Math.abs(100 * share).toFixed(1)}`;

function interval(difference) {
  if (difference === null) return "not known yet";
  return [`${points(difference.estimate)} points`, quiet(`${points(difference.low)} to ${points(difference.high)}`)];
}

function armActions(state, { ended, promoted }, { name, stopped }) {
  const { collection, experiment } = state;
  const stop = {
    heading: `Stop “${name}”?`, no: "Let it go on", yes: "Stop it",
    words: `Who belongs to “${name}” meets the collection as it is from now on, and counts no more. The other arms go on. A stopped arm cannot begin again.`,
  };
  const promote = {
    heading: `Promote “${name}”?`, no: "Not yet", yes: "Promote it",
    words: `The experiment${ended === null ? " ends, and" : " has ended;"} “${name}” serves all visitors of “${collection}” from now on, with its settings and with all that its learners know. What the other arms know stays with them.`,
  };
  return [
    ended === null && stopped === null ? asking(state, "stop-arm", "Stop…", stop, () => api.stopExperiment(collection, experiment, name), `“${name}” is stopped.`, `stop ${name}`) : null,
    name === promoted ? null : asking(state, "promote", "Promote…", promote, () => api.promoteArm(collection, experiment, name), `“${name}” was promoted.`, `promote ${name}`)];
}

function actions(state, { ended }) {
  const { collection, experiment } = state;
  const stop = {
    heading: `Stop “${experiment}”?`, no: "Let it go on", yes: "Stop it",
    words: `All visitors of “${collection}” meet the collection as it is from now on. What was found out stays, and an arm can still be promoted. A stopped experiment cannot begin again.`,
  };
  const remove = {
    heading: `Remove “${experiment}”?`, no: "Keep it", yes: "Remove it",
    words: "What was found out is gone then, with what the learners of its arms know, but for an arm that serves the collection. There is no way back.",
  };
  if (ended === null) return asking(state, "stop", "Stop the experiment…", stop, () => api.stopExperiment(collection, experiment), `“${experiment}” has ended.`, "stop");
  return asking(state, "remove", "Remove…", remove, async () => {
    await api.removeExperiment(collection, experiment);
    location.hash = experimentsRoute(collection);
  }, `“${experiment}” was removed.`, "remove");
}

/** A button that asks before it acts, and shows what has become of it. */
function asking(state, test, text, question, act, done, key) {
  const agreed = async () => {
    try {
      await act();
      say(done);
      if (state.page.contains(state.parts.says)) await state.look();
    } catch (error) {
      showProblem(error);
    }
  };
  return button(text, () => ask(state.page, test, question, agreed), { test, key });
}
