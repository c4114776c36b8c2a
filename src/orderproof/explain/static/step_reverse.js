// A sentence and its reverse: a bias that depends on |m - n| only cannot tell them apart.
import { choice } from "./choice.js";
import { byId, el, fill } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { heatmap, strip } from "./heatmap.js";
import { permuted, reversal } from "./laws.js";
import { slideCells } from "./motion.js";
import { biasMatrix } from "./pictures.js";
import { model, state, vectors } from "./state.js";
import { meanOfRows } from "./transformer.js";
import { abilityList, comparison, unchangedNote } from "./verdict.js";

export function reverseStep() {
  let encoding = "alibi";
  const options = Object.entries(ENCODINGS).filter(([value]) => value !== "none").map(([value, { label }]) => [value, label]);
  fill(byId("reverse-controls"), choice({ name: "reverse-encoding", legend: "Encoding", options, value: encoding, change: (value) => { encoding = value; draw(); } }));
  const order = () => reversal(state.words.length);
  function draw() {
    const run = model({ encoding }), x = vectors();
    const [first, second] = [run(x), run(permuted(x, order()))];
    const means = [meanOfRows(first), meanOfRows(second)];
    fill(byId("reverse-words"), el("p", {}, el("bdi", {}, state.words.join(" "))), strip(means[0], { id: "reverse-first", label: "vector of the sentence" }),
      el("p", {}, el("bdi", {}, permuted(state.words, order()).join(" "))), strip(means[1], { id: "reverse-second", label: "vector of its reverse" }));
    fill(byId("reverse-result"), unchangedNote(order(), "This sentence is its own reverse: type other words.") ?? comparison([means[0]], [means[1]]), abilityList({ encoding, causal: false, layers: 1 }));
    fill(byId("reverse-bias"), ENCODINGS[encoding].bias ? biasFigures() : el("p", { class: "quiet" }, `${ENCODINGS[encoding].label} adds no bias to the scores: it acts on the vectors themselves, position by position.`));
  }
  function biasFigures() {
    const words = state.words.length;
    const bias = biasMatrix(encoding).slice(0, words).map((row) => row.slice(0, words));
    const turned = reversal(words).map((m) => reversal(words).map((n) => bias[m][n]));
    const figure = (name, values, id) => heatmap(name, values, { id, rows: state.words.map((_, i) => String(i + 1)), columns: state.words.map((_, i) => String(i + 1)), digits: 2 });
    const after = figure("both axes reversed", turned, "reverse-bias-after");
    const same = bias.every((row, m) => row.every((value, n) => value === turned[m][n]));
    return [
      el("div", { class: "both bias-pair", "--count": words }, figure("bias: query rows, key columns", bias, "reverse-bias-before"), el("span", { class: "sign", "aria-hidden": "true" }, same ? "=" : "≠"), after),
      el("button", { type: "button", class: "play motion-only", onclick: () => slideCells(after.querySelector("table"), reversal(words), reversal(words)) }, "Reverse both axes"),
      el("p", { class: "quiet" }, same ? "The same matrix: a reversal leaves every distance |m − n| of a query m and a key n as it is." : "Another matrix: keys before and after the query have their own numbers."),
    ];
  }
  return draw;
}
