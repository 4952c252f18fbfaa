// Be a visitor yourself, or send simulated ones and watch the ranking diversify.

import { catalogueOf } from "./catalogue.js";
import { satisfactionChart } from "./charts.js";
import { button, changes, choice, figure, link, make, panel, quiet, refill, spread, title } from "./dom.js";
import { count, percent, plural, trail } from "./format.js";
import { clearProblem, say, showProblem } from "./messages.js";
import { playRoute, queryRoute } from "./routes.js";
import { Simulation } from "./simulation.js";
import { strip } from "./strip.js";
import { chooseCategories, nearestTaste } from "./tastes.js";
import { ACopy, TheQuery } from "./taught.js";
import { teaching } from "./teaching.js";

const LETTERS = ["A", "B", "C"];
const WEIGHTS = [50, 30, 20];
export const DEFAULT_QUERY = "playground";

let simulation;

export const currentSimulation = () => simulation;

export function playground(page, { collection, query = DEFAULT_QUERY }, signal) {
  if (simulation?.collection !== collection || simulation.query !== query) begin(new ACopy(collection, query));
  const again = (taught) => {
    const { tastes, speed } = simulation;
    begin(taught, { tastes, speed });
    clearProblem();
    playground(page, { collection, query }, signal);
  };
  const state = { simulation, collection, query, signal, rankingChanged: changes(), chartChanged: changes(), taughtChanged: changes() };
  state.again = again;
  const parts = (state.parts = makeParts(state));
  page.replaceChildren(
    spread(title("Playground"), parts.why),
    queryForm(state),
    parts.teaching.element,
    make("div", { class: "columns" },
      panel("You are a visitor", parts.hint, parts.ranking, parts.none),
      panel("Or send visitors", parts.tastes,
        make("div", { class: "row" }, parts.start, parts.pause, make("span", { class: "quiet" }, "visitors at a time"),
          choice("Visitors at a time", [[1, "1"], [10, "10"], [100, "100"]], simulation.speed, (speed) => (state.simulation.speed = speed), "play-speed")),
        parts.figures, parts.chart, parts.strip.element)));
  simulation.addEventListener("change", () => render(state), { signal });
  render(state);
  nextVisitor(state);
  readCategories(state);
}

/** Replace the simulation by one that teaches the given learner. */
function begin(taught, more = {}) {
  simulation?.pause();
  simulation = Object.assign(new Simulation(taught), more);
  document.dispatchEvent(new Event("new-simulation"));
}

function makeParts(state) {
  const { collection, query, simulation: { taught } } = state;
  return {
    why: link("Why this ranking?", queryRoute(collection, query), { class: "button", test: "open-query" }),
    teaching: teaching(query, taught.isReal, (isReal) => {
      state.again(isReal ? new TheQuery(collection, query) : new ACopy(collection, query));
      document.querySelector("[data-testid=play-teach]").focus();
    }),
    hint: quiet(),
    ranking: make("ol", { class: "ranking play", test: "play-ranking" }),
    none: button("None of these", () => giveFeedback(state, null), { test: "play-none" }),
    tastes: make("fieldset", { test: "play-tastes" }, quiet("Reading the categories…")),
    start: button("Start", () => start(state), { class: "primary", test: "play-start" }),
    pause: button("Pause", () => pause(state), { test: "play-pause" }),
    figures: make("dl", { class: "figures" }),
    chart: make("div", { class: "chart", role: "img", says: "Share of the last 100 visitors who were satisfied", test: "play-chart" }),
    strip: strip(),
  };
}

function queryForm({ collection, query, again }) {
  const input = make("input", { id: "play-query", value: query, required: true, autocomplete: "off", test: "play-query", oninput: () => input.setCustomValidity("") });
  const go = (text) => {
    const before = location.hash;
    location.hash = playRoute(collection, text);
    if (location.hash === before) dispatchEvent(new Event("hashchange")); // the same again
  };
  const submit = (event) => {
    event.preventDefault();
    input.setCustomValidity(input.value.trim() ? "" : "Type something besides spaces.");
    if (input.reportValidity()) go(input.value);
  };
  return make("form", { onsubmit: submit }, make("label", { for: "play-query" }, "Query"), make("div", { class: "row" }, input,
    make("button", { test: "play-ask" }, "Ask"),
    button("Start again", () => again(new ACopy(collection, query)), { title: "With another copy of what the query knows now", test: "play-fresh" })));
}

async function readCategories(state) {
  const { simulation, signal } = state;
  try {
    const catalogue = (state.catalogue = await catalogueOf(state.collection, signal));
    simulation.pathOf = (item) => item.path ?? catalogue.paths.get(item.id);
    if (!simulation.tastes.length) pickTastes(state);
    else showTastes(state);
  } catch (error) {
    if (!signal.aborted) showProblem(error);
  }
}

function pickTastes(state) {
  const { categories, paths } = state.catalogue;
  const before = state.simulation.tastes;
  state.simulation.tastes = chooseCategories(categories, WEIGHTS.length, paths.size).map((category, index) => ({ ...category, weight: before[index]?.weight ?? WEIGHTS[index] }));
  showTastes(state);
}

function showTastes(state) {
  const { parts, catalogue } = state;
  const { tastes } = state.simulation;
  render(state);
  const legend = make("legend", {}, "Tastes");
  if (!tastes.length) return refill(parts.tastes, legend, quiet("Simulated visitors need named categories, and there are none. Be a visitor yourself."));
  const unknown = catalogue.total - catalogue.paths.size;
  refill(parts.tastes, legend,
    quiet("A visitor has one taste and clicks the first document in its category, sometimes one near it."),
    tastes.map((taste, index) => tasteRow(state, taste, index)),
    button("Pick others for me", () => pickTastes(state), { key: "pick", test: "play-pick-tastes" }),
    unknown > 0 ? quiet(`Simulated visitors ignore ${count(unknown)} of the documents.`) : null);
}

function tasteRow(state, taste, index) {
  const { simulation, catalogue: { categories } } = state;
  const change = (difference) => {
    simulation.tastes = simulation.tastes.with(index, { ...taste, ...difference });
    showTastes(state);
  };
  const total = simulation.tastes.reduce((sum, { weight }) => sum + weight, 0);
  const options = categories.map(({ key, path, documents }) => make("option", { selected: key === taste.key }, `${trail(path)} (${documents})`));
  return make("div", { class: "taste" }, badge({ index, levels: 0 }),
    make("select", { says: `Taste ${LETTERS[index]}`, key: `category ${index}`, test: "play-taste", onchange: ({ target }) => change(categories[target.selectedIndex]) }, options),
    make("input", {
      type: "range", max: 100, step: 5, value: taste.weight, says: `Weight of ${LETTERS[index]}`, key: `weight ${index}`, test: "play-weight",
      onchange: ({ target }) => change({ weight: Number(target.value) }),
    }),
    make("span", { class: "share" }, percent(taste.weight, total)));
}

function badge({ index, levels }) {
  return make("span", { class: `badge taste-${index}${levels ? " near" : ""}` }, levels ? `near ${LETTERS[index]}` : LETTERS[index]);
}

/** A ranking for the person at the screen. */
async function nextVisitor({ simulation, signal }) {
  if (simulation.busy || simulation.asking) return;
  simulation.asking = true;
  try {
    await simulation.ask();
  } catch (error) {
    if (!signal.aborted) showProblem(error);
  }
  simulation.asking = false;
}

async function giveFeedback(state, clicked) {
  if (!state.simulation.waiting || state.simulation.busy) return;
  try {
    const learned = await state.simulation.giveFeedback(clicked);
    clearProblem();
    say(learned ? "Learned. This is what the next visitor sees." : "The copy had expired: this is a new one.");
  } catch (error) {
    showProblem(error);
  }
  nextVisitor(state);
}

function start({ simulation, parts }) {
  clearProblem();
  simulation.start();
  parts.pause.focus(); // a disabled button would lose the focus
}

function pause({ simulation, parts }) {
  simulation.pause();
  say(`Paused after ${plural(simulation.visitors, "visitor")}.`);
  parts.start.focus();
}

function render(state) {
  const { simulation, parts } = state;
  const { running, busy, tastes, visitors, satisfied, shown } = simulation;
  parts.start.disabled = running || !tastes.length;
  parts.pause.disabled = !running;
  parts.none.disabled = busy;
  showTaught(state);
  if (state.wasBusy && !busy) nextVisitor(state);
  state.wasBusy = busy;
  if (state.rankingChanged([shown, busy, tastes])) {
    parts.hint.textContent = busy ? "Pause the simulated visitors to click yourself." : "Click what you like. The next visitor sees what was learned.";
    refill(parts.ranking, shown.map((item, slot) => shownDocument(state, item, slot)));
  }
  if (!state.chartChanged([visitors, tastes])) return;
  refill(parts.figures, figure("visitors", count(visitors), "play-visitors"),
    figure("satisfied", `${count(satisfied)} (${percent(satisfied, visitors)})`, "play-satisfied"),
    figure("of the last 100", percent(simulation.recentShare(), visitors && 1), "play-recent"));
  satisfactionChart(parts.chart, lines(simulation));
  parts.strip.show(simulation.columns);
}

/** Which learner is taught, and a link to it. */
function showTaught({ simulation: { taught }, parts, collection, query, taughtChanged }) {
  if (!taughtChanged([taught.copy, taught.spelt, taught.wasGone])) return;
  parts.why.href = queryRoute(collection, query, taught.copy);
  parts.why.hidden = !taught.isReal && !taught.copy;
  parts.teaching.show(taught);
}

function shownDocument(state, item, slot) {
  const { simulation } = state;
  const path = simulation.pathOf(item);
  const taste = nearestTaste(simulation.tastes, path);
  const colour = taste ? ` taste-${taste.index}${taste.levels ? " near" : ""}` : "";
  return make("li", {}, make("button", {
    type: "button", class: `document${colour}`, test: "play-document", key: `slot ${slot}`, "data-id": item.id, disabled: simulation.busy, onclick: () => giveFeedback(state, item.id),
  }, make("span", {}, make("span", { class: "title" }, item.title || item.id), make("span", { class: "quiet" }, trail(path))), taste && badge(taste)));
}

function lines({ points, tastes }) {
  const x = points.map((point) => point.visitors);
  const each = tastes.map((_, index) => (
    { name: LETTERS[index], colour: `taste-${index}`, dash: ["solid", "dot", "dash"][index], width: 1.5, x, y: points.map((point) => point.each[index]) }));
  return [...each, { name: "all visitors", colour: "ink", width: 3, x, y: points.map((point) => point.all) }];
}
