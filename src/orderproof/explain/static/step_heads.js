// Every head and layer of the trained model, for a pair of sentences, with its positions and without.
import { choice } from "./choice.js";
import { byId, el, escapeControls, fill, formatDifference, formatFixed } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { ROUNDING_TOLERANCE } from "./laws.js";
import { square } from "./pictures.js";

const LAYERS = 6, HEADS = 12, LEVELS = 255; // one byte for each weight
const SENTENCES = ["first", "second"];

// Pairs of sentences with their tokens and the weights of every head; the server adds those of the reader.
const items = [];

function readItems() {
  const { pairs, heads } = JSON.parse(byId("orderproof-trained").textContent);
  for (const { pair, ...weights } of heads) items.push({ sentences: pairs[pair].sentences, tokens: pairs[pair].tokens, ...weights });
}

let addToMenu = null;

// A pair of the reader's, which is then shown.
export function addHeads(item) {
  items.push(item);
  addToMenu(item);
}

// The weights of one head, query rows and key columns: maps hold every layer and head after each other.
function headWeights(map, tokens, layer, head) {
  const bytes = Uint8Array.from(atob(map), (letter) => letter.charCodeAt(0));
  const start = (layer * HEADS + head) * tokens * tokens;
  return Array.from({ length: tokens }, (_, m) => Array.from(bytes.subarray(start + m * tokens, start + (m + 1) * tokens), (byte) => byte / LEVELS));
}

export const changedHeads = (gaps) => gaps.flat().filter((gap) => gap > ROUNDING_TOLERANCE).length;

export function headsStep() {
  readItems();
  const chosen = { item: 0, condition: 0, layer: 0, head: 2 };
  const menu = el("select", { id: "heads-pair", onchange: () => set("item", Number(menu.value)) }, items.map(option));
  fill(byId("heads-controls"), el("label", { class: "menu" }, "Sentences ", menu),
    choice({ name: "heads-positions", legend: "Positions", options: [[0, "its own"], [1, "all equal"]], value: 0, change: (value) => set("condition", value) }));
  addToMenu = (item) => {
    menu.append(option(item, items.length - 1));
    menu.value = items.length - 1;
    set("item", items.length - 1);
  };
  const weights = (k, layer, head) => headWeights(items[chosen.item].maps[2 * chosen.condition + k], tokensOf(k).length, layer, head);
  const tokensOf = (k) => items[chosen.item].tokens[k];

  function set(key, value) {
    chosen[key] = value;
    draw();
  }

  function draw() {
    const gaps = items[chosen.item].gaps[chosen.condition];
    const hadFocus = byId("heads-all").contains(document.activeElement);
    fill(byId("heads-all"), Array.from({ length: LAYERS }, (_, layer) => el("div", { class: "layer" }, el("span", { class: "quiet" }, `layer ${layer + 1}`),
      Array.from({ length: HEADS }, (__, head) => thumb(layer, head)))));
    if (hadFocus) byId("heads-all").querySelector("input:checked").focus();
    one(gaps);
    const changed = changedHeads(gaps);
    fill(byId("heads-count"), el("strong", { class: "answer" }, `${changed} of ${LAYERS * HEADS} heads`), " ", el("span", { class: "quiet" },
      `weigh some word differently in the second sentence; largest difference of a weight ${formatDifference(Math.max(...gaps.flat()))}${changed ? "" : ": rounding"}`));
  }

  function thumb(layer, head) {
    const checked = layer === chosen.layer && head === chosen.head;
    const input = el("input", { type: "radio", name: "heads-one", value: `${layer} ${head}`, checked, "aria-label": `layer ${layer + 1}, head ${head + 1}`, onchange: () => {
      Object.assign(chosen, { layer, head });
      one(items[chosen.item].gaps[chosen.condition]);
    } });
    return el("label", { class: "head" }, input, square(weights(0, layer, head)));
  }

  // The chosen head for both sentences.
  function one(gaps) {
    const { layer, head } = chosen;
    fill(byId("heads-chosen"), el("h3", {}, `Layer ${layer + 1}, head ${head + 1}`),
      el("div", { class: "both" }, SENTENCES.map((name, k) => heatmap(`${name} sentence`, weights(k, layer, head), { rows: tokensOf(k), columns: tokensOf(k), head: false, digits: 2, id: `heads-${name}`, label: `attention of layer ${layer + 1}, head ${head + 1}, ${name} sentence` }))),
      el("p", {}, strongest(weights(0, layer, head), tokensOf(0))),
      el("p", { class: "quiet" }, "The order changes a weight by at most ", el("span", { class: "gap-size" }, formatDifference(gaps[layer][head])), "."));
  }
  return draw;
}

const option = ({ sentences }, i) => el("option", { value: i }, escapeControls(sentences.join("  /  ")));

// The largest weight that a word of the sentence gives to another word, in words.
function strongest(rows, tokens) {
  const last = tokens.length - 1; // the first and the last token mark the ends
  if (last < 3) return null;
  let [from, to] = [1, 2];
  for (let m = 1; m < last; m++) for (let n = 1; n < last; n++) if (m !== n && rows[m][n] > rows[from][to]) [from, to] = [m, n];
  const place = to === from - 1 ? ", the word before it" : to === from + 1 ? ", the word after it" : "";
  return `Most between two words: “${escapeControls(tokens[from])}” gives “${escapeControls(tokens[to])}”${place}, a weight of ${formatFixed(rows[from][to], 2)}.`;
}
