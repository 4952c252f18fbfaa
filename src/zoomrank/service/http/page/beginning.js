// Form to start an experiment: its name, and its arms with their shares and what they show.

import * as api from "./api.js";
import { button, labelled, make, panel, quiet, refill } from "./dom.js";
import { say } from "./messages.js";
import { experimentRoute } from "./routes.js";

const MOST_ARMS = 8;
const NAMES = { pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]{0,63}", maxlength: 64, required: true, autocomplete: "off", title: "Letters, digits, - _ and .; a letter or digit first" };
const ALGORITHMS = ["ZoomRank", "RankThompson", "RankRandom", "RankCorrZoom", "RankZoom", "RankContextZoom", "RankUCB1", "RankKLUCB", "CascadeKLUCB",
  "RankGridUCB1", "RankGridEXP3", "RankExploreCommit"];
const KINDS = [["now", "the collection as it is"], ["learned", "another learner"], ["order", "the caller's own order"], ["fixed", "a fixed ranking"]];
const HINTS = {
  now: "With its existing learners.",
  learned: "It starts with the collection's settings and without anything learned.",
  order: "While the experiment runs, every request for a ranking has to send `order`.",
  fixed: "Document ids in order, one per line.",
};

export function beginning(collection) {
  const told = make("p", { role: "alert", class: "falling", hidden: true, test: "begin-told" });
  const list = make("div", { class: "stack" });
  const name = make("input", { ...NAMES, test: "begin-name" });
  const arms = [];
  const show = () => {
    refill(list, arms.map((arm) => arm.element));
    arms.forEach((arm) => (arm.remove.hidden = arms.length < 3));
    more.hidden = arms.length >= MOST_ARMS;
  };
  const add = (armName, share, kind) => {
    const arm = armFields(arms.length, armName, share, kind, () => {
      arms.splice(arms.indexOf(arm), 1);
      show();
      more.focus();
    });
    arms.push(arm);
    show();
    return arm;
  };
  const more = button("Add an arm", () => add("", 0, "learned").element.querySelector("input").focus(), { test: "begin-more" });
  const submit = async (event) => {
    event.preventDefault();
    start.disabled = true;
    told.hidden = true;
    try {
      const numbers = typeof (await api.documents(collection, { offset: 0, limit: 1 })).documents[0]?.id === "number";
      const begun = await api.beginExperiment(collection, { name: name.value, arms: arms.map((arm) => arm.asked(numbers)) });
      say(`“${begun.name}” has started.`);
      location.hash = experimentRoute(collection, begun.name);
    } catch (error) {
      told.textContent = error.message;
      told.hidden = false;
      start.disabled = false;
    }
  };
  const start = make("button", { class: "primary", test: "begin-start" }, "Begin");
  add("now", 50, "now");
  add("new", 50, "learned");
  return panel("Start an experiment", quiet("The other arms are compared with the first. Visitors in no arm get the collection as it is and do not count."),
    make("form", { class: "begin", onsubmit: submit, test: "begin-form" }, make("div", { class: "row" }, labelled("Name of the experiment", name)), list,
      make("div", { class: "row" }, more, start), told));
}

/** The fields of an arm, and the settings that they describe. */
function armFields(place, armName, share, kind, onremove) {
  const field = {
    name: make("input", { ...NAMES, value: armName, test: "arm-name" }),
    share: make("input", { type: "number", min: 0.1, max: 99.9, step: "any", required: true, value: share || "", test: "arm-share" }),
    kind: make("select", { test: "arm-kind", onchange: () => fit() }, KINDS.map(([value, text]) => make("option", { value, selected: value === kind }, text))),
    algorithm: make("select", { test: "arm-algorithm" }, ALGORITHMS.map((value) => make("option", { value }, value))),
    explore: make("input", { type: "number", min: 0, max: 100, step: "any", value: 0, test: "arm-explore" }),
    fixed: make("textarea", { rows: 3, test: "arm-fixed" }),
  };
  const rows = {
    algorithm: labelled("Algorithm", field.algorithm),
    explore: labelled("Rankings with one random slot, %", field.explore),
    fixed: labelled("Documents", field.fixed),
  };
  const details = make("div", { class: "row" }, Object.values(rows));
  const hint = quiet();
  const fit = () => {
    const chosen = field.kind.value;
    rows.algorithm.hidden = chosen !== "learned";
    rows.explore.hidden = chosen === "now";
    rows.fixed.hidden = chosen !== "fixed";
    field.fixed.required = chosen === "fixed";
    details.hidden = chosen === "now";
    hint.textContent = HINTS[chosen];
  };
  const remove = button("Remove this arm", onremove, { test: "arm-remove" });
  const element = make("fieldset", { test: "begin-arm" }, make("legend", {}, place ? "Another arm" : "The first arm"),
    make("div", { class: "row" }, labelled("Name", field.name), labelled("Share of visitors, %", field.share), labelled("It shows", field.kind)),
    hint, details, remove);
  fit();
  return { element, remove, asked: (numbers) => ({ name: field.name.value, share: Number(field.share.value) / 100, ...settingsOf(field, numbers) }) };
}

/** An arm's own settings; none for the collection as it is. */
function settingsOf({ kind, algorithm, explore, fixed }, numbers) {
  if (kind.value === "now") return {};
  const ids = fixed.value.split("\n").map((id) => id.trim()).filter(Boolean);
  const shown = { learned: { algorithm: algorithm.value }, order: { shows: "order" }, fixed: { shows: numbers ? ids.map(Number) : ids } };
  const random = Number(explore.value) / 100;
  return { settings: { ...shown[kind.value], ...(random ? { explore: random } : {}) } };
}
