// Panel 1: swap the words and watch both outputs.
import { largestDifference } from "./transformer.js";
import { wordClass, draggableChips, fixedChips } from "./word_chips.js";
import { byId, el, fill, formatFixed, formatDifference, isolatedWord } from "./dom.js";
import { ROUNDING_TOLERANCE, reversal } from "./laws.js";
import { vectorRow } from "./matrix_table.js";
import { modelSettings, modelSummary } from "./model_settings.js";
import { runBoth, update, readWords, state, subscribe } from "./state.js";

// The last example is a prompt with one query: its first two words are swapped and the output at the last is read.
const EXAMPLES = [
  { text: "cat chased dog", readout: "mean" },
  { text: "the cat chased the dog", readout: "mean", order: [0, 4, 2, 3, 1] },
  { text: "A B C", label: "prompt A B, query C", readout: "last", order: [1, 0, 2] },
];
const READOUT_LABELS = { mean: "the mean of all tokens", last: "the last token", each: "each token" };

export function swapPanel() {
  const typed = byId("typed");
  typed.value = state.words.join(" ");
  typed.addEventListener("input", () => setWords(typed.value));
  fill(byId("examples"), EXAMPLES.map(({ text, label, ...chosen }) => button(label ?? text, () => {
    setWords((typed.value = text));
    update(chosen);
  })));
  byId("moving-place").replaceWith(draggableChips());
  // Every button permutes the sentence as typed: pressing one twice changes nothing.
  const typedOrder = () => state.words.map((_, i) => i);
  const permuteBy = (permutation) => () => update({ order: permutation(typedOrder()) });
  fill(byId("moves"),
    button("swap first and last", permuteBy(swapEnds)),
    button("reverse", permuteBy((order) => reversal(order.length))),
    button("shuffle", permuteBy(shuffle)),
    button("as typed", permuteBy((order) => order)),
  );
  byId("swap-settings").append(modelSettings("swap", ["encoding", "causal", "layers", "readout"]));
  setWords(typed.value);
  subscribe(render);
}

const button = (text, act) => el("button", { type: "button", onclick: act }, text);

function setWords(text) {
  const { words, notes } = readWords(text);
  fill(byId("typed-notes"), notes.join(" "));
  if (words.length) update({ words, order: swapEnds(words.map((_, i) => i)) });
}

function swapEnds(order) {
  const other = order.slice();
  [other[0], other[other.length - 1]] = [order[order.length - 1], order[0]];
  return other;
}

function shuffle(order) {
  const other = order.slice();
  for (let i = other.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [other[i], other[j]] = [other[j], other[i]];
  }
  return other;
}

function render() {
  const { first, second, readoutFirst, readoutSecond } = runBoth();
  fill(byId("still"), fixedChips(state.words.map((_, i) => i)));
  const each = state.readout === "each";
  const difference = each ? largestTokenDifference(first, second) : largestDifference([readoutFirst], [readoutSecond]);
  byId("swap-model").textContent = `Read: ${READOUT_LABELS[state.readout]}. Model: ${modelSummary()}, width 8, 4 heads.`;
  byId("first-read").hidden = byId("second-read").hidden = each;
  fill(byId("first-read"), vectorRow(readoutFirst, { label: "output of the first sentence" }));
  fill(byId("second-read"), vectorRow(readoutSecond, { label: "output of the second sentence" }));
  fill(byId("each-read"), each ? eachTable(first, second) : null);
  const same = difference <= ROUNDING_TOLERANCE;
  byId("swap-size").textContent = formatDifference(difference);
  byId("swap-verdict").textContent = same ? "The same output" : "Different outputs";
  byId("swap-verdict").dataset.same = same;
  byId("swap-why").textContent = resultText(same, difference);
}

// The position in the first sentence of each word of the second; swapping equal words moves nothing.
function originalPositions() {
  return isUnchanged() ? state.order.map((_, m) => m) : state.order;
}

const isUnchanged = () => state.order.every((place, m) => state.words[place] === state.words[m]);

function largestTokenDifference(first, second) {
  return largestDifference(second, originalPositions().map((place) => first[place]));
}

function resultText(same, difference) {
  if (isUnchanged()) return "Both sentences are the same: move a word.";
  if (!same) return "The model distinguishes the two sentences.";
  return difference === 0 ? "Every digit is equal." : "The difference is rounding: the same terms added in another order.";
}

const inLine = (values) => values.map((value) => formatFixed(value, 2).padStart(5)).join("  ");

function eachTable(first, second) {
  const row = (place, m) =>
    el("tr", {},
      el("th", { scope: "row" }, el("span", { class: `tag ${wordClass(place)}` }, isolatedWord(state.words[place]))),
      el("td", { class: "mono" }, inLine(first[place])),
      el("td", { class: "mono" }, inLine(second[m])),
      el("td", { class: "number" }, formatDifference(largestDifference([first[place]], [second[m]]))),
    );
  const rows = state.words.map((_, place) => row(place, originalPositions().indexOf(place)));
  const head = ["word", "in the first sentence", "in the second", "difference"].map((text) => el("th", { scope: "col" }, text));
  return el("div", { class: "scroll" }, el("table", { class: "each" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}
