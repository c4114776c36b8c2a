// A picture of each encoding, from the functions that the model of the page uses.
import { el, formatFixed } from "./dom.js";
import { ENCODINGS, sinusoids, slope, t5Bucket } from "./encodings.js";
import { heatmap } from "./heatmap.js";
import { WEIGHTS } from "./model_weights.js";
import { ropePicture } from "./rope_picture.js";
import { HEADS, MAX_WORDS, transpose } from "./transformer.js";

const STRIPES = { positions: 36, width: 48, shown: 16 };
const RAMP_KEYS = 16;
const FARTHEST = 140; // of T5's picture

const numbered = (text, count) => Array.from({ length: count }, (_, i) => `${text} ${i}`);

// b(m, n) for each query and key of eight words, one head.
export function biasMatrix(encoding, { head = 0, causal = false } = {}) {
  const bias = ENCODINGS[encoding].bias({ head, heads: HEADS, causal, weights: WEIGHTS });
  return Array.from({ length: MAX_WORDS }, (_, m) => Array.from({ length: MAX_WORDS }, (_, n) => bias(m, n)));
}

const biasHeatmap = (encoding, id) => heatmap("bias of head 1: query rows, key columns", biasMatrix(encoding), { id, rows: numbered("", MAX_WORDS), columns: numbered("", MAX_WORDS), digits: 2 });

function sinusoidal() {
  const table = Array.from({ length: STRIPES.positions }, (_, m) => sinusoids(m, STRIPES.width).slice(0, STRIPES.shown));
  const made = heatmap(`columns: position m = 0 to ${STRIPES.positions - 1}; rows: the first ${STRIPES.shown} of ${STRIPES.width} features, sin and cos of m / 10000^{2i/${STRIPES.width}} for i = 0, 1, 2 …`, transpose(table), {
    id: "picture-stripes", rows: numbered("", STRIPES.shown).map((_, i) => `feature ${i + 1} ${i % 2 ? "cos" : "sin"}`), columns: numbered("position", STRIPES.positions), head: false,
    label: `sinusoidal encoding of positions 0 to ${STRIPES.positions - 1}`,
  });
  const ticks = Array.from({ length: STRIPES.positions }, (_, m) => el("td", {}, m % 5 ? null : el("span", {}, String(m))));
  made.querySelector("table").prepend(el("thead", { class: "ticks", "aria-hidden": "true" }, el("tr", {}, el("th", {}), ticks)));
  return made;
}

const learned = () => heatmap("one row for each position", WEIGHTS["learned.weight"], { id: "picture-table", rows: numbered("position", MAX_WORDS) });

const alibi = () => [el("div", { class: "drawn" }, ramp(), slopes()), biasHeatmap("alibi", "picture-alibi")];
const t5 = () => [staircase(), biasHeatmap("t5", "picture-t5")];

export const PICTURES = { sinusoidal, learned, rotary: ropePicture, alibi, t5 };

// A small line picture with axes: x and y in their own units.
function plot({ label, xs, ys, xLabel, yLabel, lines, ticksX, ticksY }) {
  const [width, height, left, bottom] = [520, 300, 56, 46];
  const at = (x, y) => [left + ((x - xs[0]) / (xs[1] - xs[0])) * (width - left - 14), height - bottom - ((y - ys[0]) / (ys[1] - ys[0])) * (height - bottom - 14)];
  return el("figure", { class: "chart" }, el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    ticksX.map((x) => el("g", {}, el("line", { class: "grid", x1: at(x, 0)[0], x2: at(x, 0)[0], y1: 14, y2: height - bottom }), el("text", { class: "tick", x: at(x, 0)[0], y: height - bottom + 18, "text-anchor": "middle" }, String(x)))),
    ticksY.map((y) => el("g", {}, el("line", { class: "grid", x1: left, x2: width - 14, y1: at(0, y)[1], y2: at(0, y)[1] }), el("text", { class: "tick", x: left - 6, y: at(0, y)[1] + 5, "text-anchor": "end" }, formatFixed(y, 0)))),
    lines.map((points, i) => el("path", { class: `line k${i}`, d: `M ${points.map(([x, y]) => at(x, y).map((value) => value.toFixed(1)).join(" ")).join(" L ")}` })),
    el("text", { class: "tick", x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, xLabel),
    el("text", { class: "tick", transform: `translate(14 ${(height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yLabel)));
}

// The penalties of one query in the middle, one line for each head.
function ramp() {
  const query = RAMP_KEYS / 2;
  const lines = Array.from({ length: HEADS }, (_, head) => Array.from({ length: RAMP_KEYS + 1 }, (_, n) => [n, -slope(head, HEADS) * Math.abs(query - n)]));
  return plot({ label: `ALiBi: the penalty of each key for the query at position ${query}, a ramp to both sides, for ${HEADS} heads`, xs: [0, RAMP_KEYS], ys: [-2, 0], lines, ticksX: [0, 4, 8, 12, 16], ticksY: [-2, -1, 0], xLabel: "position of the key; the query is at 8", yLabel: "bias" });
}

// The line of each head, and its slope.
const slopes = () => el("ul", { class: "legend" }, Array.from({ length: HEADS }, (_, head) => el("li", {},
  el("svg", { viewBox: "0 0 44 12", class: "sample", "aria-hidden": "true" }, el("line", { x1: 1, x2: 43, y1: 6, y2: 6, class: `line k${head}` })), `head ${head + 1}: slope 1/${1 / slope(head, HEADS)}`)));

// The bucket of each distance: exact up to 7, then steps that grow.
function staircase() {
  const lines = [Array.from({ length: FARTHEST }, (_, x) => x).flatMap((x) => [[x, t5Bucket(-x)], [x + 1, t5Bucket(-x)]])];
  return plot({ label: "T5: the bucket of each distance, one each up to 7, then wider and wider, the last from 113 on", xs: [0, FARTHEST], ys: [0, 16], lines, ticksX: [0, 8, 16, 32, 64, 128], ticksY: [0, 4, 8, 12, 16], xLabel: "distance to an earlier key", yLabel: "bucket" });
}

// A small square picture of where and how an encoding acts, for the table.
// A matrix as a small picture without numbers.
export function square(values) {
  const most = Math.max(...values.flat().map(Math.abs));
  return el("svg", { viewBox: `0 0 ${values[0].length} ${values.length}`, class: "thumbnail", "aria-hidden": "true", preserveAspectRatio: "none" },
    values.map((row, m) => row.map((value, n) => el("rect", { x: n, y: m, width: 1.02, height: 1.02, class: value < 0 ? "cell minus" : "cell", "--v": Math.abs(value) / most }))));
}

export function thumbnail(encoding) {
  if (encoding === "none") return el("svg", { viewBox: "0 0 8 8", class: "thumbnail", "aria-hidden": "true" });
  if (encoding === "sinusoidal") return square(transpose(Array.from({ length: 16 }, (_, m) => sinusoids(m, 8))));
  if (encoding === "learned") return square(WEIGHTS["learned.weight"]);
  if (encoding !== "rotary") return square(biasMatrix(encoding));
  const hand = (turn, kind) => el("line", { class: `hand ${kind}`, x1: 0, y1: 0, x2: 78 * Math.cos(turn), y2: -78 * Math.sin(turn) });
  return el("svg", { viewBox: "-100 -100 200 200", class: "thumbnail", "aria-hidden": "true" }, el("circle", { class: "dial", r: 92 }), hand(0.4, "query"), hand(1.5, "key"));
}
