// Weighted values as arrows, head to tail: the sum is where the last one ends, in whatever order they are added.
import { el, escapeControls } from "./dom.js";
import { labelPoint, lineOfFont, placeLabels } from "./label_places.js";
import { tween } from "./motion.js";

const SIZE = 400, EDGE = 34;
const LABEL = { size: SIZE, font: "600 17px ui-serif, Georgia, serif" }; // as the style sheet has it
const AXIS_NAMES = [{ left: SIZE - 110, right: SIZE, top: SIZE - 26, bottom: SIZE }, { left: 0, right: 110, top: 0, bottom: 26 }];
const LABEL_LETTERS = 12;

// terms: {key, kind, label, vector: [x, y]} in the order of addition. Each arrow starts where the one before it ends.
function startsOf(terms) {
  let [x, y] = [0, 0];
  return terms.map(({ vector }) => {
    const start = [x, y];
    [x, y] = [x + vector[0], y + vector[1]];
    return start;
  });
}

export const endOf = (terms) => terms.reduce(([x, y], { vector }) => [x + vector[0], y + vector[1]], [0, 0]);

export const spanOf = (paths) => limits(paths).span;

// The limits of a square that holds every path.
function limits(paths) {
  const points = [[0, 0], ...paths.flatMap((terms) => [...startsOf(terms), endOf(terms)])];
  const low = [0, 1].map((f) => Math.min(...points.map((point) => point[f])));
  const span = Math.max(...[0, 1].map((f) => Math.max(...points.map((point) => point[f])) - low[f]), 1e-9);
  return { low, span };
}

// One drawing; show(terms, before) moves every arrow from where it was to where it is.
export function arrowDrawing({ paths, axes, label }) {
  const { low, span } = limits(paths);
  const at = ([x, y]) => [EDGE + ((x - low[0]) / span) * (SIZE - 2 * EDGE), SIZE - EDGE - ((y - low[1]) / span) * (SIZE - 2 * EDGE)];
  const arrows = el("g", {});
  const end = el("circle", { class: "end", r: 9 });
  const ghost = el("path", { class: "ghost" });
  const ghostEnd = el("circle", { class: "ghost-end", r: 14 });
  const [x0, y0] = at([0, 0]);
  const svg = el("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": escapeControls(label), class: "arrows" },
    el("line", { class: "grid", x1: 0, x2: SIZE, y1: y0, y2: y0 }), el("line", { class: "grid", x1: x0, x2: x0, y1: 0, y2: SIZE }),
    ghost, arrows, ghostEnd, end, el("circle", { class: "origin", cx: x0, cy: y0, r: 5 }),
    el("text", { class: "tick", x: SIZE - 8, y: SIZE - 8, "text-anchor": "end" }, `${axes[0]} →`), el("text", { class: "tick", x: 8, y: 20 }, `↑ ${axes[1]}`));

  const lineOf = ({ label: word, vector }, start) => {
    const [[x1, y1], [x2, y2]] = [at(start), at([start[0] + vector[0], start[1] + vector[1]])];
    return { word: shortWord(word), x1, y1, x2, y2 };
  };
  const labelsOf = (terms) => {
    const [x, y] = at(endOf(terms));
    const endDot = { left: x - 12, right: x + 12, top: y - 12, bottom: y + 12 };
    return placeLabels(startsOf(terms).map((start, i) => lineOf(terms[i], start)), LABEL, [...AXIS_NAMES, endDot]);
  };

  function paint(terms, starts, labels) {
    arrows.replaceChildren(...terms.map((term, i) => arrow(term.kind, lineOf(term, starts[i]), labels[i])));
    const [x, y] = at(endOf(terms)); // of the sum: it stays while the arrows change places
    end.setAttribute("cx", x);
    end.setAttribute("cy", y);
  }

  function show(terms, before = null, first = null) {
    const goal = startsOf(terms), labels = labelsOf(terms);
    if (first) {
      const points = [...startsOf(first), endOf(first)].map((point) => at(point).map((value) => value.toFixed(1)).join(" "));
      ghost.setAttribute("d", `M ${points.join(" L ")}`);
      const [x, y] = at(endOf(first));
      ghostEnd.setAttribute("cx", x);
      ghostEnd.setAttribute("cy", y);
    }
    ghost.style.display = ghostEnd.style.display = first ? "" : "none";
    if (!before) {
      paint(terms, goal, labels);
      return;
    }
    tween("arrows", between(before, terms));
  }

  // What draws the arrows at a time t between two orders of the same terms.
  function between(before, terms) {
    const goal = startsOf(terms), labels = labelsOf(terms);
    const oldLabels = labelsOf(before);
    const old = new Map(startsOf(before).map((start, i) => [before[i].key, { start, vector: before[i].vector, label: oldLabels[i] }]));
    const part = (one, two, t) => one + (two - one) * t;
    const mix = (one, two, t) => one.map((value, f) => part(value, two[f], t));
    const mixLabels = (one, two, t) => ({ along: part(one.along, two.along, t), away: part(one.away, two.away, t), shown: part(one.shown, two.shown, t) });
    return (t) => paint(
      terms.map((term) => ({ ...term, vector: mix(old.get(term.key).vector, term.vector, t) })),
      goal.map((start, i) => mix(old.get(terms[i].key).start, start, t)),
      labels.map((label, i) => mixLabels(old.get(terms[i].key).label, label, t)),
    );
  }
  return { svg, show, between };
}

// A long word would leave the picture.
function shortWord(word) {
  const letters = Array.from(escapeControls(word));
  return letters.length > LABEL_LETTERS ? `${letters.slice(0, LABEL_LETTERS - 1).join("")}…` : letters.join("");
}

// A line with a head and its word.
function arrow(kind, line, label) {
  const { x1, y1, x2, y2 } = line;
  const angle = Math.atan2(y2 - y1, x2 - x1), length = Math.hypot(x2 - x1, y2 - y1);
  const head = Math.min(13, length * 0.6);
  const wing = (turn) => `${(x2 - head * Math.cos(angle + turn)).toFixed(1)} ${(y2 - head * Math.sin(angle + turn)).toFixed(1)}`;
  const [x, y] = labelPoint(line, label);
  return el("g", { class: `arrow ${kind}` },
    el("line", { x1, y1, x2, y2 }), el("path", { d: `M ${x2} ${y2} L ${wing(0.42)} L ${wing(-0.42)} Z` }),
    label.shown ? el("text", { x, y: y + lineOfFont(LABEL.font).baseline, opacity: label.shown, "text-anchor": "middle" }, line.word) : null);
}
