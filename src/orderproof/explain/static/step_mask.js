// A causal mask alone, without positions: what each word has seen, after one layer and after two.
import { choice } from "./choice.js";
import { byId, el, fill, isolatedWord } from "./dom.js";
import { strip } from "./heatmap.js";
import { permuted } from "./laws.js";
import { model, state, swapOuter, vectors } from "./state.js";
import { abilityList, comparison, unchangedNote } from "./verdict.js";
import { wordClass } from "./word_chips.js";

// The prompt is every word but the last, and its other order swaps two of them.
const promptOrder = (words) => [...(words.length > 2 ? swapOuter(words.slice(0, -1)) : words.slice(0, -1).map((_, i) => i)), words.length - 1];

export function maskStep() {
  let layers = 1;
  fill(byId("mask-controls"), choice({ name: "mask-layers", legend: "Layers", options: [[1, "1"], [2, "2"]], value: layers, change: (value) => { layers = value; draw(); } }));
  function draw() {
    const places = state.words.map((_, i) => i), other = promptOrder(state.words);
    const run = model({ causal: true, layers }), x = vectors();
    const [first, second] = [run(x).at(-1), run(permuted(x, other)).at(-1)];
    fill(byId("mask-first"), seen(places, other), strip(first, { id: "mask-first-strip", label: "output at the last word, first order" }));
    fill(byId("mask-second"), seen(other, places), strip(second, { id: "mask-second-strip", label: "output at the last word, second order" }));
    fill(byId("mask-result"),
      unchangedNote(other, "Both prompts are the same: type a prompt with two different words, and a last word.") ?? comparison([first], [second], ["output at the last word", "outputs at the last word"]),
      abilityList({ encoding: "none", causal: true, layers }, ["prompt_permutation"]));
    byId("mask-why").textContent = layers === 1
      ? "With one layer the last word adds the values of the words themselves, and it sees all of them: a sum, in another order."
      : "With two layers it adds what the first layer made of them, and the marked words have seen something else: the sum changes.";
  }
  return draw;
}

// The words that each word has seen after the first layer; marked where the other order shows it other words.
function seen(order, others) {
  const chip = (place) => el("span", { class: `chip small ${wordClass(place)}` }, isolatedWord(state.words[place]));
  const key = (places) => places.map((place) => state.words[place]).sort().join(" ");
  const rows = order.map((place, m) => {
    const sees = order.slice(0, m + 1);
    const changed = key(sees) !== key(others.slice(0, others.indexOf(place) + 1));
    return el("tr", { class: changed ? "changed" : null }, el("th", { scope: "row" }, chip(place)), el("td", {}, el("span", { class: "quiet" }, "sees "), sees.map((each) => [chip(each), " "])));
  });
  return el("table", { class: "sees" }, el("caption", { class: "away" }, "what each word sees"), el("tbody", {}, rows));
}
