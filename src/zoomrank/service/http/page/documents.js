// The catalogue of a collection with search and pages; and a single document with the queries that show it.

import * as api from "./api.js";
import { button, documentTitle, figure, labelled, link, make, panel, quiet, refill, table, title } from "./dom.js";
import { count, percent, plural, trail } from "./format.js";
import { keepFresh } from "./live.js";
import { showProblem } from "./messages.js";
import { documentRoute, queryRoute } from "./routes.js";

const PAGE = 50;
const PAUSE = 200; // milliseconds after a keystroke before the search starts

export function documentsPage(page, { collection }, signal) {
  const asked = { search: "", offset: 0 };
  const told = make("p", { class: "quiet", role: "status", test: "documents-told" });
  const list = make("div", { test: "documents-list" });
  const turn = make("div", { class: "row" });
  const look = async () => {
    const request = { ...asked };
    const found = await api.documents(collection, { ...request, limit: PAGE }, signal);
    if (request.search !== asked.search || request.offset !== asked.offset) return; // overtaken
    show(found);
  };
  const ask = (more) => {
    Object.assign(asked, more);
    look().catch((error) => signal.aborted || showProblem(error));
  };
  const show = ({ documents, total }) => {
    const { search, offset } = asked;
    const which = search ? ` with “${search}” in title, id or address` : ", in the order of the tree";
    told.textContent = documents.length ? `${count(offset + 1)} to ${count(offset + documents.length)} of ${plural(total, "document")}${which}`
      : search ? `No document has “${search}” in its title, id or address.` : "Nothing here.";
    refill(list, documents.length ? table(["document", "category"], documents.map((item) => [
      link(item.title || String(item.id), documentRoute(collection, item.id), { key: String(item.id), test: "document-link" }),
      make("span", { class: "quiet" }, trail(item.path))]), { class: "catalogue" }) : null);
    const pages = [["Back", offset - PAGE, offset > 0], ["Next", offset + PAGE, offset + PAGE < total]];
    refill(turn, pages.map(([name, at, there]) => (offset || there ? button(name, () => ask({ offset: Math.max(0, at) }), { disabled: !there, key: name, test: `documents-${name.toLowerCase()}` }) : null)));
  };
  let pause;
  const search = make("input", { type: "search", maxlength: 200, autocomplete: "off", test: "document-search", oninput: () => {
    clearTimeout(pause);
    pause = setTimeout(() => ask({ search: search.value.trim(), offset: 0 }), PAUSE);
  } });
  refill(page, title("Documents"), panel(`Catalogue of ${collection}`, make("div", { class: "row" }, labelled("Search title, id or address", search)), told, list, turn));
  look().catch((error) => signal.aborted || showProblem(error));
}

export function documentPage(page, { collection, document }, signal) {
  const heading = title(document);
  const about = make("div", { class: "stack", test: "document-about" });
  const queries = make("div", { class: "stack", test: "document-queries" });
  refill(page, heading, about);
  keepFresh(async () => {
    const found = await api.document(collection, document, signal);
    heading.textContent = found.title || String(found.id);
    refill(about, panel("Document", make("dl", { class: "figures" }, figure("id", String(found.id), "document-id"),
      found.url ? figure("address", documentTitle({ ...found, title: found.url }), "document-url") : null),
    quiet(found.path.length ? trail(found.path) : "Its categories have no names.")), panel("Queries that show it", queries));
    refill(queries, standing(collection, found));
  }, signal, 10_000);
}

function standing(collection, { queries, queries_looked_at: looked, queries_total: total }) {
  const scope = looked < total ? `Of the ${count(looked)} of ${plural(total, "query", "queries")} that are in memory and asked most` : `Of all ${plural(total, "query", "queries")}`;
  if (!total) return [make("p", {}, "This collection has no queries yet.")];
  if (!queries.length) return [make("p", {}, "None of them shows it, and none of their visitors has looked at it."), quiet(`${scope}.`)];
  return [quiet(`${scope}: those whose next ranking has it, and those whose visitors have looked at it.`),
    table(["query", "slot", "looked at", "clicked", "share"], queries.map(({ query, slot, visits, clicks }) => [
      link(query, queryRoute(collection, query), { key: query, test: "standing-query" }), slot === null ? "–" : String(slot + 1),
      count(visits), count(clicks), percent(clicks, visits)]), { class: "standing" })];
}
