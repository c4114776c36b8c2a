// The reader's choices; every panel renders from this state.
import { MAX_WORDS, WIDTH, meanOfRows, transformer } from "./transformer.js";
import { ENCODINGS } from "./encodings.js";
import { permuted } from "./laws.js";
import { wordVector } from "./seeded_random.js";
import { WEIGHTS } from "./model_weights.js";

const LONGEST_WORD = 24; // characters

// words: as typed; order[m]: the index of the word at position m of the second sentence. Until the reader moves a word
// or leaves the first step, both sentences are the same (moved: false).
export const state = {
  words: ["the", "cat", "chased", "the", "dog"],
  order: [0, 1, 2, 3, 4],
  moved: false,
  causal: false, // for the table of abilities
  layers: 1,
};

const listeners = [];

export function subscribe(listener) {
  listeners.push(listener);
  listener();
}

export function moveWords(order) {
  update({ order, moved: true });
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

export const vectors = (words = state.words) => words.map((word) => wordVector(word, WIDTH));

export const model = ({ encoding = "none", causal = false, layers = 1 } = {}) => (x) => transformer(x, WEIGHTS, { encoding: ENCODINGS[encoding], causal, layers });

// Both sentences through a model: one output row for each word, and their means.
export function runBoth(options) {
  const run = model(options);
  const x = vectors();
  const [first, second] = [run(x), run(permuted(x, state.order))];
  return { first, second, means: [meanOfRows(first), meanOfRows(second)] };
}

export const permutedWords = () => state.order.map((place) => state.words[place]);
// True where an order of the words gives the same sentence; equal words may change places.
export const isUnchanged = (order = state.order) => order.every((place, m) => state.words[place] === state.words[m]);

// The steps after the first compare two different sentences.
export function swapIfUntouched() {
  if (!state.moved) moveWords(swapOuter(state.words));
}

// Swap the outermost words that occur once, so that "the cat chased the dog" becomes "the dog chased the cat".
export function swapOuter(words) {
  const order = words.map((_, i) => i);
  const once = order.filter((i) => words.indexOf(words[i]) === words.lastIndexOf(words[i]));
  const [one, other] = once.length > 1 ? [once[0], once.at(-1)] : [0, words.length - 1];
  [order[one], order[other]] = [other, one];
  return order;
}
