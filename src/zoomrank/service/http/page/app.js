// The frame: the current page, the breadcrumbs, and the simulation that runs in the background.

import { forgetCharts } from "./charts.js";
import { documentPage, documentsPage } from "./documents.js";
import { button, byId, link, make, refill } from "./dom.js";
import { experimentPage } from "./experiment.js";
import { experimentsPage } from "./experiments.js";
import { plural } from "./format.js";
import { clearProblem, listenForKeys } from "./messages.js";
import { overview } from "./overview.js";
import { currentSimulation, playground } from "./playground.js";
import { queryPage } from "./query.js";
import { armOf, collectionRoute, documentsRoute, experimentRoute, experimentsRoute, playRoute, readRoute } from "./routes.js";

const PAGES = { overview, query: queryPage, playground, documents: documentsPage, document: documentPage,
  experiments: experimentsPage, experiment: experimentPage };
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

function showWhere({ page, collection, query, document: id, experiment }) {
  const arm = armOf(collection);
  const names = { overview: arm ? arm.arm : collection, query, playground: "Playground", documents: "Documents", document: id, experiments: "Experiments", experiment };
  const here = names[page];
  refill(byId("where"), arm ? [link(arm.home, collectionRoute(arm.home)), link(arm.experiment, experimentRoute(arm.home, arm.experiment))] : null,
    page === "overview" ? null : link(arm ? arm.arm : collection, collectionRoute(collection)),
    page === "document" ? link("Documents", documentsRoute(collection)) : null,
    page === "experiment" ? link("Experiments", experimentsRoute(collection)) : null,
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
  event.preventDefault(); // the fragment belongs to the router
  byId("main").focus();
});
addEventListener("hashchange", open);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", open); // for the charts
listenForKeys(open);
open();
