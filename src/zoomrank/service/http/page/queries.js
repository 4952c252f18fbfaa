// The queries of a collection: search, order and trends.

import * as api from "./api.js";
import { button, changes, labelled, link, make, quiet, refill, table } from "./dom.js";
import { ago, chance, count, percent } from "./format.js";
import { say } from "./messages.js";
import { playRoute, queryRoute } from "./routes.js";

const MORE = 25;
const MOST = 1000; // the service's limit per request
const SORTS = [["asked", "most asked"], ["worst", "least satisfied"], ["trend", "falling most"], ["newest", "newest"]];
const LAST = 99; // effective number of answers in a recent share

/** A panel, and look(name, settings), which shows the current queries of a collection. */
export function queryList(heading, signal) {
  const asked = { search: "", sort: "asked", limit: MORE };
  const changed = changes();
  const list = make("div", { class: "stack" });
  const hint = make("div", {});
  const name = make("h2", {}, heading(undefined));
  let latest;

  const look = async (collection, settings) => {
    latest = [collection, settings];
    const request = { ...asked };
    const found = await api.queries(collection, request, signal);
    const overtaken = Object.entries(request).some(([key, value]) => asked[key] !== value);
    if (overtaken || !changed([collection, request, found])) return;
    name.textContent = heading(collection);
    refill(hint, aboutQueries(settings));
    refill(list, rowsOf(collection, found, asked), found.total > found.queries.length && asked.limit < MOST
      ? button(`More of ${count(found.total)} queries`, () => ask({ limit: asked.limit + MORE }), { key: "more", test: "more-queries" }) : null);
    if (request.search) say(`${count(found.total)} queries with “${request.search}”`);
  };
  const ask = (more) => {
    Object.assign(asked, more);
    if (latest) look(...latest).catch(() => {}); // the next poll tells
  };
  const search = make("input", { type: "search", maxlength: 200, autocomplete: "off", test: "query-search",
    oninput: () => ask({ search: search.value, limit: MORE }) });
  const sort = make("select", { test: "query-sort", onchange: () => ask({ sort: sort.value, limit: MORE }) },
    SORTS.map(([value, text]) => make("option", { value }, text)));
  const element = make("section", { class: "panel", test: "overview-queries" }, name, hint,
    make("div", { class: "row" }, labelled("Search", search), labelled("First", sort)), list);
  return { element, look };
}

function rowsOf(collection, { queries, total }, { search }) {
  if (!total && search) return quiet(`No query has “${search}” in it.`);
  if (!total) return make("p", {}, "No queries yet. ", link("Try it in the playground", playRoute(collection), { key: "first" }));
  return table(["query", "impressions", "satisfied", "trend", "last"], queries.map((row) => [
    link(row.query, queryRoute(collection, row.query), { key: row.query, test: "query-link" }),
    count(row.impressions), percent(row.satisfied, row.learned), trend(row), ago(row.last)]), { class: "queries" });
}

/** An arrow where the recent share differs from that of all by more than chance would make it. */
function trend({ recent, satisfied, learned }) {
  if (recent === null) return make("span", { class: "quiet", role: "img", says: "too early to say", title: "Fewer than a hundred answers: too early to say", test: "trend" }, "·");
  const all = satisfied / learned;
  const likely = Math.min(0.98, Math.max(0.02, all));
  const noise = 2 * Math.sqrt((likely * (1 - likely)) / LAST);
  const [arrow, word] = recent > all + noise ? ["▲", "rising"] : recent < all - noise ? ["▼", "falling"] : ["–", "steady"];
  const says = `${word}: ${chance(recent)} of the last visitors, ${chance(all)} of all`;
  return make("span", { class: `trend ${word}`, role: "img", says, title: says, test: "trend" }, arrow);
}

function aboutQueries({ similar, fold }) {
  return quiet(fold ? "Queries that differ only in case, spaces or Unicode form are treated as one." : "Every spelling is a query of its own.", " ",
    similar !== "off" ? `Queries with similar ${similar} borrow from each other.` : "Each query learns alone.");
}
