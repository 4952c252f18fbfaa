// Replicas, where several share a store: what each has, how much it has to do, and whether it is there.

import { changes, make, meter, panel, quiet, refill } from "./dom.js";
import { amount, bytes, count, lasting, plural } from "./format.js";

const EARSHOT = 2; // seconds after which it is said that nothing was heard of one
const HEADS = ["Replica", "Partitions", "Requests", "Learners", "Writes", "Here for"];

/** A panel that is there while there is more than one, or something is nobody's; and a note while something is wrong. */
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
    ...(free ? [`${count(free)} of ${plural(partitions, "partition")} ${free === 1 ? "is" : "are"} nobody’s just now: their queries wait until a replica takes them.`] : []),
    ...silent.map(({ name }) => `Nothing is heard of ${name}: if that lasts, others take what it has.`)];
}

/** All that is shown of a replica, as text, so that what looks the same is not drawn again. */
function wordsOf({ name, since, silent, partitions, chair, load }, all) {
  return {
    name, chair, share: partitions / all, partitions: count(partitions),
    silent: isSilent({ silent }) ? `not heard of for ${lasting(silent)}` : null,
    where: load ? `process ${load.process} on ${load.host}` : "has not said anything yet",
    requests: load ? `${amount(load.requests_per_second)} a second` : "–",
    learners: load ? `${count(load.learners)}, ${bytes(load.learner_bytes)}` : "–",
    writes: load ? count(load.writes) : "–",
    failed: load?.failed_writes ? `${count(load.failed_writes)} failed` : null,
    here: lasting(Math.max(0, Date.now() / 1000 - since)),
  };
}

function panelOf({ partitions }, rows) {
  return panel("Replicas", quiet(`Queries are spread over ${plural(partitions, "partition")}, and each belongs to one replica at a time.`),
    make("table", { class: "replicas" }, make("thead", {}, make("tr", {}, HEADS.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, rows.map(rowOf))));
}

function rowOf({ name, chair, share, partitions, silent, where, requests, learners, writes, failed, here }) {
  const cells = [
    [make("div", { class: "row" }, make("span", { class: "title" }, name), silent ? make("span", { class: "badge silent", test: "replica-silent" }, silent) : null),
      quiet(where, chair ? make("span", { title: "It makes collections and experiments" }, "; has the chair") : null)],
    meter(share, partitions), requests, learners, [writes, failed ? make("p", { class: "falling" }, failed) : null], here];
  return make("tr", { test: "replica" }, cells.map((cell, column) => make("td", { "data-head": HEADS[column] }, cell)));
}
