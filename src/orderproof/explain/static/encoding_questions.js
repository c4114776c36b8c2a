// The questions of the steps that show one encoding each.
import { byId } from "./dom.js";
import { sinusoids } from "./encodings.js";
import { ROUNDING_TOLERANCE } from "./laws.js";
import { WEIGHTS } from "./model_weights.js";
import { biasMatrix } from "./pictures.js";
import { ropeScore } from "./rope_picture.js";
import { MAX_WORDS } from "./transformer.js";

const SHIFT = 5; // positions that both words of RoPE's question move
const WAVES = 16; // features of the sinusoidal question

export const ENCODING_QUESTIONS = {
  sinusoidal: {
    ask: () => "The features of a position are waves. Which will change most from one position to the next?",
    answers: () => [["top", "the first features"], ["bottom", "the last features"], ["same", "all by the same amount"]],
    right: () => {
      const [one, two] = [0, 1].map((position) => sinusoids(position, WAVES));
      const change = (feature) => Math.hypot(one[feature] - two[feature], one[feature + 1] - two[feature + 1]);
      const [top, bottom] = [change(0), change(WAVES - 2)];
      return Math.abs(top - bottom) <= ROUNDING_TOLERANCE ? "same" : top > bottom ? "top" : "bottom";
    },
    why: "They are on top: fast waves tell neighbours apart, slow ones tell far places apart.",
  },
  learned: {
    ask: () => `The table has ${MAX_WORDS} rows. Which vector will the word after the last row get?`,
    answers: () => [["none", "none: the table ends"], ["first", "that of the first row"], ["zeros", "zeros"]],
    right: () => (WEIGHTS["learned.weight"][MAX_WORDS] === undefined ? "none" : "first"),
    why: "Such a model cannot read a longer text than its table.",
  },
  rope: {
    ask: () => `A query and a key both move ${SHIFT} positions on. What will their score do?`,
    answers: () => [["stays", "it stays the same"], ["grows", "it grows"], ["falls", "it falls"]],
    right: () => {
      const gap = ropeScore(2 + SHIFT, 5 + SHIFT) - ropeScore(2, 5);
      return Math.abs(gap) <= ROUNDING_TOLERANCE ? "stays" : gap > 0 ? "grows" : "falls";
    },
    why: "Both hands turn by the same angle. Move the sliders.",
    act: () => {
      byId("rope-shift").value = 2 + SHIFT;
      byId("rope-shift").dispatchEvent(new Event("input"));
    },
  },
  alibi: {
    ask: () => "The query is the last word. Which key will ALiBi weaken most?",
    answers: () => [["near", "the word before it"], ["far", "the first word"], ["same", "all by the same amount"]],
    right: () => {
      const [far, near] = [0, MAX_WORDS - 2].map((n) => biasMatrix("alibi")[MAX_WORDS - 1][n]);
      return far === near ? "same" : far < near ? "far" : "near";
    },
    why: "The penalty grows with the distance.",
  },
  t5: {
    ask: () => "Two keys are equally far from the query, one before it and one after it. Will they get the same bias?",
    answers: () => [["yes", "yes"], ["no", "no"]],
    right: () => (biasMatrix("t5")[3][2] === biasMatrix("t5")[3][4] ? "yes" : "no"),
    why: "Earlier and later keys have buckets of their own, so T5 knows the direction.",
  },
};
