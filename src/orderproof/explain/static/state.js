// The reader's choices; every panel renders from this state.
import { MAX_WORDS, WIDTH, meanOfRows, transformer } from "./transformer.js";
import { ENCODINGS } from "./encodings.js";
import { permuted } from "./laws.js";
import { wordVector } from "./seeded_random.js";
import { WEIGHTS } from "./model_weights.js";

const LONGEST_WORD = 24; // characters

// words: as typed; order[m]: the index of the word at position m of the second sentence.
export const state = {
  words: ["cat", "chased", "dog"],
  order: [2, 1, 0],
  encoding: "none",
  causal: false,
  layers: 1,
  readout: "mean",
  useEncoding: false, // panel 3 uses the chosen encoding and mask
};

const listeners = [];

export function subscribe(listener) {
  listeners.push(listener);
  listener();
}

export function update(values) {
  Object.assign(state, values);
  for (const listener of listeners) listener();
}

// Grapheme clusters: an emoji of several code points is one letter.
function lettersOf(word) {
  if (!Intl.Segmenter) return Array.from(word);
  return [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(word)].map((part) => part.segment);
}

// Typed text as words, with notes about words that are left out or cut.
export function readWords(text) {
  const typed = text.normalize("NFC").split(/\s+/u).filter(Boolean);
  let cut = 0;
  const words = typed.slice(0, MAX_WORDS).map((word) => {
    const parts = lettersOf(word);
    // A letter can have any number of combining marks: each cluster is cut too.
    const short = parts.slice(0, LONGEST_WORD).map((part) => part.slice(0, 16)).join("");
    if (short !== word) cut += 1;
    return short;
  });
  const notes = [];
  if (!typed.length) notes.push("Type at least one word.");
  if (typed.length > MAX_WORDS) notes.push(`The page uses ${MAX_WORDS} words; ${typed.length - MAX_WORDS} left out.`);
  if (cut) notes.push(`Words are cut at ${LONGEST_WORD} characters.`);
  if (words.length === 1) notes.push("One word has one order only.");
  return { words, notes };
}

export function chosenModel(values = state) {
  const options = { encoding: ENCODINGS[values.encoding], causal: values.causal, layers: values.layers };
  return (x) => transformer(x, WEIGHTS, options);
}

export const vectors = (words = state.words) => words.map((word) => wordVector(word, WIDTH));

// Both sentences through the model: one output for each token, and the readout.
export function runBoth() {
  const model = chosenModel();
  const x = vectors();
  const first = model(x);
  const second = model(permuted(x, state.order));
  return { first, second, readoutFirst: readoutVector(first), readoutSecond: readoutVector(second) };
}

function readoutVector(output) {
  return state.readout === "last" ? output[output.length - 1] : meanOfRows(output);
}

export const permutedWords = () => state.order.map((place) => state.words[place]);
