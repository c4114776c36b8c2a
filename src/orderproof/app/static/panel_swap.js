// Panel 1: swap the words and watch both outputs.
import { largestDifference } from "./attention.js";
import { kindOf, movingChips, stillChips } from "./chips.js";
import { byId, el, fill, fixed, size, wordOf } from "./dom.js";
import { ROUNDING, reversal } from "./laws.js";
import { vector } from "./matrix.js";
import { settings, summary } from "./settings.js";
import { bothRuns, change, readWords, state, subscribe } from "./state.js";

// The last is a prompt with one query: its first two words change places and the last one is read.
const EXAMPLES = [
  { text: "cat chased dog", read: "mean" },
  { text: "the cat chased the dog", read: "mean", order: [0, 4, 2, 3, 1] },
  { text: "A B C", label: "prompt A B, query C", read: "last", order: [1, 0, 2] },
];
const READ = { mean: "the mean of all tokens", last: "the last token", each: "each token" };

export function swapPanel() {
  const typed = byId("typed");
  typed.value = state.words.join(" ");
  typed.addEventListener("input", () => take(typed.value));
  fill(byId("examples"), EXAMPLES.map(({ text, label, ...chosen }) => button(label ?? text, () => {
    take((typed.value = text));
    change(chosen);
  })));
  byId("moving-place").replaceWith(movingChips());
  const sorted = (order) => () => change({ order });
  const every = () => state.words.map((_, i) => i);
  fill(byId("moves"),
    button("swap first and last", () => sorted(exchanged(state.order))()),
    button("reverse", () => sorted(reversal(state.order.length).map((m) => state.order[m]))()),
    button("shuffle", () => sorted(shuffled(state.order))()),
    button("as typed", () => sorted(every())()),
  );
  byId("swap-settings").append(settings("swap", ["encoding", "causal", "layers", "read"]));
  take(typed.value);
  subscribe(draw);
}

const button = (text, act) => el("button", { type: "button", onclick: act }, text);

function take(text) {
  const { words, notes } = readWords(text);
  fill(byId("typed-notes"), notes.join(" "));
  if (words.length) change({ words, order: exchanged(words.map((_, i) => i)) });
}

function exchanged(order) {
  const other = order.slice();
  [other[0], other[other.length - 1]] = [order[order.length - 1], order[0]];
  return other;
}

function shuffled(order) {
  const other = order.slice();
  for (let i = other.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [other[i], other[j]] = [other[j], other[i]];
  }
  return other;
}

function draw() {
  const { first, second, readFirst, readSecond } = bothRuns();
  fill(byId("still"), stillChips(state.words.map((_, i) => i)));
  const each = state.read === "each";
  const apart = each ? acrossWords(first, second) : largestDifference([readFirst], [readSecond]);
  byId("swap-model").textContent = `Read: ${READ[state.read]}. Model: ${summary()}, width 8, 4 heads.`;
  byId("first-read").hidden = byId("second-read").hidden = each;
  fill(byId("first-read"), vector(readFirst, { label: "output of the first sentence" }));
  fill(byId("second-read"), vector(readSecond, { label: "output of the second sentence" }));
  fill(byId("each-read"), each ? eachTable(first, second) : null);
  const same = apart <= ROUNDING;
  byId("swap-size").textContent = size(apart);
  byId("swap-verdict").textContent = same ? "The same output" : "Different outputs";
  byId("swap-verdict").dataset.same = same;
  byId("swap-why").textContent = why(same, apart);
}

// Where each word of the second sentence stood in the first: equal words that change places alone have not moved.
function origins() {
  return still() ? state.order.map((_, m) => m) : state.order;
}

const still = () => state.order.every((place, m) => state.words[place] === state.words[m]);

function acrossWords(first, second) {
  return largestDifference(second, origins().map((place) => first[place]));
}

function why(same, apart) {
  if (still()) return "Both sentences are the same: move a word.";
  if (!same) return "The model can tell the two sentences apart.";
  return apart === 0 ? "Not one digit differs." : "What is left is rounding: sums in another order.";
}

const inLine = (values) => values.map((value) => fixed(value, 2).padStart(5)).join("  ");

function eachTable(first, second) {
  const row = (place, m) =>
    el("tr", {},
      el("th", { scope: "row" }, el("span", { class: `tag ${kindOf(place)}` }, wordOf(state.words[place]))),
      el("td", { class: "mono" }, inLine(first[place])),
      el("td", { class: "mono" }, inLine(second[m])),
      el("td", { class: "number" }, size(largestDifference([first[place]], [second[m]]))),
    );
  const rows = state.words.map((_, place) => row(place, origins().indexOf(place)));
  const head = ["word", "in the first sentence", "in the second", "difference"].map((text) => el("th", { scope: "col" }, text));
  return el("div", { class: "scroll" }, el("table", { class: "each" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}
