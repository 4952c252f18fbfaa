// Rankings over time as a strip: a column for a ranking, a row for a slot, the colour of the taste that a document serves.

import { colours } from "./charts.js";
import { make, quiet } from "./dom.js";

const ROW = 14;
const COLUMN = 6;

export function strip() {
  const canvas = make("canvas", { role: "img", says: "Tastes served by rankings over time", test: "play-strip" });
  const element = make("div", {}, canvas, quiet("Rankings over time: a column is a ranking, the newest on the right; a row is a slot. Pale: near a taste. Grey: no taste."));
  return { element, show: (columns) => paint(canvas, columns) };
}

function paint(canvas, columns) {
  const width = canvas.clientWidth;
  const shown = columns.slice(-Math.floor(width / COLUMN));
  const height = ROW * Math.max(1, ...shown.map((column) => column.length));
  const scale = devicePixelRatio;
  Object.assign(canvas, { width: width * scale, height: height * scale });
  canvas.style.height = `${height}px`;
  const colour = colours();
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  shown.forEach((column, place) => column.forEach((taste, slot) => {
    pen.globalAlpha = taste?.levels ? 0.35 : 1;
    pen.fillStyle = colour(taste ? `taste-${taste.index}` : "unvisited");
    pen.fillRect(place * COLUMN, slot * ROW, COLUMN - 1, ROW - 1);
  }));
}
