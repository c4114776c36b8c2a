// Queries, keys and values: three projections of the same rows.
import { HEAD_WEIGHTS, attentionHead, headVectors } from "./attention_head.js";
import { byId, el, fill } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { permuted } from "./laws.js";
import { slideCells } from "./motion.js";
import { state } from "./state.js";

let swapped = false;

export function qkvStep() {
  const button = el("button", { type: "button", class: "play", id: "qkv-swap", onclick: () => {
    swapped = !swapped;
    draw();
    for (const table of document.querySelectorAll("#qkv-x table, #qkv-q table, #qkv-k table, #qkv-v table")) slideCells(table, swapped ? state.order : inverse(state.order));
  } });
  fill(byId("qkv-controls"), button);
  function draw() {
    const order = swapped ? state.order : state.words.map((_, i) => i);
    const run = attentionHead(permuted(headVectors(state.words), order));
    button.textContent = swapped ? "Show the first sentence" : "Show the second sentence";
    fill(byId("qkv-rows"), heatmap("X", run.x, { rows: order, id: "qkv-x" }));
    fill(byId("qkv-results"), [["q", "query", "queries"], ["k", "key", "keys"], ["v", "value", "values"]].map(([name, key, many]) => el("div", { class: "both" },
      el("span", { class: "sign", "aria-hidden": "true" }, el("span", { class: "narrow" }, "X "), "×"), heatmap(`W_${name}`, HEAD_WEIGHTS[key], { id: `qkv-w-${key}` }),
      el("span", { class: "sign", "aria-hidden": "true" }, "="), heatmap(`${name.toUpperCase()}: ${many}`, run[name], { rows: order, id: `qkv-${name}` }))));
  }
  return draw;
}

// Where each row of the second order was: the rows slide back.
const inverse = (order) => order.map((_, place) => order.indexOf(place));
