// Plotly, loaded with the first chart, in the colours of the page.

import { make } from "./dom.js";

const CONFIG = { displayModeBar: false, responsive: true, showTips: false };

const latest = new Map(); // the newest data of each chart
let library;

function plotly() {
  library ??= new Promise((resolve) => {
    document.head.append(make("script", { src: "page/plotly.min.js", onload: () => resolve(globalThis.Plotly), onerror: () => resolve(null) }));
  });
  return library;
}

/** The style sheet's colours by name, as they are now. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

/** Draws or updates a chart. */
export async function draw(container, data, layout) {
  latest.set(container, data);
  const Plotly = await plotly();
  if (latest.get(container) !== data) return; // left, or overtaken by newer data
  if (Plotly) await Plotly.react(container, data, { ...calm(colours()), ...layout }, CONFIG);
  else container.textContent = "No chart: plotly.min.js did not load.";
}

/** Call when a page is left: Plotly would keep its window listeners. */
export function forgetCharts() {
  latest.forEach((_, container) => globalThis.Plotly?.purge(container));
  latest.clear();
}

function calm(colour) {
  const family = "system-ui, sans-serif";
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family, size: 13, color: colour("quiet") },
    hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("ink"), family } },
    margin: { l: 44, r: 8, t: 34, b: 40 }, hovermode: "x unified",
    dragmode: false, // otherwise charts would swallow touch scrolling
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", traceorder: "normal" },
  };
}

function axis(colour, more) {
  return { gridcolor: colour("line"), zeroline: false, linecolor: colour("line"), fixedrange: true, automargin: true, rangemode: "tozero", ...more };
}

/** Satisfied visitors against those who left, per moment. */
export function activityChart(container, { start, step, satisfied, abandoned }) {
  const x = satisfied.map((_, point) => new Date(1000 * (start + (point + 0.5) * step)));
  const bars = (name, y, color) => ({ type: "bar", name, x, y, marker: { color, line: { width: 0 } } });
  const colour = colours();
  draw(container, [bars("satisfied", satisfied, colour("accent")), bars("left without a click", abandoned, colour("left"))],
    { barmode: "stack", bargap: 0.15, xaxis: axis(colour, { showgrid: false, type: "date", nticks: 5, tickangle: 0 }), yaxis: axis(colour, { tickformat: "~s", nticks: 5 }) });
}

/** Moving shares of satisfied visitors. */
export function satisfactionChart(container, lines) {
  const colour = colours();
  const data = lines.map(({ name, x, y, width, dash, ...line }) => (
    { type: "scatter", mode: "lines", name, x, y, hovertemplate: "%{y:.0%}", line: { color: colour(line.colour), width, dash } }));
  draw(container, data, {
    xaxis: axis(colour, { showgrid: false, title: { text: "visitors", font: { size: 13 }, standoff: 4 } }),
    yaxis: axis(colour, { range: [0, 1.03], tickformat: ".0%", dtick: 0.25 }), showlegend: true,
  });
}

/** The satisfied share by impressions: smoothed as a line, raw as points, with levels of the beginning. */
export function learningChart(container, { points, first, unlearned }) {
  const colour = colours();
  const x = points.map(({ start, end }) => (start + end) / 2);
  const level = (name, counts, dash, shade) => counts && { type: "scatter", mode: "lines", name, x: [x[0], x.at(-1)], y: Array(2).fill(counts.satisfied / counts.answered),
    hoverinfo: "skip", line: { color: colour(shade), width: 2, dash } };
  const data = [
    { type: "scatter", mode: "lines", name: "satisfied", x, y: points.map(({ smooth }) => smooth), hovertemplate: "%{y:.0%}<extra>smoothed</extra>", line: { color: colour("accent"), width: 3 } },
    { type: "scatter", mode: "markers", showlegend: false, x, y: points.map(({ share }) => share), hovertemplate: "%{y:.0%}<extra>here</extra>", marker: { color: colour("accent"), opacity: 0.35, size: 6 } },
    level("first 100", first, "dash", "quiet"), level("before learning", unlearned, "dot", "taste-1")].filter(Boolean);
  const far = points.at(-1).end > 20 * points[0].end;
  draw(container, data, {
    xaxis: axis(colour, { showgrid: false, type: far ? "log" : "linear", dtick: far ? 1 : undefined, nticks: 6, tickformat: "~s", title: { text: far ? "impressions (tenfold steps)" : "impressions", font: { size: 13 }, standoff: 4 } }),
    yaxis: axis(colour, { range: [0, 1.03], tickformat: ".0%", dtick: 0.25 }), showlegend: true,
  });
}

const OTHERS = ["taste-0", "taste-1", "taste-2", "accent"]; // of arms beside the first; then again, dashed
const lineOf = (colour, place) => ({ color: colour(place ? OTHERS[(place - 1) % OTHERS.length] : "quiet"), width: 2, dash: place > OTHERS.length ? "dash" : "solid" });
const timesOf = (points) => points.map(({ time }) => new Date(1000 * time));
const timeAxis = (colour) => axis(colour, { showgrid: false, type: "date", nticks: 4, tickangle: 0 });

/** Differences from the first arm over time, each with its confidence band. */
export function differenceChart(container, { arms, points }) {
  const colour = colours();
  const x = timesOf(points);
  const data = arms.slice(1).flatMap(({ name }, number) => {
    const line = lineOf(colour, number + 1);
    const told = (key) => points.map(({ differences }) => differences[number]?.[key] ?? null);
    const edge = { type: "scatter", mode: "lines", x, showlegend: false, hoverinfo: "skip", legendgroup: name, line: { width: 0, color: line.color } };
    return [{ ...edge, y: told("low") }, { ...edge, y: told("high"), fill: "tonexty", fillcolor: `${line.color}${arms.length > 2 ? "18" : "2e"}` },
      { type: "scatter", mode: "lines", name, legendgroup: name, x, y: told("estimate"), line: { ...line, width: 3 },
        customdata: points.map(({ differences }) => [differences[number]?.low, differences[number]?.high]),
        hovertemplate: "%{y:+.1%} (%{customdata[0]:+.1%} to %{customdata[1]:+.1%})" }];
  });
  const zero = { type: "line", xref: "paper", x0: 0, x1: 1, y0: 0, y1: 0, line: { color: colour("ink"), width: 1 } };
  draw(container, data, { xaxis: timeAxis(colour), showlegend: true, shapes: [zero],
    yaxis: axis(colour, { range: within(points), tickformat: "+.0%", rangemode: "normal", nticks: 6, title: { text: "more satisfied than " + arms[0].name, font: { size: 13 }, standoff: 4 } }) });
}

/** The range of the bands once they are informative: those of the first visitors reach from -1 to 1. */
function within(points) {
  const late = points.slice(Math.floor(points.length / 2)).flatMap(({ differences }) => differences.filter(Boolean));
  const far = 1.1 * Math.min(1, Math.max(0.02, ...late.map(({ low, high }) => Math.max(-low, high))));
  return [-far, far];
}

/** The cumulative satisfied share of each arm. */
export function satisfactionOverTime(container, { arms, points }) {
  const colour = colours();
  const data = arms.map(({ name }, place) => ({ type: "scatter", mode: "lines", name, x: timesOf(points), line: lineOf(colour, place), hovertemplate: "%{y:.1%}",
    y: points.map(({ visitors, satisfied }) => (visitors[place] ? satisfied[place] / visitors[place] : null)) }));
  draw(container, data, { xaxis: timeAxis(colour), showlegend: true,
    yaxis: axis(colour, { tickformat: ".0%", nticks: 5, title: { text: "satisfied so far", font: { size: 13 }, standoff: 4 } }) });
}
