// Replicas that share a store: their partitions, load and status.

import { changes, make, meter, panel, quiet, refill } from "./dom.js";
import { amount, bytes, count, lasting, plural } from "./format.js";

const EARSHOT = 2; // seconds without a heartbeat after which a replica is shown as silent
const HEADS = ["Replica", "Partitions", "Requests", "Learners", "Writes", "Uptime"];

/** A panel that is shown while there are several replicas or partitions without an owner; and a note about problems. */
export function replicas() {
  const element = make("div", { class: "stack", test: "overview-replicas" });
  const note = make("div", { class: "stack", role: "status", test: "replicas-note" });
  const changed = { rows: changes(), wrong: changes() };
  const show = (found) => {
    const rows = found.replicas.length > 1 || found.free ? found.replicas.map((replica) => wordsOf(replica, found.partitions)) : [];
    if (changed.rows([rows, found.free])) refill(element, rows.length || found.free ? panelOf(found, rows) : null);
    const wrong = wrongWith(found);
    if (changed.wrong(wrong)) refill(note, wrong.length ? make("p", { class: "note" }, wrong.join(" ")) : null);
  };
  return { element, note, show };
}

const isSilent = ({ silent }) => silent > EARSHOT;

function wrongWith({ replicas: all, partitions, free }) {
  const silent = all.filter(isSilent);
  return [
    ...(free ? [`${count(free)} of ${plural(partitions, "partition")} ${free === 1 ? "is" : "are"} without an owner: their queries wait until a replica takes over.`] : []),
    ...silent.map(({ name }) => `No heartbeat from ${name}: if that lasts, others take over its partitions.`)];
}

/** A replica's row as text, so that it is redrawn only when it looks different. */
function wordsOf({ name, since, silent, partitions, chair, load }, all) {
  return {
    name, chair, share: partitions / all, partitions: count(partitions),
    silent: isSilent({ silent }) ? `no heartbeat for ${lasting(silent)}` : null,
    where: load ? `process ${load.process} on ${load.host}` : "no report yet",
    requests: load ? `${amount(load.requests_per_second)} a second` : "–",
    learners: load ? `${count(load.learners)}, ${bytes(load.learner_bytes)}` : "–",
    writes: load ? count(load.writes) : "–",
    failed: load?.failed_writes ? `${count(load.failed_writes)} failed` : null,
    here: lasting(Math.max(0, Date.now() / 1000 - since)),
  };
}

function panelOf({ partitions }, rows) {
  return panel("Replicas", quiet(`Queries are spread over ${plural(partitions, "partition")}, each owned by one replica at a time.`),
    make("table", { class: "replicas" }, make("thead", {}, make("tr", {}, HEADS.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, rows.map(rowOf))));
}

function rowOf({ name, chair, share, partitions, silent, where, requests, learners, writes, failed, here }) {
  const cells = [
    [make("div", { class: "row" }, make("span", { class: "title" }, name), silent ? make("span", { class: "badge silent", test: "replica-silent" }, silent) : null),
      quiet(where, chair ? make("span", { title: "It changes collections and experiments" }, "; coordinator") : null)],
    meter(share, partitions), requests, learners, [writes, failed ? make("p", { class: "falling" }, failed) : null], here];
  return make("tr", { test: "replica" }, cells.map((cell, column) => make("td", { "data-head": HEADS[column] }, cell)));
}
