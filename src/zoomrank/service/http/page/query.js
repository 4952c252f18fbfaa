// One query: what the next visitor sees and why, and what has been learned.

import * as api from "./api.js";
import { learningCurve } from "./curve.js";
import { bar, changes, documentTitle, figure, link, make, panel, quiet, refill, spread, table, title } from "./dom.js";
import { amount, chance, count, percent, plural, trail } from "./format.js";
import { keepFresh } from "./live.js";
import { documentRoute, playRoute, queryRoute } from "./routes.js";
import { slotHint, slotTable } from "./slots.js";
import { zoomTree } from "./zoomtree.js";

const MOST_NODES = 400;
const MOST_LENDERS = 20;

export function queryPage(page, { collection, query, copy }, signal) {
  const figures = make("dl", { class: "figures", test: "query-figures" });
  const ranking = make("ol", { class: "ranking", test: "query-ranking" });
  const slots = make("div", { test: "query-slots" });
  const trials = make("div", { class: "stack", test: "query-trials" });
  const tried = panel("Exploration", trials);
  const support = make("div", { class: "stack", test: "query-support" });
  const similar = panel("Similar queries", support);
  const heading = title(query);
  const play = playRoute(collection, query);
  const nothing = make("p", { hidden: true, test: "query-empty" }, "This query has not been asked yet. ",
    link("Try it in the playground", play), " and come back.");
  const ofCopy = copy === undefined ? null : make("p", { class: "note", test: "query-copy" },
    "This is the copy that learns in the playground. The query itself is unaffected. ", link("See the query itself", queryRoute(collection, query)));
  const tree = zoomTree();
  const curve = copy === undefined ? learningCurve(collection, query, signal) : null; // the log has no copies
  const body = make("div", { class: "columns", hidden: true },
    panel("What the next visitor sees", quiet("Bars: the estimated probability of a click by visitors who skip those above. Marks: the upper bound."), ranking),
    make("div", { class: "stack" }, curve?.element ?? null,
      panel("Zoom tree", quiet("Every box is a group of documents; groups that visitors like are divided further. Click a box to zoom in, the leftmost one to zoom out."), tree.element),
      similar, tried, panel("Clicks by slot", slotHint(), slots)));
  refill(page, spread(heading, link("Try it in the playground", play, { class: "button primary", test: "open-playground" })),
    ofCopy, figures, nothing, body);

  const changed = changes();
  keepFresh(async () => {
    const [found, { nodes }] = await Promise.all([api.query(collection, query, copy, signal), api.tree(collection, query, MOST_NODES, copy, signal)]);
    body.hidden = false;
    await curve?.look(); // not earlier: a chart that is drawn while hidden has the wrong width
    tree.show(nodes);
    if (!changed(found)) return;
    nothing.hidden = found.impressions > 0;
    heading.textContent = found.query; // in its normalized spelling
    refill(figures, keyNumbers(found));
    refill(ranking, found.ranking.map((item) => rankedDocument(collection, item)));
    refill(slots, slotTable(found.clicks_by_slot, found.examined_by_slot));
    tried.hidden = found.forecast === null;
    if (found.forecast !== null) refill(trials, trialsOf(found.forecast));
    similar.hidden = found.support === null;
    if (found.support !== null) refill(support, supportOf(collection, found.support));
  }, signal);
}

function keyNumbers({ impressions, satisfied, learned, abandoned, waiting, unseen }) {
  return [
    figure("impressions", count(impressions), "query-impressions"),
    figure("satisfied", `${count(satisfied)} (${percent(satisfied, learned)})`, "query-satisfied"),
    figure("left without a click", count(abandoned), "query-abandoned"),
    figure("waiting", count(waiting), "query-waiting", "No feedback yet"),
    unseen ? figure("not looked at", count(unseen), "query-unseen") : null,
  ];
}

function rankedDocument(collection, item) {
  const { estimate, bound, cap, trial } = item;
  const capped = cap !== null && cap < 1 && cap <= bound ? ", limited by its similarity to those above" : "";
  const hope = chance(bound) === chance(estimate) ? "" : `, may be as good as ${chance(bound)}`;
  const source = item.visits ? "Estimate" : "Estimate from other slots and similar documents:";
  const numbers = `${source} ${chance(estimate)}${hope}${capped}`;
  const mark = trial ? make("span", { class: "badge trial", test: "on-trial" }, "on trial") : null;
  return make("li", { test: "query-document" }, make("div", { class: "row" }, documentTitle(item), mark),
    make("p", { class: "quiet" }, trail(item.path), item.path.length ? " · " : "", link("details", documentRoute(collection, item.id), { key: `about ${item.id}`, says: `About ${item.title || item.id}` })),
    bar(estimate, numbers, bound), quiet(numbers), make("p", {}, item.why));
}

function supportOf(collection, { visitors, faith, lenders }) {
  if (!lenders.length) return [make("p", {}, "Nothing has been borrowed yet.")];
  const rows = lenders.slice(0, MOST_LENDERS).map(({ query, impressions }) =>
    [link(query, queryRoute(collection, query), { key: query, test: "lender" }), count(impressions)]);
  const like = visitors < 0.5 ? "less than one visitor" : plural(Math.round(visitors), "visitor");
  return [
    make("p", { test: "support-sentence" }, `Worth as much as ${like} of its own; borrowed from ${plural(lenders.length, "query", "queries")}, `,
      `with ${percent(faith, 1)} trust.`),
    table([lenders.length > MOST_LENDERS ? `the nearest ${MOST_LENDERS} of them` : "the nearest first", "impressions"], rows, { class: "lenders" }),
  ];
}

const sum = (slots, value) => slots.reduce((total, slot) => total + value(slot), 0);

function trialsOf({ visits, impressions_per_day: impressions, slots }) {
  const all = sum(slots, (slot) => slot.cost_per_day);
  return [
    quiet("Uncertain documents are shown on trial. The table is a forecast: ",
      `on how many of the next ${count(visits)} visits, and how many clicks that costs, if visitors click as before.`),
    table(["slot, and what is tried most", "on trial", "cost per 100 visits", "cost a day"], slots.map((slot, place) => [
      [String(place + 1), slot.tried.length ? quiet(slot.tried.map((part) => triedPart(part, visits)).join("; ")) : null],
      percent(slot.share, 1), amount(slot.cost_per_100_visits), amount(slot.cost_per_day)]), { class: "trials" }),
    make("p", { test: "trials-cost" }, `In all about ${amount(all)} ${all === 1 ? "click" : "clicks"} a day, `,
      `with about ${plural(Math.round(impressions), "impression")} a day.`),
  ];
}

function triedPart({ label, documents, visits }, all) {
  return `${label}${documents > 1 ? ` (${plural(documents, "document")})` : ""} on ${percent(visits, all)}`;
}
