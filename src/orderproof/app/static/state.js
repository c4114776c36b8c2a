// What the reader has chosen, in one place; every panel draws itself from it.
import { LONGEST, WIDTH, meanOfRows, transformer } from "./attention.js";
import { ENCODINGS } from "./encodings.js";
import { permuted } from "./laws.js";
import { vectorOf } from "./random.js";
import { WEIGHTS } from "./weights.js";

const LONGEST_WORD = 24; // characters

// words: as typed; order[m]: which of them stands at place m in the second sentence.
export const state = {
  words: ["cat", "chased", "dog"],
  order: [2, 1, 0],
  encoding: "none",
  causal: false,
  layers: 1,
  read: "mean",
  placed: false, // the proof with the chosen encoding and mask
};

const listeners = [];

export function subscribe(listener) {
  listeners.push(listener);
  listener();
}

export function change(values) {
  Object.assign(state, values);
  for (const listener of listeners) listener();
}

// What a reader takes for one letter, an emoji of several signs among them.
function lettersOf(word) {
  if (!Intl.Segmenter) return Array.from(word);
  return [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(word)].map((part) => part.segment);
}

// Typed text as words, with what was left out and why.
export function readWords(text) {
  const given = text.normalize("NFC").split(/\s+/u).filter(Boolean);
  let cut = 0;
  const words = given.slice(0, LONGEST).map((word) => {
    const parts = lettersOf(word);
    // One letter can carry any number of marks: each is held short too.
    const short = parts.slice(0, LONGEST_WORD).map((part) => part.slice(0, 16)).join("");
    if (short !== word) cut += 1;
    return short;
  });
  const notes = [];
  if (!given.length) notes.push("Type at least one word.");
  if (given.length > LONGEST) notes.push(`The page works with ${LONGEST} words; ${given.length - LONGEST} left out.`);
  if (cut) notes.push(`Words are cut at ${LONGEST_WORD} characters.`);
  if (words.length === 1) notes.push("One word has one order only.");
  return { words, notes };
}

export function chosenModel(values = state) {
  const options = { encoding: ENCODINGS[values.encoding], causal: values.causal, layers: values.layers };
  return (x) => transformer(x, WEIGHTS, options);
}

export const vectors = (words = state.words) => words.map((word) => vectorOf(word, WIDTH));

// Both sentences through the model: outputs a token, and what is read of them.
export function bothRuns() {
  const model = chosenModel();
  const x = vectors();
  const first = model(x);
  const second = model(permuted(x, state.order));
  return { first, second, readFirst: readOf(first), readSecond: readOf(second) };
}

function readOf(output) {
  return state.read === "last" ? output[output.length - 1] : meanOfRows(output);
}

export const movedWords = () => state.order.map((place) => state.words[place]);
