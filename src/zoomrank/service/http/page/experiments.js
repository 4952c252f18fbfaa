// The experiments of a collection, their status, and a form to start one.

import * as api from "./api.js";
import { beginning } from "./beginning.js";
import { changes, link, make, panel, quiet, refill, title } from "./dom.js";
import { ago } from "./format.js";
import { keepFresh } from "./live.js";
import { experimentRoute } from "./routes.js";

const PAUSE = 5000;

export function experimentsPage(page, { collection }, signal) {
  const list = make("div", { class: "stack", test: "experiments-list" });
  const begin = make("div", { test: "experiments-begin" });
  refill(page, title("Experiments"), panel(`Experiments in ${collection}`, quiet(WHAT), list), begin);
  const changed = { list: changes(), begin: changes() };
  keepFresh(async () => {
    const [{ experiments }, { role }] = await Promise.all([api.experiments(collection, signal), api.role(signal)]);
    const running = experiments.find(({ ended }) => ended === null)?.name;
    if (changed.list([experiments, Math.floor(Date.now() / 60_000)])) refill(list, rowsOf(collection, experiments));
    if (changed.begin([running, role])) refill(begin, role !== "admin" ? null : running === undefined ? beginning(collection)
      : quiet(`Only one experiment runs at a time: to start another, stop “${running}” first.`));
  }, signal, PAUSE);
}

const WHAT = "An experiment splits visitors among arms to find out which satisfies more of them. Each arm has its own learners, and a returning visitor gets the same arm.";

function rowsOf(collection, experiments) {
  if (!experiments.length) return make("p", { test: "experiments-empty" }, "There are no experiments yet. All visitors get the collection as it is.");
  return make("ul", { class: "cards" }, experiments.map((experiment) => make("li", { class: "card" },
    link(experiment.name, experimentRoute(collection, experiment.name), { class: "title", key: experiment.name, test: "experiment-link" }),
    quiet(stateOf(experiment)))));
}

/** The status of an experiment in words. */
export function stateOf({ created, ended, promoted }) {
  if (ended === null) return `Running; started ${ago(created)}.`;
  const became = promoted === null ? "none of its arms was promoted" : `“${promoted}” was promoted and serves the collection`;
  return `Started ${ago(created)}, ended ${ago(ended)}; ${became}.`;
}
