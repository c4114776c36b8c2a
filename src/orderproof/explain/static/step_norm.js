// Add & Norm and the feed-forward network are innocent: each acts on every row alone.
import { choice } from "./choice.js";
import { byId, el, fill, formatDifference, isolatedWord } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { heatmap } from "./heatmap.js";
import { ROUNDING_TOLERANCE, permuted } from "./laws.js";
import { WEIGHTS } from "./model_weights.js";
import { wordVector } from "./seeded_random.js";
import { state, vectors } from "./state.js";
import { WIDTH, add, largestDifference, layerParts } from "./transformer.js";

const OTHER_WORDS = ["mouse", "horse", "fish", "bird", "fox", "owl", "bee", "cow", "hen"]; // more than a sentence can have

// The parts of the page's layer that are shown, each from rows to rows.
export function shownParts() {
  const { attention, feedForward, normBeforeAttention, normBeforeFeedForward } = layerParts(WEIGHTS, 0, { encoding: ENCODINGS.none, causal: false });
  return [
    { key: "norm", title: "Norm", does: "A row minus its mean, over its standard deviation; then scaled and shifted.", rows: normBeforeAttention },
    { key: "feed-forward", title: "Feed-forward", does: "A row times a matrix, a nonlinear function, another matrix.", rows: feedForward },
    { key: "add", title: "Add", does: "A row plus what feed-forward makes of it after Norm.", rows: (x) => add(x, feedForward(normBeforeFeedForward(x))) },
    { key: "attention", title: "Attention", does: "Weighted sums of the values of all rows.", rows: attention },
  ];
}

export function normStep() {
  let changed = 1;
  const otherWord = () => OTHER_WORDS.find((word) => !state.words.includes(word));
  const drawWords = () => {
    changed = Math.min(changed, state.words.length - 1);
    const hadFocus = byId("norm-word")?.contains(document.activeElement);
    const made = choice({ name: "norm-word", legend: `Replace by “${otherWord()}”`, options: state.words.map((word, place) => [place, isolatedWord(word)]), value: changed, change: (value) => { changed = value; draw(); } });
    fill(byId("norm-controls"), made);
    if (hadFocus) made.querySelector("input:checked").focus();
  };
  function draw() {
    drawWords();
    const x = vectors();
    const other = x.map((row, i) => (i === changed ? wordVector(otherWord(), WIDTH) : row));
    const names = state.words.map((word, i) => (i === changed ? otherWord() : i)); // an index is drawn in the colour of its word
    fill(byId("norm-in"), el("h3", {}, "Input"), el("p", { class: "quiet does" }, "One row for each word."), heatmap("", other, { rows: names, id: "norm-input", label: "input", marked: x.map((_, i) => i === changed) }));
    fill(byId("norm-parts"), shownParts().map((part) => card(part, x, other, names)));
  }
  return draw;
}

function card({ key, title, does, rows }, x, other, names) {
  const [before, after] = [rows(x), rows(other)];
  const marked = before.map((row, i) => largestDifference([row], [after[i]]) > ROUNDING_TOLERANCE);
  const many = marked.filter(Boolean).length;
  const gap = largestDifference(rows(permuted(x, state.order)), permuted(before, state.order));
  return el("div", { class: "card", id: `norm-${key}` },
    el("h3", {}, title), el("p", { class: "quiet does" }, does),
    heatmap("", after, { rows: names, marked, label: `${title}, what comes out` }),
    el("p", { class: "changed-rows" }, el("strong", {}, `${many} of ${x.length}`), ` ${x.length === 1 ? "row" : "rows"} changed${many === 1 && x.length > 1 ? ": its own" : ""}`),
    el("p", { class: "quiet" }, `Permuting the rows before it or after it gives ${gap <= ROUNDING_TOLERANCE ? "the same" : "different"} rows (largest difference `, el("span", { class: "gap-size" }, formatDifference(gap)), ")."));
}
