// The overview: collections, what visitors do, where they click, and what they asked for.

import * as api from "./api.js";
import { activityChart } from "./charts.js";
import { button, changes, choice, figure, link, make, meter, panel, quiet, refill, spread, table, title } from "./dom.js";
import { ago, count, percent, plural } from "./format.js";
import { keepFresh } from "./live.js";
import { collectionRoute, playRoute, queryRoute } from "./routes.js";

const POINTS = 60;
const PERIODS = [[600, "10 minutes"], [3600, "hour"], [86400, "day"]];
const MORE_QUERIES = 25;
const MOST_QUERIES = 1000; // that the service gives at once
let period = 600; // kept while the tab lives

export function overview(page, { collection }, signal) {
  const parts = {
    cards: make("ul", { class: "cards", test: "overview-collections" }),
    figures: make("dl", { class: "figures", test: "overview-figures" }),
    chart: make("div", { class: "chart", role: "img", says: "Satisfied visitors over time", test: "overview-activity" }),
    slots: make("div", { test: "overview-slots" }),
    queries: make("section", { class: "panel", test: "overview-queries" }),
    rest: make("div", { class: "stack" }),
  };
  const state = { collection, limit: MORE_QUERIES, parts, signal, changed: { cards: changes(), activity: changes(), queries: changes() } };
  state.look = () => refresh(state).catch(() => {}); // the next poll tells
  page.replaceChildren(heading(collection), parts.cards, parts.rest);
  keepFresh(() => refresh(state), signal);
}

function heading(collection) {
  if (collection === undefined) return title("Overview");
  return spread(title(collection), link("Open the playground", playRoute(collection), { class: "button primary", test: "open-playground" }));
}

async function refresh(state) {
  const { collection, parts, signal, changed } = state;
  const { collections } = await api.collections(signal);
  if (changed.cards(collections)) showCards(state, collections);
  if (!collections.length) return;
  const [busiest] = collections.sort((a, b) => b.impressions - a.impressions);
  const listed = collection ?? busiest.name;
  const [activity, queries] = await Promise.all([
    api.activity(collection, period, POINTS, signal), api.queries(listed, 0, state.limit, signal)]);
  // Bars that only moved on by a second are not drawn again.
  if (changed.activity({ ...activity, start: Math.floor(activity.start / activity.step) })) showActivity(parts, activity);
  const { settings } = collections.find(({ name }) => name === listed) ?? busiest;
  if (changed.queries([listed, queries])) showQueries(state, listed, queries, settings);
}

function showCards(state, collections) {
  const { parts } = state;
  refill(parts.cards, collections.map((item) => card(item, item.name === state.collection)));
  if (!collections.length) return refill(parts.rest, howToBegin());
  if (parts.rest.contains(parts.chart)) return;
  const periods = choice("Period", PERIODS, period, (chosen) => {
    period = chosen;
    state.look();
  });
  refill(parts.rest, panel(state.collection === undefined ? "Visitors of all collections" : "Visitors", spread(parts.figures, periods), parts.chart),
    make("div", { class: "columns" }, panel("Where they click", slotHint(), parts.slots), parts.queries));
}

function card({ name, documents, queries, impressions, satisfied, abandoned, settings }, chosen) {
  const learned = satisfied + abandoned;
  return make("li", { class: chosen ? "card chosen" : "card" },
    link(name, collectionRoute(name), { class: "title", key: name, "aria-current": chosen ? "true" : undefined }),
    quiet(`${plural(documents, "document")}, ${plural(queries, "query", "queries")}, ${plural(settings.slots, "slot")}`),
    make("p", {}, plural(impressions, "impression")),
    learned ? meter(satisfied / learned, `${percent(satisfied, learned)} satisfied`) : quiet("no feedback yet"),
    link("Playground", playRoute(name), { key: `${name} play` }));
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

function showActivity(parts, activity) {
  const [satisfied, left] = [sum(activity.satisfied), sum(activity.abandoned)];
  refill(parts.figures,
    figure("impressions", count(sum(activity.impressions)), "overview-impressions"),
    figure("satisfied", percent(satisfied, satisfied + left), "overview-satisfied"),
    figure("left without a click", percent(left, satisfied + left), "overview-abandoned"));
  activityChart(parts.chart, activity);
  const clicks = activity.clicks_by_slot.map(sum);
  const examined = clicks.map((_, slot) => satisfied + left - sum(clicks.slice(0, slot)));
  refill(parts.slots, slotTable(clicks, examined));
}

export const slotHint = () => quiet("Of the visitors who clicked nothing above a slot, the share who clicked there.");

export function slotTable(clicks, examined) {
  return table(["slot", "clicks", "click rate"], clicks.map((number, slot) => [String(slot + 1), count(number),
    meter(examined[slot] > 0 ? number / examined[slot] : 0, percent(number, examined[slot]))]), { class: "slots" });
}

function aboutQueries({ similar, fold }) {
  return quiet(fold ? "Queries that differ only in case, spaces or Unicode form are one." : "Every spelling is a query of its own.", " ",
    similar !== "off" ? `Those that are alike by their ${similar} lend each other what they have seen.` : "Each query learns alone.");
}

function showQueries(state, name, { queries, total }, settings) {
  const rows = queries.map(({ query, impressions, satisfied, learned, last }) => [
    link(query, queryRoute(name, query), { key: query, test: "query-link" }),
    count(impressions), percent(satisfied, learned), ago(last)]);
  const more = () => {
    state.limit += MORE_QUERIES;
    state.look();
  };
  refill(state.parts.queries, make("h2", {}, state.collection === undefined ? `Queries of ${name}` : "Queries"), aboutQueries(settings),
    total ? table(["query", "impressions", "satisfied", "last"], rows, { class: "queries" }) : howToRank(name),
    total > queries.length && state.limit < MOST_QUERIES ? button(`More of ${count(total)} queries`, more, { key: "more", test: "more-queries" }) : null);
}

function howToRank(name) {
  return make("p", {}, "Nobody has asked yet. ", link("Try it in the playground", playRoute(name), { key: "first" }));
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
