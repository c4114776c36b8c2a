// A causal mask alone, without positions: the rows after each layer for both orders of the prompt, read at a last word.
import { choice } from "./choice.js";
import { byId, el, escapeControls, fill, isolatedWord } from "./dom.js";
import { strip } from "./heatmap.js";
import { ROUNDING_TOLERANCE, permuted } from "./laws.js";
import { model, state, vectors } from "./state.js";
import { largestDifference } from "./transformer.js";
import { abilityList, comparison, unchangedNote } from "./verdict.js";
import { wordClass } from "./word_chips.js";

const LAST_WORD = "?";

export function maskStep() {
  let layers = 1;
  fill(byId("mask-controls"), choice({ name: "mask-layers", legend: "Layers", options: [[1, "1"], [2, "2"]], value: layers, change: (value) => { layers = value; draw(); } }));
  function draw() {
    const words = [...state.words, LAST_WORD], x = vectors(words);
    const orders = [words.map((_, i) => i), [...state.order, state.words.length]];
    const depths = Array.from({ length: layers }, (_, i) => i + 1);
    const runs = orders.map((order) => depths.map((depth) => model({ causal: true, layers: depth })(permuted(x, order))));
    ["first", "second"].forEach((name, i) => fill(byId(`mask-${name}`), layersOf(name, words, orders, runs, i)));
    const [first, second] = runs.map((run) => run.at(-1).at(-1));
    fill(byId("mask-result"),
      unchangedNote() ?? comparison([first], [second], [`row at “${LAST_WORD}”`, `rows at “${LAST_WORD}”`]),
      abilityList({ encoding: "none", causal: true, layers }, ["prompt_permutation"]));
    byId("mask-why").textContent = layers === 1
      ? `Words in the middle see other words, so their rows differ (●). But “${LAST_WORD}” sees all words, and one layer adds up the values of the words themselves: the same terms in another order.`
      : `In layer 2, “${LAST_WORD}” adds up the rows that layer 1 made. Some of them differ (●), because the mask hid other words: the sum changes. The mask alone tells the orders apart.`;
  }
  return draw;
}

// One prompt: a row for each word, with what it sees and its numbers after each layer.
function layersOf(name, words, orders, runs, i) {
  const [order, run] = [orders[i], runs[i]];
  const [otherOrder, otherRun] = [orders[1 - i], runs[1 - i]];
  // A row is new if the other prompt has no equal row of this word: equal words may change places.
  const isNew = (layer, m) => !otherOrder.some((place, n) => words[place] === words[order[m]] && largestDifference([run[layer][m]], [otherRun[layer][n]]) <= ROUNDING_TOLERANCE);
  const kindOf = (place) => (place < state.words.length ? wordClass(place) : "last-word");
  const text = (place) => escapeControls(words[place]);
  const sees = (m) => el("span", { class: "mask-row", role: "img", "aria-label": `sees ${order.slice(0, m + 1).map(text).join(", ")}` },
    order.map((place, n) => el("span", { class: n <= m ? `seen ${kindOf(place)}` : "hidden" })));
  const cell = (layer, m) => {
    const label = `${words[order[m]]} after layer ${layer + 1}, ${name} prompt`;
    return el("td", { class: isNew(layer, m) ? "new" : null, "data-layer": layer + 1 }, strip(run[layer][m], { label, id: m === order.length - 1 && layer === run.length - 1 ? `mask-${name}-strip` : null }));
  };
  const head = ["word", "sees", ...run.map((_, layer) => `after layer ${layer + 1}`)];
  return el("table", { class: "sees" }, el("caption", { class: "away" }, `the ${name} prompt, layer by layer`),
    el("thead", {}, el("tr", {}, head.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, order.map((place, m) => el("tr", {},
      el("th", { scope: "row" }, el("span", { class: `chip small ${kindOf(place)}` }, isolatedWord(words[place]))), el("td", {}, sees(m)), run.map((_, layer) => cell(layer, m))))));
}
