// RoPE's turning pairs: a query and a key as hands on one clock for each pair of features.
import { el, fill, formatFixed } from "./dom.js";
import { rotateRow } from "./encodings.js";
import { tween } from "./motion.js";
import { seededMatrix } from "./seeded_random.js";

const ROPE_WIDTH = 8;
export const ROPE_QUERY = seededMatrix("rope query", 1, ROPE_WIDTH)[0];
export const ROPE_KEY = seededMatrix("rope key", 1, ROPE_WIDTH)[0];
const CLOCKS = 3, LAST = 20;
const TITLES = ["pair 1: fast", "pair 2: ten times slower", "pair 3: a hundred times slower"];

// The score of a query at position m and a key at position n.
export function ropeScore(m, n) {
  const [q, k] = [rotateRow(ROPE_QUERY, m), rotateRow(ROPE_KEY, n)];
  return q.reduce((sum, value, i) => sum + value * k[i], 0) / Math.sqrt(ROPE_WIDTH);
}

export function ropePicture() {
  let [m, distance] = [2, 3];
  const clocks = el("div", { class: "clocks" });
  const score = el("p", { class: "score", role: "status" });
  const slider = (id, text, least, most, value, act) => {
    const shown = el("output", { for: id }, String(value));
    const input = el("input", { type: "range", id, min: least, max: most, value, oninput: () => {
      shown.textContent = input.value;
      act(Number(input.value));
    } });
    return el("div", { class: "slider" }, el("label", { for: id }, text), input, shown);
  };
  let drawn = [m, m + distance];
  const draw = () => {
    const [from, to] = [drawn, [m, m + distance]];
    drawn = to;
    tween("rope", (t) => fill(clocks, TITLES.slice(0, CLOCKS).map((title, i) => clock(title, i, from.map((value, each) => value + (to[each] - value) * t)))), 350);
    fill(score, "score of the query and the key: ", el("strong", { id: "rope-score" }, formatFixed(ropeScore(m, m + distance))));
  };
  draw();
  return el("div", { class: "rope" }, clocks,
    slider("rope-shift", "query position (moves both)", 0, LAST, m, (value) => { m = value; draw(); }),
    slider("rope-distance", "distance to the key", 0, 8, distance, (value) => { distance = value; draw(); }), score);
}

// Pair i of the rotated query and key, as hands of unit length.
function clock(title, i, [m, n]) {
  const hand = (row, position, kind) => {
    const turned = rotateRow(row, position);
    const [x, y] = [turned[i], turned[i + ROPE_WIDTH / 2]];
    const size = Math.hypot(x, y);
    return el("line", { class: `hand ${kind}`, x1: 0, y1: 0, x2: (82 * x) / size, y2: (-82 * y) / size });
  };
  return el("figure", { class: "clock" },
    el("svg", { viewBox: "-100 -100 200 200", role: "img", "aria-label": `${title}: the query and the key, turned by their positions` },
      el("circle", { class: "dial", r: 92 }), hand(ROPE_QUERY, m, "query"), hand(ROPE_KEY, n, "key"), el("circle", { class: "origin", r: 5 })),
    el("figcaption", {}, title));
}
