// Learning curve of a query: the share of satisfied visitors by impressions, compared with the beginning.

import * as api from "./api.js";
import { learningChart } from "./charts.js";
import { changes, make, panel, quiet, refill } from "./dom.js";
import { count, percent, plural } from "./format.js";

const REST = 10_000; // milliseconds between two polls: a curve changes slowly

/** A panel, and look(), which updates it. */
export function learningCurve(collection, query, signal) {
  const chart = make("div", { class: "chart", role: "img", says: "Share of satisfied visitors by impressions; also in words below", test: "query-curve" });
  const words = make("div", { class: "stack", test: "curve-words" });
  const element = panel("Learning curve", chart, words);
  const changed = changes();
  let looked = 0;
  const look = async () => {
    if (Date.now() - looked < REST) return;
    looked = Date.now();
    const curve = await api.curve(collection, query, signal);
    if (!changed(curve)) return;
    const points = curve.points.filter((point) => point.answered);
    chart.hidden = points.length < 2;
    refill(words, points.length ? inWords(curve, points) : quiet("No visitor has clicked or left yet."),
      chart.hidden && points.length ? quiet("A curve needs a hundred impressions.") : null);
    if (!chart.hidden) learningChart(chart, { ...curve, points: smoothed(points) });
  };
  return { element, look };
}

/** Each share smoothed with half the weight of its neighbours, weighted by visitors. */
function smoothed(points) {
  return points.map((point, place) => {
    const near = [[points[place - 1], 0.5], [point, 1], [points[place + 1], 0.5]].filter(([other]) => other);
    const sum = (key) => near.reduce((total, [other, weight]) => total + weight * other[key], 0);
    return { ...point, share: point.satisfied / point.answered, smooth: sum("satisfied") / sum("answered") };
  });
}

function inWords({ first, unlearned }, points) {
  const last = points.at(-1);
  const lately = `Of its last ${count(last.end - last.start)} impressions, ${percent(last.satisfied, last.answered)} were satisfied`;
  const before = points.length > 1 && first ? `, of its first hundred ${percent(first.satisfied, first.answered)}` : "";
  return [
    make("p", { test: "curve-sentence" }, `${lately}${before}.`),
    quiet(unlearned ? `Of the first ${plural(unlearned.answered, "answer")}, before much was learned, ${count(unlearned.satisfied)} ${unlearned.satisfied === 1 ? "was a click" : "were clicks"}: an estimate of what a random ranking would get.`
      : "What a random ranking would get is unknown: this query began with prior knowledge, or its beginning is no longer in the log."),
  ];
}
