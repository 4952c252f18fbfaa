// One experiment: its result, its arms, the result over time, and actions.

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
const OF_ARMS = ["algorithm", "parameters", "seed", "prior", "similar", "explore"]; // settings in which an arm may differ
const HEADS = ["arm", "share", "visitors", "counted", "satisfied", "difference"];

export function experimentPage(page, { collection, experiment }, signal) {
  const parts = {
    state: quiet(), says: make("ul", { class: "says", test: "experiment-says" }), arms: make("div", { class: "stack", test: "experiment-arms" }),
    actions: make("div", { class: "row", test: "experiment-actions" }),
    difference: make("div", { class: "chart", role: "img", says: "The difference over time with its interval; also in words above", test: "experiment-difference" }),
    shares: make("div", { class: "chart", role: "img", says: "Satisfied shares by arm over time; also in the table above", test: "experiment-shares" }),
    early: quiet("The charts appear after two minutes with known outcomes."),
  };
  refill(page, spread(title(experiment), parts.actions), parts.state, panel("Result", parts.says, quiet(MEANS)),
    panel("Arms", quiet("The others are compared with the first. Each links to its queries."), parts.arms), panel("Over time", parts.early, parts.difference, parts.shares));
  const state = { page, parts, collection, experiment, changed: changes() };
  state.look = async () => {
    const [found, { role }] = await Promise.all([api.experiment(collection, experiment, signal), api.role(signal)]);
    parts.state.textContent = stateOf(found);
    if (state.changed([found, role])) show(state, found, role === "admin");
  };
  keepFresh(state.look, signal, PAUSE);
}

const MEANS = "Look whenever you like: with 95 % probability all of these intervals hold, from the first visitor to the last. They describe past visitors of learners that are still learning: not the arms’ final quality, nor revenue.";

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
  return `Each visitor counts once, in order of arrival, up to the first whose outcome is still open: ${count(counted)} of ${count(came)} so far. `
    + "Counting answers as they arrive would favour the arm whose visitors are quicker.";
}

/** On a phone a row becomes a block with labelled cells. */
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

/** What an arm shows, and the settings in which arms differ. */
function about({ collection }, { collection: own, settings, stopped }, differing) {
  const { shows } = settings;
  const what = own === collection ? "the collection as it is" : shows === "order" ? "the caller's own order"
    : shows === "learned" ? "its learned ranking" : `always ${shows.join(", ")}`;
  const more = differing.filter((key) => shows === "learned" || key === "explore").map((key) => `${key} ${worded(settings[key])}`);
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
    heading: `Stop “${name}”?`, no: "Keep it running", yes: "Stop it",
    words: `Visitors of “${name}” get the collection as it is from now on, and no longer count. The other arms continue. A stopped arm cannot be restarted.`,
  };
  const promote = {
    heading: `Promote “${name}”?`, no: "Not yet", yes: "Promote it",
    words: `The experiment${ended === null ? " ends, and" : " has ended;"} “${name}” serves all visitors of “${collection}” from now on, with its settings and all that its learners know. The other arms keep what they have learned.`,
  };
  return [
    ended === null && stopped === null ? asking(state, "stop-arm", "Stop…", stop, () => api.stopExperiment(collection, experiment, name), `“${name}” is stopped.`, `stop ${name}`) : null,
    name === promoted ? null : asking(state, "promote", "Promote…", promote, () => api.promoteArm(collection, experiment, name), `“${name}” was promoted.`, `promote ${name}`)];
}

function actions(state, { ended }) {
  const { collection, experiment } = state;
  const stop = {
    heading: `Stop “${experiment}”?`, no: "Keep it running", yes: "Stop it",
    words: `All visitors of “${collection}” get the collection as it is from now on. The results stay, and an arm can still be promoted. A stopped experiment cannot be restarted.`,
  };
  const remove = {
    heading: `Remove “${experiment}”?`, no: "Keep it", yes: "Remove it",
    words: "The results are deleted, with all that its arms have learned, except for an arm that serves the collection. This cannot be undone.",
  };
  if (ended === null) return asking(state, "stop", "Stop the experiment…", stop, () => api.stopExperiment(collection, experiment), `“${experiment}” has ended.`, "stop");
  return asking(state, "remove", "Remove…", remove, async () => {
    await api.removeExperiment(collection, experiment);
    location.hash = experimentsRoute(collection);
  }, `“${experiment}” was removed.`, "remove");
}

/** A button that asks for confirmation before it acts, and then updates the page. */
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
