// The frame: which page is shown, where one is, and visitors that keep coming in the background.

import { forgetCharts } from "./charts.js";
import { documentPage, documentsPage } from "./documents.js";
import { button, byId, link, make, refill } from "./dom.js";
import { plural } from "./format.js";
import { clearProblem, listenForKeys } from "./messages.js";
import { overview } from "./overview.js";
import { currentSimulation, playground } from "./playground.js";
import { queryPage } from "./query.js";
import { collectionRoute, documentsRoute, playRoute, readRoute } from "./routes.js";

const PAGES = { overview, query: queryPage, playground, documents: documentsPage, document: documentPage };
let leave;

function open() {
  const first = leave === undefined;
  leave?.abort();
  leave = new AbortController();
  forgetCharts();
  clearProblem();
  const route = readRoute(location.hash);
  showWhere(route);
  PAGES[route.page](byId("page"), route, leave.signal);
  showRunning();
  if (first) return;
  scrollTo(0, 0);
  byId("page").querySelector("h1").focus({ preventScroll: true });
}

function showWhere({ page, collection, query, document: id }) {
  const here = { overview: collection, query, playground: "Playground", documents: "Documents", document: id }[page];
  refill(byId("where"), page === "overview" ? null : link(collection, collectionRoute(collection)),
    page === "document" ? link("Documents", documentsRoute(collection)) : null,
    here === undefined ? null : make("span", { "aria-current": "page" }, here));
  document.title = [...new Set([here, collection, "zoomrank"])].filter(Boolean).join(" · ");
}

/** A running simulation, on all pages but its own. */
function showRunning() {
  const simulation = currentSimulation();
  const chip = byId("running");
  chip.hidden = !simulation?.running || readRoute(location.hash).page === "playground";
  if (chip.hidden) return;
  refill(chip, link(`${plural(simulation.visitors, "visitor")} sent`, playRoute(simulation.collection, simulation.query), { key: "chip" }),
    button("Pause", () => simulation.pause(), { key: "chip pause" }));
}

document.addEventListener("new-simulation", () => currentSimulation().addEventListener("change", showRunning));
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // what is after the # belongs to the pages
  byId("main").focus();
});
addEventListener("hashchange", open);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", open); // for the charts
listenForKeys(open);
open();
