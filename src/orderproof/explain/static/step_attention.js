// One query attends: its weighted values are added head to tail, in the order of the first or of the second sentence.
import { arrowDrawing, endOf, spanOf } from "./arrows.js";
import { attentionHead, headVectors, scoreBias } from "./attention_head.js";
import { choice } from "./choice.js";
import { byId, el, fill, formatFixed, isolatedWord } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { strip } from "./heatmap.js";
import { permuted } from "./laws.js";
import { slideFrom } from "./motion.js";
import { openedWeight, weightButton } from "./opened_weight.js";
import { state, subscribe } from "./state.js";
import { comparison } from "./verdict.js";
import { wordClass } from "./word_chips.js";

let query = 2; // the word whose query is followed
let second = false; // which sentence is shown
let encoding = "none";
let opened = null; // the word whose weight is open

export function attentionStep() {
  let words = state.words;
  subscribe(() => {
    if (words === state.words) return;
    words = state.words;
    query = Math.min(2, words.length - 1);
    second = false;
    opened = null;
  });
  const button = el("button", { type: "button", class: "play", id: "attention-swap", onclick: () => change(() => (second = !second)) });
  const options = Object.entries(ENCODINGS).map(([value, { label }]) => [value, value === "none" ? "off" : label]);
  fill(byId("attention-controls"), button, el("div", { id: "attention-queries" }), choice({ name: "attention-encoding", legend: "Positions", options, value: encoding, change: (value) => change(() => (encoding = value)) }));

  // The terms of the query's sum, in the order of one sentence.
  function termsOf(isSecond) {
    const order = isSecond ? state.order : state.words.map((_, i) => i);
    const run = attentionHead(permuted(headVectors(state.words), order), { encoding });
    const m = order.indexOf(query);
    const bias = scoreBias(encoding, false);
    const terms = order.map((place, n) => {
      const value = run.v[n].map((each) => run.a[m][n] * each);
      const open = () => openedWeight({ words: order.map((other) => state.words[other]), n, names: value.map((_, i) => String(i + 1)), q: run.compared.q[m], k: run.compared.k[n], bias: bias?.(m, n), row: run.s[m], weight: run.a[m][n] });
      return { key: place, kind: wordClass(place), label: state.words[place], weight: run.a[m][n], value, vector: [], open };
    });
    return { terms, sum: run.z[m] };
  }

  function toggle(key) {
    opened = opened === key ? null : key;
    draw();
    byId("attention-terms").querySelector(`[data-key="${key}"] .weight`).focus();
  }

  let shown = null; // the terms that are drawn
  function change(act) {
    const before = shown;
    act();
    draw(before);
  }

  function draw(before = null) {
    const plane = widestPlane(state.words, query);
    const [one, two] = [termsOf(false), termsOf(true)];
    for (const term of [...one.terms, ...two.terms]) term.vector = plane.map((f) => term.value[f]);
    const { terms } = second ? two : one;
    button.textContent = second ? "Swap back" : "Swap the words";
    drawQueries();
    const rows = terms.map((term) => termRow(term, opened === term.key, () => toggle(term.key)));
    const list = byId("attention-terms");
    const old = new Map([...list.children].map((row) => [row.dataset.key, row.getBoundingClientRect()]));
    fill(list, rows);
    if (before) slideFrom(rows, (row) => old.get(row.dataset.key));
    const drawing = arrowDrawing({ paths: [one.terms, two.terms], axes: plane.map((f) => `feature ${f + 1}`), label: `The weighted values of ${terms.length} words as arrows, head to tail, for the query of ${state.words[query]}` });
    fill(byId("attention-arrows"), drawing.svg,
      el("p", { class: "quiet" }, `Two of the ${terms[0].value.length} features. ● end of the sum`, second ? "; dashed and ○: the first sentence." : "."));
    fill(byId("attention-scrub"), scrub(drawing.between(one.terms, two.terms)));
    drawing.show(terms, before && before.length === terms.length ? before : null, second ? one.terms : null);
    shown = terms;
    fill(byId("attention-sums"),
      sumOf("first sentence", one.sum, "attention-first"), second ? sumOf("second sentence", two.sum, "attention-second") : null,
      second ? comparison([one.sum], [two.sum], ["sum", "sums"]) : el("p", { class: "quiet" }, "Now swap the words: the arrows are added in another order."));
    byId("attention-sums").dataset.end = endOf(terms).map((value) => formatFixed(value)).join(" ");
  }

  // The arrows at any time of the swap; at an end of the slider its sentence is shown.
  function scrub(paint) {
    const input = el("input", { type: "range", id: "attention-time", min: 0, max: 1, step: 0.05, value: second ? 1 : 0, "aria-label": "Time of the swap: from the first sentence to the second", oninput: () => {
      const t = Number(input.value);
      paint(t);
      if (t !== 0 && t !== 1) return;
      second = t === 1;
      draw();
      byId("attention-time").focus();
    } });
    return el("div", { class: "scrub" }, el("span", { class: "quiet" }, "first"), input, el("span", { class: "quiet" }, "second"));
  }

  function drawQueries() {
    const options = state.words.map((word, place) => [place, isolatedWord(word)]);
    const hadFocus = byId("attention-query")?.contains(document.activeElement);
    const made = choice({ name: "attention-query", legend: "The query of", options, value: query, change: (value) => change(() => (query = value)) });
    fill(byId("attention-queries"), made);
    if (hadFocus) made.querySelector("input:checked").focus();
  }
  return () => draw();
}

function termRow({ key, kind, label, weight, value, open }, isOpen, toggle) {
  return el("li", { "data-key": key },
    el("span", { class: `chip small ${kind}` }, isolatedWord(label)),
    weightButton({ weight, open: isOpen, label: `the weight of ${label}`, toggle }),
    strip(value, { label: `weight × value of ${label}` }), isOpen ? open() : null);
}

// The two features in which the arrows of any two different words are least parallel, so that every arrow is seen:
// the smallest area between two arrows, relative to the path, is largest. Without positions.
function widestPlane(words, place) {
  const { a, v } = attentionHead(headVectors(words));
  const least = (plane) => {
    const vectors = v.map((value, n) => plane.map((f) => a[place][n] * value[f]));
    const areas = vectors.flatMap(([x, y], i) => vectors.slice(i + 1).flatMap(([s, t], j) => (words[i] === words[i + 1 + j] ? [] : [Math.abs(x * t - y * s)])));
    return Math.min(...areas) / spanOf([vectors.map((vector) => ({ vector }))]) ** 2;
  };
  const planes = v[0].flatMap((_, f) => v[0].slice(f + 1).map((__, i) => [f, f + 1 + i]));
  return planes.reduce((best, plane) => (least(plane) > least(best) ? plane : best));
}

const sumOf = (title, sum, id) => el("div", { class: "sum" }, el("span", {}, title), strip(sum, { id, label: `sum for the ${title}` }));
