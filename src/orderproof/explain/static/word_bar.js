// The two sentences, above every step that uses them: type other words, move those of the second sentence.
import { byId, el, fill } from "./dom.js";
import { reversal } from "./laws.js";
import { draggableChips, fixedChips } from "./word_chips.js";
import { moveWords, readWords, state, subscribe, swapOuter, update } from "./state.js";

const EXAMPLES = ["the cat chased the dog", "dog bites man", "not good, very bad"];

export function wordBar() {
  const typed = byId("typed");
  typed.value = state.words.join(" ");
  typed.addEventListener("input", () => setWords(typed.value));
  fill(byId("examples"), EXAMPLES.map((text) => button(text, () => setWords((typed.value = text)))));
  byId("moving-place").replaceWith(draggableChips());
  // Each button permutes the sentence as typed: pressing one twice changes nothing.
  const typedOrder = () => state.words.map((_, i) => i);
  const permuteBy = (permutation) => () => moveWords(permutation(typedOrder()));
  fill(byId("moves"),
    button("swap", permuteBy(() => swapOuter(state.words))),
    button("reverse", permuteBy((order) => reversal(order.length))),
    button("shuffle", permuteBy(shuffle)),
    button("as typed", permuteBy((order) => order)),
  );
  let words = null;
  subscribe(() => {
    if (words !== state.words) fill(byId("still"), fixedChips(state.words.map((_, i) => i)));
    words = state.words;
  });
}

const button = (text, act) => el("button", { type: "button", onclick: act }, text);

function setWords(text) {
  const { words, notes } = readWords(text);
  fill(byId("typed-notes"), notes.join(" "));
  if (words.length) update({ words, order: state.moved ? swapOuter(words) : words.map((_, i) => i) });
}

function shuffle(order) {
  const other = order.slice();
  for (let i = other.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [other[i], other[j]] = [other[j], other[i]];
  }
  return other;
}
