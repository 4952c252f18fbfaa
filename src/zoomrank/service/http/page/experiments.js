// The experiments of a collection: which there are, what became of them, and a form to begin one.

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
      : quiet(`One goes on at a time: to begin another, stop “${running}” first.`));
  }, signal, PAUSE);
}

const WHAT = "An experiment shows some visitors one thing and some another, and finds out which satisfies more of them. Each of its arms has learners of its own, and a visitor who comes again meets the same arm.";

function rowsOf(collection, experiments) {
  if (!experiments.length) return make("p", { test: "experiments-empty" }, "There has been no experiment here yet. Until there is one, all visitors meet the collection as it is.");
  return make("ul", { class: "cards" }, experiments.map((experiment) => make("li", { class: "card" },
    link(experiment.name, experimentRoute(collection, experiment.name), { class: "title", key: experiment.name, test: "experiment-link" }),
    quiet(stateOf(experiment)))));
}

/** Whether it goes on, in words. */
export function stateOf({ created, ended, promoted }) {
  if (ended === null) return `Going on; begun ${ago(created)}.`;
  const became = promoted === null ? "none of its arms was promoted" : `“${promoted}” was promoted and serves the collection`;
  return `Begun ${ago(created)}, ended ${ago(ended)}; ${became}.`;
}
