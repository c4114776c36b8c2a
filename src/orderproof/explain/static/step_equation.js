// The equation f(P X) = P f(X), built from three words: move and attend, in both orders, before a symbol is written.
import { attentionHead, headVectors } from "./attention_head.js";
import { choice } from "./choice.js";
import { byId, el, fill, isolatedWord } from "./dom.js";
import { strip } from "./heatmap.js";
import { ROUNDING_TOLERANCE, permuted } from "./laws.js";
import { eased } from "./motion.js";
import { state } from "./state.js";
import { timeline } from "./timeline.js";
import { largestDifference } from "./transformer.js";
import { comparison } from "./verdict.js";
import { wordClass } from "./word_chips.js";

const FALLBACK = ["dog", "bites", "man"];
const ORDER = [2, 1, 0]; // the outer words change places
// Parts of the equation, in words and as a symbol, with the stage at which each is written; stage 5 compares.
const PARTS = [
  ["attend(", "f(", 2], ["move(", "P ", 1], ["words", "X", 0], [")", "", 1], [")", ")", 2], ["=", "=", 5],
  ["move(", "P ", 4], ["attend(", "f(", 3], ["words", "X", 3], [")", ")", 3], [")", "", 4],
];
const stages = (equal) => [
  "Three words, one row of numbers for each: X.", "Above: move the words first. P is the move: P X.", "Then attend to the moved words: f(P X).",
  "Below: attend first, to the words as they stand: f(X).", "Then move the rows of the result: P f(X).",
  equal ? "Row by row the same numbers: the equation may be written." : "The rows differ: with positions the equation is false.",
];

// The first three different words, those that occur once first; in the order of the sentence.
function threeWords(words = state.words) {
  const different = words.map((_, i) => i).filter((i) => words.indexOf(words[i]) === i);
  const once = (i) => words.lastIndexOf(words[i]) === i;
  const chosen = [...different.filter(once), ...different.filter((i) => !once(i))].slice(0, 3).sort((a, b) => a - b);
  return chosen.length === 3 ? chosen.map((i) => words[i]) : FALLBACK;
}

export function equationStep() {
  let encoding = "none", scene = null, words = null;
  fill(byId("equation-controls"), choice({ name: "equation-encoding", legend: "Positions", options: [["none", "off"], ["sinusoidal", "sinusoidal"]], value: encoding, change: (value) => { encoding = value; build(); } }));
  function build() {
    const at = Number(byId("equation-time")?.value ?? 0);
    words = state.words;
    const three = threeWords(), x = headVectors(three);
    const run = (rows) => attentionHead(rows, { encoding }).z;
    const [above, below] = [run(permuted(x, ORDER)), permuted(run(x), ORDER)];
    const equal = largestDifference(above, below) <= ROUNDING_TOLERANCE;
    // Lane 1 starts with rows in the new order, drawn at their old places; lane 2 moves its results.
    const lanes = [
      { id: "above", title: "Move, then attend", from: lane(three, permuted(x, ORDER), ORDER, "X"), to: lane(three, above, ORDER, "f(P X)", "equation-above-rows") },
      { id: "below", title: "Attend, then move", from: lane(three, x, [0, 1, 2], "X"), to: lane(three, below, ORDER, "P f(X)", "equation-below-rows") },
    ];
    fill(byId("equation-lanes"), lanes.map(({ id, title, from, to }) => el("div", { class: "card", id: `equation-${id}` }, el("h3", {}, title),
      el("div", { class: "lane" }, from.element, el("span", { class: "sign", "aria-hidden": "true" }, "attend →"), to.element))));
    const parts = [equation("in words", 0, equal), equation("in symbols", 1, equal)];
    fill(byId("equation-line"), parts.map(({ element }) => element));
    const verdict = el("div", { class: "verdict-line", role: "status" }, comparison(above, below, ["rows", "rows"]));
    scene = timeline({ id: "equation-time", label: "Time: move, attend, compare", stages: stages(equal), start: at, paint: (t) => {
      const part = (stage) => eased(Math.min(Math.max(t - stage, 0), 1));
      lanes[0].from.move(part(0));
      lanes[0].to.show(part(1));
      lanes[0].to.move(1);
      lanes[1].from.move(1);
      lanes[1].to.show(part(2));
      lanes[1].to.move(part(3));
      for (const { write } of parts) write(t);
      verdict.hidden = t < 5;
    } });
    fill(byId("equation-timeline"), scene.element, verdict);
    scene.show(at);
  }
  return { draw: () => words === state.words || build(), play: () => scene.play() };
}

// Rows in their order at the end; move(0) shows them where the words stood before.
function lane(three, rows, order, name, id = null) {
  const items = rows.map((row, m) => el("li", {}, el("span", { class: `chip small ${wordClass(state.words.indexOf(three[order[m]]))}` }, isolatedWord(three[order[m]])), strip(row, { label: `${name}, row of ${three[order[m]]}` })));
  const element = el("ul", { class: "lane-rows", id }, items);
  return {
    element,
    move: (t) => items.forEach((item, m) => item.style.setProperty("--y", (order[m] - m) * (1 - t))),
    show: (t) => {
      element.style.opacity = t;
      element.inert = t === 0;
    },
  };
}

function equation(label, which, equal) {
  const made = PARTS.map((part) => [el("span", { class: part[which] === "=" ? "sign" : null }, part[which] === "=" && !equal ? "≠" : part[which]), part[2]]);
  return {
    element: el("p", { class: "formula-line", id: `equation-${which ? "symbols" : "words"}` }, el("span", { class: "quiet" }, label), made.map(([element]) => element)),
    write: (t) => made.forEach(([element, from]) => element.classList.toggle("unwritten", t < from)),
  };
}
