// Panel 4: every order of the words through the model, and how many outputs they give.
import { WIDTH, largestDifference, meanOfRows, transformer } from "./attention.js";
import { byId, count, el, fill, fixed } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { ROUNDING, countDifferent, countOrders, orders, permuted } from "./laws.js";
import { summary } from "./settings.js";
import { state, subscribe, vectors } from "./state.js";
import { WEIGHTS } from "./weights.js";
import { cloud } from "./cloud.js";

const AT_ONCE = 1000; // orders that are counted without being asked to
const LISTED = 24;
const SLICE = 12; // [ms] of work between two looks at the reader

let turn = 0; // a newer count ends an older one

export function ordersPanel() {
  let before = "";
  subscribe(() => {
    const now = JSON.stringify([state.words, state.encoding, state.causal, state.layers]);
    if (now === before) return;
    before = now;
    turn += 1;
    const total = countOrders(state.words);
    byId("orders-total").textContent = heading(total);
    if (total <= AT_ONCE) start();
    else ask(total);
  });
}

function heading(total) {
  const n = state.words.length;
  const all = countOrders(state.words.map((_, i) => i));
  const equal = total < all ? `; equal words leave ${count(total, "different sentence")}` : "";
  return `${count(n, "word")}: ${n}! = ${all.toLocaleString("en")} orders${equal}`;
}

function ask(total) {
  byId("orders-progress").textContent = "";
  fill(byId("orders-list"));
  fill(byId("orders-result"), el("button", { type: "button", id: "orders-go", onclick: start }, `Run all ${total.toLocaleString("en")} through the model`));
}

// Without order: no encoding, no mask. With: what is chosen, or waves where nothing is.
function compared() {
  const plain = state.encoding === "none" && !state.causal;
  const chosen = plain ? { encoding: "sinusoidal", causal: false } : { encoding: state.encoding, causal: state.causal };
  return [
    { id: "without", title: "Without positions, bidirectional", encoding: "none", causal: false, bare: true },
    { id: "with", title: plain ? "With sinusoidal positions" : `As chosen: ${summary()}`, ...chosen },
  ];
}

async function start() {
  const mine = ++turn;
  const x = vectors();
  const every = [...orders(state.words)];
  const found = [];
  for (const { id, title, encoding, causal, bare } of compared()) {
    const options = { encoding: ENCODINGS[encoding], causal, layers: state.layers };
    const outputs = [];
    let pause = performance.now() + SLICE;
    for (const order of every) {
      outputs.push(meanOfRows(transformer(permuted(x, order), WEIGHTS, options)));
      if (performance.now() < pause) continue;
      byId("orders-progress").textContent = `${title}: ${outputs.length.toLocaleString("en")} of ${every.length.toLocaleString("en")}`;
      await new Promise((go) => setTimeout(go));
      if (mine !== turn) return;
      pause = performance.now() + SLICE;
    }
    found.push({ id, title, bare, outputs, different: countDifferent(outputs) });
  }
  byId("orders-progress").textContent = "";
  show(every, found);
}

function show(every, found) {
  const limits = cloud.limits(found.flatMap(({ outputs }) => outputs));
  fill(byId("orders-result"), found.map(({ id, title, bare, outputs, different }) =>
    el("figure", { class: "count", id: `orders-${id}` },
      el("figcaption", {}, title),
      el("p", { class: "big" }, el("strong", {}, different.toLocaleString("en")), ` ${different === 1 ? "output" : "outputs"}`),
      el("p", { class: "quiet" }, `of ${count(every.length, "sentence")}, the mean over tokens${remark(different, every, outputs, bare)}`),
      cloud.draw(outputs, different, limits, `${different} different outputs, drawn by their first two features`),
    ),
  ));
  const word = (order) => order.map((place) => state.words[place]).join(" ");
  const row = (order, i) => el("tr", {}, el("th", { scope: "row" }, el("bdi", {}, word(order))),
    found.map(({ outputs }) => el("td", { class: "mono" }, outputs[i].slice(0, 3).map((value) => fixed(value).padStart(6)).join("  "), WIDTH > 3 ? " …" : "")));
  fill(byId("orders-list"), el("details", { open: every.length <= 6 },
    el("summary", {}, every.length > LISTED ? `The first ${LISTED} of them, with their outputs` : "All of them, with their outputs"),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "order"), found.map(({ title }) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, every.slice(0, LISTED).map(row))))));
}

// Of two words every order is the other's mirror image: one output makes a bag of words only of a model without positions.
function remark(different, every, outputs, bare) {
  const total = every.length;
  if (different === 1 && total > 1 && bare) return ": a bag of words";
  if (different < total && mirrored(every, outputs)) return ": each sentence and its mirror image share one";
  return different === total && total > 1 ? ": one for each" : "";
}

function mirrored(every, outputs) {
  const key = (order) => order.map((place) => state.words.indexOf(state.words[place])).join(" ");
  const found = new Map(every.map((order, i) => [key(order), outputs[i]]));
  return every.every((order, i) => largestDifference([outputs[i]], [found.get(key(order.slice().reverse()))]) <= ROUNDING);
}
