// The outputs for every order of the words, and how many of them are different.
import { byId, el, fill, pluralize } from "./dom.js";
import { countDifferent, countOrders, distinctOrders, permuted } from "./laws.js";
import { model, state, vectors } from "./state.js";
import { scatterPlot } from "./scatter_plot.js";
import { meanOfRows } from "./transformer.js";

const AUTO_RUN_LIMIT = 1000; // orders that run without a click
const TIME_SLICE_MS = 12; // [ms] of work before the browser may redraw

let runToken = 0; // a newer run ends an older one

let before = ""; // the words of the last run

export function drawOrders() {
  const now = JSON.stringify(state.words);
  if (now === before) return;
  before = now;
  runToken += 1;
  const total = countOrders(state.words);
  byId("orders-total").textContent = heading(total);
  if (total <= AUTO_RUN_LIMIT) start();
  else offerRun(total);
}

function heading(total) {
  const n = state.words.length;
  const all = countOrders(state.words.map((_, i) => i));
  const equal = total < all ? `; equal words leave ${pluralize(total, "different sentence")}` : "";
  return `${pluralize(n, "word")}: ${n}! = ${all.toLocaleString("en")} orders${equal}`;
}

function offerRun(total) {
  byId("orders-progress").textContent = "";
  fill(byId("orders-result"), el("button", { type: "button", id: "orders-go", onclick: start }, `Run all ${total.toLocaleString("en")} through the model`));
}

const MODELS = [
  { id: "without", title: "Without positions", encoding: "none" },
  { id: "with", title: "With sinusoidal positions", encoding: "sinusoidal" },
];

async function start() {
  const thisRun = ++runToken;
  const x = vectors();
  const every = [...distinctOrders(state.words)];
  const found = [];
  for (const { id, title, encoding } of MODELS) {
    const run = model({ encoding });
    const outputs = [];
    let pause = performance.now() + TIME_SLICE_MS;
    for (const order of every) {
      outputs.push(meanOfRows(run(permuted(x, order))));
      if (performance.now() < pause) continue;
      byId("orders-progress").textContent = `${title}: ${outputs.length.toLocaleString("en")} of ${every.length.toLocaleString("en")}`;
      await new Promise((go) => setTimeout(go));
      if (thisRun !== runToken) return;
      pause = performance.now() + TIME_SLICE_MS;
    }
    found.push({ id, title, bare: encoding === "none", outputs, different: countDifferent(outputs) });
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
      el("p", { class: "quiet" }, `of ${pluralize(every.length, "sentence")}${countNote(different, every, bare)}`),
      scatterPlot.render(outputs, different, limits, `${different} different outputs, drawn by their first two features`),
    ),
  ));
}

function countNote(different, { length: total }, bare) {
  if (total === 1) return "";
  if (different === 1 && bare) return ": a bag of words";
  return different === total ? ": one for each" : "";
}
