// Panel 4: the outputs for every order of the words, and how many of them are different.
import { WIDTH, largestDifference, meanOfRows, transformer } from "./transformer.js";
import { byId, pluralize, el, fill, formatFixed } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { ROUNDING_TOLERANCE, countDifferent, countOrders, distinctOrders, permuted } from "./laws.js";
import { modelSummary } from "./model_settings.js";
import { state, subscribe, vectors } from "./state.js";
import { WEIGHTS } from "./model_weights.js";
import { scatterPlot } from "./scatter_plot.js";

const AUTO_RUN_LIMIT = 1000; // orders that run without a click
const LISTED = 24;
const TIME_SLICE_MS = 12; // [ms] of work before the browser may redraw

let runToken = 0; // a newer run ends an older one

export function ordersPanel() {
  let before = "";
  subscribe(() => {
    const now = JSON.stringify([state.words, state.encoding, state.causal, state.layers]);
    if (now === before) return;
    before = now;
    runToken += 1;
    const total = countOrders(state.words);
    byId("orders-total").textContent = heading(total);
    if (total <= AUTO_RUN_LIMIT) start();
    else offerRun(total);
  });
}

function heading(total) {
  const n = state.words.length;
  const all = countOrders(state.words.map((_, i) => i));
  const equal = total < all ? `; equal words leave ${pluralize(total, "different sentence")}` : "";
  return `${pluralize(n, "word")}: ${n}! = ${all.toLocaleString("en")} orders${equal}`;
}

function offerRun(total) {
  byId("orders-progress").textContent = "";
  fill(byId("orders-list"));
  fill(byId("orders-result"), el("button", { type: "button", id: "orders-go", onclick: start }, `Run all ${total.toLocaleString("en")} through the model`));
}

// Without order: no encoding and no mask. With order: the choice of panel 1, or sinusoidal positions.
function comparedModels() {
  const plain = state.encoding === "none" && !state.causal;
  const chosen = plain ? { encoding: "sinusoidal", causal: false } : { encoding: state.encoding, causal: state.causal };
  return [
    { id: "without", title: "Without positions, bidirectional", encoding: "none", causal: false, bare: true },
    { id: "with", title: plain ? "With sinusoidal positions" : `As chosen: ${modelSummary()}`, ...chosen },
  ];
}

async function start() {
  const thisRun = ++runToken;
  const x = vectors();
  const every = [...distinctOrders(state.words)];
  const found = [];
  for (const { id, title, encoding, causal, bare } of comparedModels()) {
    const options = { encoding: ENCODINGS[encoding], causal, layers: state.layers };
    const outputs = [];
    let pause = performance.now() + TIME_SLICE_MS;
    for (const order of every) {
      outputs.push(meanOfRows(transformer(permuted(x, order), WEIGHTS, options)));
      if (performance.now() < pause) continue;
      byId("orders-progress").textContent = `${title}: ${outputs.length.toLocaleString("en")} of ${every.length.toLocaleString("en")}`;
      await new Promise((go) => setTimeout(go));
      if (thisRun !== runToken) return;
      pause = performance.now() + TIME_SLICE_MS;
    }
    found.push({ id, title, bare, outputs, different: countDifferent(outputs) });
  }
  byId("orders-progress").textContent = "";
  show(every, found);
}

function show(every, found) {
  const limits = scatterPlot.axisLimits(found.flatMap(({ outputs }) => outputs));
  fill(byId("orders-result"), found.map(({ id, title, bare, outputs, different }) =>
    el("figure", { class: "count", id: `orders-${id}` },
      el("figcaption", {}, title),
      el("p", { class: "big" }, el("strong", {}, different.toLocaleString("en")), ` ${different === 1 ? "output" : "outputs"}`),
      el("p", { class: "quiet" }, `of ${pluralize(every.length, "sentence")}, the mean over tokens${countNote(different, every, outputs, bare)}`),
      scatterPlot.render(outputs, different, limits, `${different} different outputs, drawn by their first two features`),
    ),
  ));
  const word = (order) => order.map((place) => state.words[place]).join(" ");
  const row = (order, i) => el("tr", {}, el("th", { scope: "row" }, el("bdi", {}, word(order))),
    found.map(({ outputs }) => el("td", { class: "mono" }, outputs[i].slice(0, 3).map((value) => formatFixed(value).padStart(6)).join("  "), WIDTH > 3 ? " …" : "")));
  fill(byId("orders-list"), el("details", { open: every.length <= 6 },
    el("summary", {}, every.length > LISTED ? `The first ${LISTED} of them, with their outputs` : "All of them, with their outputs"),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "order"), found.map(({ title }) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, every.slice(0, LISTED).map(row))))));
}

// For two words each order is the reverse of the other: one output means a bag of words only without positions.
function countNote(different, every, outputs, bare) {
  const total = every.length;
  if (different === 1 && total > 1 && bare) return ": a bag of words";
  if (different < total && isReversalInvariant(every, outputs)) return ": each sentence and its reverse share one";
  return different === total && total > 1 ? ": one for each" : "";
}

function isReversalInvariant(every, outputs) {
  const key = (order) => order.map((place) => state.words.indexOf(state.words[place])).join(" ");
  const found = new Map(every.map((order, i) => [key(order), outputs[i]]));
  return every.every((order, i) => largestDifference([outputs[i]], [found.get(key(order.slice().reverse()))]) <= ROUNDING_TOLERANCE);
}
