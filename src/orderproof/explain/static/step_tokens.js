// From text to vectors: tokens, and for each the row of a table; for the trained model, its own tokens and rows.
import { byId, el, fill, isolatedWord } from "./dom.js";
import { heatmap, strip } from "./heatmap.js";
import { permuted } from "./laws.js";
import { slideFrom } from "./motion.js";
import { state, vectors } from "./state.js";
import { wordClass } from "./word_chips.js";

let swapped = false;

export function tokensStep() {
  const { texts } = JSON.parse(byId("orderproof-trained").textContent);
  const button = el("button", { type: "button", class: "play", id: "tokens-swap", onclick: () => {
    swapped = !swapped;
    draw(true);
  } });
  fill(byId("tokens-controls"), button);
  const menu = el("select", { id: "tokens-text", onchange: () => trained(texts[menu.value]) }, texts.map(({ text }, i) => el("option", { value: i }, text)));
  fill(byId("tokens-menu"), el("label", { for: "tokens-text" }, "Text"), menu);
  trained(texts[0]);

  function draw(moves = false) {
    const order = swapped ? state.order : state.words.map((_, i) => i);
    const x = permuted(vectors(), order);
    button.textContent = swapped ? "Show the first sentence" : "Show the second sentence";
    const list = byId("tokens-rows");
    const old = new Map([...list.children].map((row) => [row.dataset.key, row.getBoundingClientRect()]));
    const rows = order.map((place, m) => el("li", { "data-key": place }, el("span", { class: `chip small ${wordClass(place)}` }, isolatedWord(state.words[place])),
      el("span", { class: "sign", "aria-hidden": "true" }, "→"), strip(x[m], { label: `vector of ${state.words[place]}`, id: `tokens-row-${m}` })));
    fill(list, rows);
    fill(byId("tokens-text-shown"), "“", el("bdi", {}, order.map((place) => state.words[place]).join(" ")), "”");
    if (moves) slideFrom(rows, (row) => old.get(row.dataset.key));
  }
  return () => draw();
}

function trained({ tokens, ids, vectors: rows }) {
  fill(byId("tokens-trained"), heatmap("", rows, { id: "tokens-table", rows: tokens.map((token, i) => `${token} → ${ids[i]}`), label: "token, number of its row, and the first features of this row" }));
}
