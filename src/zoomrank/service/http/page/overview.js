// The overview of all collections or of one: activity, clicks by slot, and queries.

import * as api from "./api.js";
import { activityChart } from "./charts.js";
import { changes, choice, figure, link, make, meter, panel, quiet, refill, spread, title } from "./dom.js";
import { fitting } from "./fitting.js";
import { ago, count, percent, plural } from "./format.js";
import { keepFresh } from "./live.js";
import { queryList } from "./queries.js";
import { replicas } from "./replicas.js";
import { armOf, collectionRoute, documentsRoute, experimentRoute, experimentsRoute, playRoute } from "./routes.js";
import { slotHint, slotTable } from "./slots.js";

const DAY = 86400;
const PERIODS = [[3600, "hour"], [DAY, "day"], [7 * DAY, "7 days"], [30 * DAY, "30 days"], [90 * DAY, "90 days"]];
const POINTS = { 3600: 60, [DAY]: 48, [7 * DAY]: 84, [30 * DAY]: 60, [90 * DAY]: 90 };
let period = 3600; // kept while the tab lives

export function overview(page, { collection }, signal) {
  const parts = {
    about: make("div", { class: "stack", test: collection === undefined ? undefined : "collection-about" }),
    experiment: make("div", { class: "stack", test: "collection-experiment" }),
    figures: make("dl", { class: "figures", test: "overview-figures" }),
    chart: make("div", { class: "chart", role: "img", says: "Satisfied visitors over time", test: "overview-activity" }),
    nothing: quiet("No visitors in this period. Choose a longer one, or wait: this page updates by itself."),
    slots: make("div", { test: "overview-slots" }),
    queries: queryList((name) => (collection === undefined && name ? `Queries of ${name}` : "Queries"), signal),
    rest: make("div", { class: "stack" }),
    replicas: replicas(),
  };
  parts.nothing.dataset.testid = "activity-empty";
  const state = { collection, parts, signal, changed: { about: changes(), activity: changes(), experiment: changes() } };
  state.look = () => refresh(state).catch(() => {}); // the next poll tells
  parts.fitting = fitting(collection, state.look);
  page.replaceChildren(heading(collection), parts.replicas.note, parts.experiment, parts.about, parts.fitting.element, parts.rest, parts.replicas.element);
  keepFresh(() => refresh(state), signal);
}

function heading(collection) {
  if (collection === undefined) return title("Overview");
  const arm = armOf(collection);
  return spread(title(arm ? arm.arm : collection), make("div", { class: "row" },
    arm ? null : link("Experiments", experimentsRoute(collection), { class: "button", test: "open-experiments" }),
    link("Documents", documentsRoute(collection), { class: "button", test: "open-documents" }),
    link("Open the playground", playRoute(collection), { class: "button primary", test: "open-playground" })));
}

async function refresh(state) {
  const { collection, parts, signal, changed } = state;
  const [{ collections }, experiment, serving] = await Promise.all([api.collections(signal), experimentOf(collection, signal),
    collection === undefined ? api.replicas(signal) : undefined]);
  if (serving) parts.replicas.show(serving);
  const here = experiment?.arm ?? collections.find(({ name }) => name === collection);
  if (changed.about(collection === undefined ? collections : [here, collections.length])) showAbout(state, collections, here);
  if (here) parts.fitting.show(here);
  if (changed.experiment(experiment?.words)) refill(parts.experiment, experiment?.words ? noteOf(experiment.words) : null);
  if (!parts.rest.contains(parts.chart)) return;
  const busiest = here ?? [...collections].sort((a, b) => b.impressions - a.impressions)[0];
  const [activity] = await Promise.all([api.activity(collection, period, POINTS[period], signal), parts.queries.look(busiest.name, busiest.settings)]);
  // Bars that only moved on by a second are not drawn again.
  if (changed.activity({ ...activity, start: Math.floor(activity.start / activity.step) })) showActivity(parts, activity);
}

/** The note on experiments: this is an arm of one, or one is running. */
async function experimentOf(collection, signal) {
  const arm = armOf(collection);
  if (arm) return { arm: await api.collection(collection, signal), words: { before: `This is the arm “${arm.arm}” of the experiment `, home: arm.home, name: arm.experiment } };
  if (collection === undefined) return undefined;
  const { experiments } = await api.experiments(collection, signal).catch(unlessUnknown);
  const running = experiments.find(({ ended }) => ended === null);
  return { words: running && { before: "An experiment is running: ", home: collection, name: running.name } };
}

function unlessUnknown(error) {
  if (error.status !== 404) throw error;
  return { experiments: [] }; // unknown collection, which is reported elsewhere
}

const noteOf = ({ before, home, name }) => make("p", { class: "note" }, before, link(name, experimentRoute(home, name), { key: "experiment", test: "experiment-note" }), ".");

function showAbout(state, collections, here) {
  const { parts, collection } = state;
  if (!collections.length) return refill(parts.rest, howToBegin());
  if (collection !== undefined && !here) return refill(parts.rest, unknown(collection, collections));
  refill(parts.about, here ? ofOne(here) : make("ul", { class: "cards", test: "overview-collections" }, collections.map(card)));
  if (parts.rest.contains(parts.chart)) return;
  const periods = choice("Period", PERIODS, period, (chosen) => {
    period = chosen;
    state.look();
  }, "period");
  refill(parts.rest, panel(here ? "Visitors" : "Visitors of all collections", spread(parts.figures, periods), parts.chart, parts.nothing),
    make("div", { class: "columns" }, panel("Clicks by slot", slotHint(), parts.slots), parts.queries.element));
}

function ofOne({ documents, depth, edition, queries, impressions, satisfied, abandoned, settings, created }) {
  const learned = satisfied + abandoned;
  return [
    make("dl", { class: "figures" }, figure("documents", count(documents), "collection-documents"), figure("queries", count(queries), "collection-queries"),
      figure("impressions", count(impressions), "collection-impressions"),
      figure("satisfied", learned ? percent(satisfied, learned) : "not known yet", "collection-satisfied", "Of the visitors with a known outcome")),
    quiet(`${plural(settings.slots, "slot")}, ${settings.algorithm}, ${plural(depth, "level")} of categories; made ${ago(created)}${changedSince(edition)}.`)];
}

const changedSince = (edition) => (edition === 0 ? "" : edition === 1 ? ", changed once" : `, changed ${count(edition)} times`);

function card({ name, documents, queries, impressions, satisfied, abandoned, settings }) {
  const learned = satisfied + abandoned;
  return make("li", { class: "card" }, link(name, collectionRoute(name), { class: "title", key: name }),
    quiet(`${plural(documents, "document")}, ${plural(queries, "query", "queries")}, ${plural(settings.slots, "slot")}`),
    make("p", {}, plural(impressions, "impression")),
    learned ? meter(satisfied / learned, `${percent(satisfied, learned)} satisfied`) : quiet("no feedback yet"),
    make("div", { class: "row" }, link("Documents", documentsRoute(name), { key: `${name} documents` }), link("Playground", playRoute(name), { key: `${name} play` })));
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

function showActivity(parts, activity) {
  const [shown, satisfied, left] = [activity.impressions, activity.satisfied, activity.abandoned].map(sum);
  refill(parts.figures,
    figure("impressions", count(shown), "overview-impressions"),
    figure("satisfied", percent(satisfied, satisfied + left), "overview-satisfied"),
    figure("left without a click", percent(left, satisfied + left), "overview-abandoned"));
  parts.nothing.hidden = shown + satisfied + left > 0;
  parts.chart.hidden = !parts.nothing.hidden;
  if (!parts.chart.hidden) activityChart(parts.chart, activity);
  const clicks = activity.clicks_by_slot.map(sum);
  const examined = clicks.map((_, slot) => satisfied + left - sum(clicks.slice(0, slot)));
  refill(parts.slots, slotTable(clicks, examined));
}

function unknown(collection, collections) {
  return panel("Unknown collection", make("p", { test: "collection-unknown" }, `There is no collection “${collection}”. These exist:`),
    make("ul", {}, collections.map(({ name }) => make("li", {}, link(name, collectionRoute(name))))));
}

function howToBegin() {
  const key = api.storedKey() ? ' -H "Authorization: Bearer $KEY"' : "";
  const command = `curl ${new URL("v1/collections", document.baseURI)}${key} -H 'Content-Type: application/json' -d '{
  "name": "pages", "settings": {"slots": 2}, "documents": [
    {"id": "owl", "title": "Owls", "path": ["Animals", "Birds"]},
    {"id": "bat", "title": "Bats", "path": ["Animals", "Mammals"]},
    {"id": "oak", "title": "Oaks", "path": ["Plants", "Trees"]}]}'`;
  return panel("No collections yet", make("p", { test: "overview-empty" },
    "Make one from documents with categories, vectors or texts; it appears here by itself:"),
  make("pre", { tabindex: 0 }, command));
}
