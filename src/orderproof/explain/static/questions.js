// The questions of the story: each asks for a prediction before its step shows the answer. What is right is computed.
import { attentionHead, headVectors } from "./attention_head.js";
import { chain } from "./chain.js";
import { byId, escapeControls, pluralize } from "./dom.js";
import { ENCODING_QUESTIONS } from "./encoding_questions.js";
import { ENCODINGS } from "./encodings.js";
import { ROUNDING_TOLERANCE, countDifferent, countOrders, distinctOrders, permuted } from "./laws.js";
import { wordVector } from "./seeded_random.js";
import { model, permutedWords, state, vectors } from "./state.js";
import { mostAsked } from "./step_asks.js";
import { changedHeads } from "./step_heads.js";
import { bareAnswer } from "./step_next.js";
import { shownParts } from "./step_norm.js";
import { WIDTH, largestDifference, meanOfRows } from "./transformer.js";
import { ABILITIES, isAble } from "./verdict.js";
import { KINDS, NO_KIND } from "./word_kinds.js";

const SOME_ORDERS = 24; // orders that decide the answer of the bag of words; its step runs all

const press = (id) => () => byId(id).click();
const same = (one, other) => largestDifference(one, other) <= ROUNDING_TOLERANCE;
const able = (law, choice) => isAble(ABILITIES.find((ability) => ability.law === law), choice);
const yesNo = (yes) => (yes ? "yes" : "no");
const encoder = (encoding) => ({ encoding, causal: false, layers: 1 });
// A word that has another place in the second sentence; where all have the same, any word.
function movedWord() {
  const moved = permutedWords().find((word, m) => word !== state.words[m]);
  return moved === undefined ? "a word" : `“${escapeControls(moved)}”`;
}
const moved = (run) => same(run(permuted(headVectors(state.words), state.order)), permuted(run(headVectors(state.words)), state.order));

export const questionsOf = ({ playEquation, pairs, heads }) => ({
  tokens: {
    ask: () => `In the second sentence ${movedWord()} gets another place. What will its vector do?`,
    answers: () => [["stays", "it stays the same"], ["changes", "it changes"]],
    right: () => (same(vectors(permutedWords()), permuted(vectors(), state.order)) ? "stays" : "changes"),
    why: "A row is looked up by its word, not by its place.", act: press("tokens-swap"),
  },
  asks: {
    ask: () => `Which kind of word will get most of the weight of the query of “${escapeControls(mostAsked().word)}”?`,
    answers: () => [...KINDS, NO_KIND].map((kind) => [kind, kind]),
    right: () => mostAsked().kind,
    why: "The weight goes where a key offers what the query asks for. The largest one is opened below.", act: () => [...document.querySelectorAll("#asks-keys .weight")].reduce((one, two) => (two.title > one.title ? two : one)).click(),
  },
  qkv: {
    ask: () => `In the second sentence ${movedWord()} gets another row. What will its query do?`,
    answers: () => [["stays", "its numbers stay"], ["changes", "its numbers change"]],
    right: () => (moved((x) => attentionHead(x).q) ? "stays" : "changes"),
    why: "A projection reads one row at a time.", act: press("qkv-swap"),
  },
  attention: {
    ask: () => "The same arrows will be added in the order of the second sentence. Where will the last one end?",
    answers: () => [["same", "at the same point"], ["elsewhere", "elsewhere"]],
    right: () => (moved((x) => attentionHead(x).z) ? "same" : "elsewhere"),
    why: "Without positions, each weight stays with the value of its word, and a sum has no order.", act: press("attention-swap"),
  },
  equation: {
    ask: () => "Move the words and then attend, or attend and then move the rows: will the rows be the same?",
    answers: () => [["yes", "yes, the same"], ["no", "no, different"]],
    right: () => yesNo(moved((x) => attentionHead(x).z)),
    why: "It does not matter which comes first: that is the equation.", act: playEquation,
  },
  rows: {
    ask: () => "Now for all words, part by part: how many of the six equations below will hold?",
    answers: () => [["six", "all six"], ["some", "those before softmax"]],
    right: () => (chain({ id: "rows" }).broken === null ? "six" : "some"),
    why: "Each part keeps the move; the last one forgets it.", act: () => document.querySelector("#rows-controls .play").click(),
  },
  norm: {
    ask: () => "One word is replaced by another. How many rows will come out of Norm changed?",
    answers: () => [["own", "its own row only"], ["all", "every row"]],
    right: () => {
      const x = vectors(), { rows } = shownParts()[0];
      const [before, after] = [rows(x), rows([wordVector("another word", WIDTH), ...x.slice(1)])];
      return same(before.slice(1), after.slice(1)) ? "own" : "all";
    },
    why: "Norm reads one row at a time; only attention reads several.",
  },
  mean: {
    ask: () => `These words make ${pluralize(countOrders(state.words), "different sentence")}. How many different means will a transformer without positions give?`,
    answers: () => [["one", "one"], ["each", "one for each sentence"], ["some", "some number between"]],
    right: () => {
      const x = vectors(), run = model(), means = [];
      for (const order of distinctOrders(state.words)) if (means.push(meanOfRows(run(permuted(x, order)))) >= SOME_ORDERS) break;
      const different = countDifferent(means);
      return different === 1 ? "one" : different === means.length ? "each" : "some";
    },
    why: "All orders of a bag of words look the same.",
  },
  positions: {
    ask: () => "The table below has five encodings. How many of them let an encoder of one layer tell orders apart?",
    answers: () => [[5, "all five"], [2, "the two that are added to the words"], [0, "none"]],
    right: () => Object.keys(ENCODINGS).filter((encoding) => encoding !== "none" && able("permutation", encoder(encoding))).length,
    why: "Wherever position enters, words, scores or rotations, the sum depends on it.",
  },
  ...ENCODING_QUESTIONS,
  break: {
    ask: () => "RoPE turns queries and keys by their places. Which equation will fail first?",
    answers: () => [["0", "1, the rows"], ["1", "2, queries and keys"], ["2", "3, the scores"], ["4", "5, the output"], ["null", "none"]],
    right: () => String(chain({ encoding: "rotary", id: "break" }).broken),
    why: "The queries are turned when scores are made, so the scores are the first to know the places.",
  },
  reverse: {
    ask: () => "In an encoder with ALiBi: will a sentence and its reverse get the same vector?",
    answers: () => [["yes", "yes, the same"], ["no", "no, different"]],
    right: () => yesNo(!able("reversal", encoder("alibi"))),
    why: "A distance is the same in both directions.",
  },
  mask: {
    ask: () => "One layer with a causal mask and without positions: will the row at “?” tell the two prompts apart?",
    answers: () => [["yes", "yes"], ["no", "no"]],
    right: () => yesNo(able("prompt_permutation", { encoding: "none", causal: true, layers: 1 })),
    why: "The last word sees all words, as in an encoder. Try two layers.",
  },
  "next-word": {
    ask: () => "“the cat chased the dog so the …”: what will the decoder without positions and with one layer expect?",
    answers: () => [["second", "dog"], ["first", "cat"], ["half", "a half for each"]],
    right: bareAnswer,
    why: "It cannot tell this sentence from “the dog chased the cat so the …”. Swap the animals and watch the bars.", act: press("next-swap"),
  },
  minilm: {
    ask: () => "All rows of its position table are made equal. What will the cosine of the two vectors be?",
    answers: () => [["one", "1, the same direction"], ["below", "below 1"]],
    right: () => (pairs[0].rows.filter((row) => row.condition === "without positions" && row.dtype === "float64").every((row) => Math.abs(1 - row.cosine) <= ROUNDING_TOLERANCE) ? "one" : "below"),
    why: "Training does not help a model that cannot see the places.",
  },
  heads: {
    ask: () => "With all positions equal, how many of the 72 heads will still weigh the words differently in the second sentence?",
    answers: () => [["none", "none"], ["some", "those of the upper layers"], ["all", "all"]],
    right: () => {
      const changed = changedHeads(heads[0].gaps[1]), last = heads[0].gaps[1].at(-1);
      return changed === 0 ? "none" : changed === changedHeads([last]) ? "some" : "all";
    },
    why: "A layer that cannot tell the orders apart gives the next layer nothing to tell them by.", act: () => document.querySelector("#heads-positions input[value='1']").click(),
  },
});
