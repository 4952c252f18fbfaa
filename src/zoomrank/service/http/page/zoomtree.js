// The zoom tree: how finely the ranker distinguishes documents, as an icicle that grows where visitors click.

import { colours, draw } from "./charts.js";
import { button, changes, make, meter, quiet, refill, table } from "./dom.js";
import { chance, count, plural } from "./format.js";

const COLUMNS = 5; // levels that are drawn at once
const LETTER = 6.6; // approximate width in pixels
const ROW = 35; // pixels for each child of the current node
const [EVEN, UNEVEN] = [0.42, 0.15]; // of its height is divided equally among them, so that each has room for its name; farther down, less
const [LOWEST, HIGHEST] = [480, 900];
const TWO_LINES = 38;
const FEW = 10; // visits below which an estimate says too little to set the scale
const sizeOf = (node) => Math.sqrt(node.visits) + 0.5; // by visits, but a favourite must leave room for the rest

/** An element, and show(nodes), which updates it. */
export function zoomTree() {
  const tree = {
    changed: changes(),
    chart: make("div", { class: "chart tree", role: "img", says: "Zoom tree; also a table below", test: "zoom-tree" }),
    trail: make("nav", { class: "trail", says: "Part of the tree", test: "zoom-trail" }),
    table: make("div", { test: "zoom-table" }),
    top: make("span", {}),
  };
  const legend = make("p", { class: "legend" }, make("span", {}, make("i", { class: "swatch" }), "not visited"),
    make("span", {}, "estimated relevance 0 ", make("i", { class: "ramp" }), tree.top));
  const element = make("div", { class: "stack" }, tree.trail, make("div", { class: "sideways", tabindex: 0, role: "group", says: "Zoom tree, which can be scrolled sideways" }, tree.chart), legend,
    make("details", {}, make("summary", {}, "The same as a table"), tree.table));
  return { element, show: (nodes) => show(tree, nodes) };
}

function show(tree, found) {
  if (!found.length || !tree.changed(found)) return;
  const nodes = lasting(found);
  // Siblings keep their order: boxes grow but do not jump.
  tree.nodes = nodes.sort((a, b) => a.others - b.others || a.place - b.place);
  tree.known = new Map(nodes.map((node) => [node.id, node]));
  tree.children = new Map(nodes.map((node) => [node.id, []]));
  for (const node of nodes) tree.children.get(node.parent)?.push(node);
  tree.root = nodes.find((node) => node.parent === null);
  if (!tree.known.has(tree.level)) tree.level = tree.root.id; // dropped in favour of busier parts
  render(tree);
}

/** Node numbers change between responses; the names on the path to a node are stable. */
function lasting(nodes) {
  const ids = new Map();
  const taken = new Set();
  return nodes.map((node) => {
    const parent = node.parent === null ? null : ids.get(node.parent);
    let id = `${parent ?? ""}\n${node.others ? "" : node.label}`;
    while (taken.has(id)) id += " ";
    taken.add(id);
    ids.set(node.id, id);
    return { ...node, id, parent, place: node.id };
  });
}

function render(tree) {
  const top = scaleTop(tree.nodes);
  tree.top.textContent = ` ${chance(top)}`;
  renderPlace(tree);
  const height = Math.min(HIGHEST, Math.max(LOWEST, ROW * tree.children.get(tree.level).length));
  tree.chart.style.height = `${height}px`;
  draw(tree.chart, [icicle(tree, top, height)], { height, margin: { l: 0, r: 0, t: 0, b: 0 }, uniformtext: { minsize: 10, mode: "hide" }, hovermode: "closest" })
    .then(() => listen(tree));
}

function listen(tree) {
  if (tree.listens || !tree.chart.on) return;
  tree.listens = true;
  tree.chart.on("plotly_icicleclick", ({ nextLevel }) => {
    zoomTo(tree, nextLevel || tree.root.id);
    return false; // Plotly's own zoom is always animated, and a poll would interrupt it
  });
}

function zoomTo(tree, level) {
  tree.level = level;
  render(tree);
}

function icicle(tree, top, height) {
  const { nodes, children, chart, level } = tree;
  const colour = colours();
  const sizes = shares(tree);
  const letters = Math.floor((chart.clientWidth / Math.min(COLUMNS, levelsBelow(tree, level)) - 10) / LETTER);
  const label = (node) => fitted(nameOf(node), letters, (height * sizes.get(node.id)) / sizes.get(level) >= TWO_LINES ? 2 : 1);
  const shades = nodes.map(shader(colour, top));
  return {
    type: "icicle", sort: false, branchvalues: "remainder", maxdepth: COLUMNS, level,
    ids: nodes.map((node) => node.id),
    parents: nodes.map((node) => node.parent ?? ""),
    labels: nodes.map(label),
    // Only leaves get a value: Plotly sums them, so rounding cannot make a parent smaller than its children.
    values: nodes.map((node) => (children.get(node.id).length ? 0 : sizes.get(node.id))),
    hovertext: nodes.map(describe), hoverinfo: "text", textinfo: "label", textposition: "middle left", textfont: { color: shades.map(readableOn) },
    marker: { colors: shades.map((shade) => `rgb(${shade})`), line: { width: 0.5, color: colour("surface") } },
    leaf: { opacity: 1 }, pathbar: { visible: false }, tiling: { pad: 0 },
  };
}

/** Sizes from the root down: children divide their parent's, some of it equally and the rest by
 * visits; refining a part leaves all others as they are. */
function shares({ root, children, level }) {
  const share = new Map([[root.id, 1]]);
  for (const [id, whole] of share) { // grows while it is walked through
    const own = children.get(id);
    const total = own.reduce((sum, child) => sum + sizeOf(child), 0);
    const even = id === level ? EVEN : UNEVEN;
    for (const child of own) share.set(child.id, whole * (even / own.length + ((1 - even) * sizeOf(child)) / total));
  }
  return share;
}

function levelsBelow({ children }, id) {
  return 1 + Math.max(0, ...children.get(id).map((child) => levelsBelow({ children }, child.id)));
}

/** A label wrapped to a number of lines and letters, and cut off beyond. */
function fitted(text, letters, lines) {
  if (text.length <= letters || lines === 1) return plain(text, letters);
  const at = text.lastIndexOf(" ", letters);
  return at < 1 ? plain(text, letters) : `${plain(text.slice(0, at), letters)}<br>${fitted(text.slice(at + 1), letters, lines - 1)}`;
}

const nameOf = (node) => (node.parent === null ? "everything" : node.label);

/** Plotly interprets some HTML in labels: escape and shorten. */
function plain(text, longest) {
  const short = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
  return short.replace(/&/g, "&amp;").replace(/</g, "&lt;");
}

function describe(node) {
  const seen = node.visits ? `${plural(node.clicks, "click")} in ${plural(node.visits, "visit")}: ${chance(node.estimate)}` : "not visited yet";
  return `<b>${plain(nameOf(node), 60)}</b><br>${plural(node.documents, "document")}<br>${seen}`;
}

/** The best estimate that rests on more than a few visits, rounded up. */
function scaleTop(nodes) {
  const best = Math.max(0.1, ...nodes.filter((node) => node.visits >= FEW).map((node) => node.estimate));
  return Math.min(1, Math.ceil(best * 10 - 1e-9) / 10);
}

/** One hue, from pale to deep, so that brightness alone shows the order. */
function shader(colour, top) {
  const channels = (name) => [1, 3, 5].map((at) => parseInt(colour(name).slice(at, at + 2), 16));
  const stops = [0, 1, 2, 3].map((step) => channels(`scale-${step}`));
  return ({ visits, estimate }) => {
    if (!visits) return channels("unvisited");
    const place = Math.min(1, estimate / top) * 3;
    const step = Math.min(2, Math.floor(place));
    return stops[step].map((from, channel) => Math.round(from + (stops[step + 1][channel] - from) * (place - step)));
  };
}

const readableOn = ([red, green, blue]) => (0.3 * red + 0.6 * green + 0.1 * blue > 125 ? "#06181b" : "#fff");

/** The icicle for keyboards and screen readers. */
function renderPlace(tree) {
  const { known, children, level } = tree;
  const path = [];
  for (let node = known.get(level); node; node = known.get(node.parent)) path.unshift(node);
  const zoomButton = (node, key) => button(nameOf(node), () => zoomTo(tree, node.id), { class: "plain", key: `${key} ${node.id}` });
  refill(tree.trail, path.map((node) => (node.id === level ? make("span", { "aria-current": "true" }, nameOf(node)) : zoomButton(node, "up"))));
  const rows = [...children.get(level)].sort((a, b) => b.visits - a.visits);
  refill(tree.table, rows.length ? table(["part", "documents", "visits", "estimate"], rows.map((node) => [
    children.get(node.id).length ? zoomButton(node, "down") : node.label, count(node.documents), count(node.visits),
    meter(node.estimate, node.visits ? chance(node.estimate) : "–")])) : quiet("Nothing below this part is distinguished yet."));
}
