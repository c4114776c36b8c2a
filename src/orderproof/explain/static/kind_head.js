// One head that is written by hand, so that its queries and keys can be read: a query asks for kinds of words, a key
// offers the kind of its word, and a value hands over the word itself.
//
//   X = [kind of the word | vector of the word]    Q = X Wq    K = X Wk    V = X Wv    weights = softmax(Q K^T / sqrt(4))
import { seededMatrix } from "./seeded_random.js";
import { multiply, scores, softmax } from "./transformer.js";
import { KINDS } from "./word_kinds.js";

const WORD_WIDTH = 4;
const ASKS = { article: { noun: 3 }, noun: { adjective: 3, verb: 2 }, verb: { noun: 3 }, adjective: { noun: 2 } };
const OFFER = 2;

const nothing = () => Array.from({ length: WORD_WIDTH }, () => KINDS.map(() => 0));
const identity = (size, scale) => Array.from({ length: size }, (_, i) => Array.from({ length: size }, (__, j) => (i === j ? scale : 0)));

export const KIND_WEIGHTS = {
  query: [...KINDS.map((kind) => KINDS.map((wanted) => ASKS[kind][wanted] ?? 0)), ...nothing()],
  key: [...identity(KINDS.length, OFFER), ...nothing()],
  value: [...nothing(), ...identity(WORD_WIDTH, 1)],
};

// A row for each word; a word without a kind has zeros for it.
export const kindRows = (words, kinds) => words.map((word, i) => [...KINDS.map((kind) => (kind === kinds[i] ? 1 : 0)), ...seededMatrix(`word ${word}`, 1, WORD_WIDTH)[0]]);

export function kindHead(x) {
  const [q, k, v] = ["query", "key", "value"].map((name) => multiply(x, KIND_WEIGHTS[name]));
  const s = scores(q, k, { causal: false });
  const a = softmax(s);
  return { q, k, v, s, a, z: multiply(a, v) };
}

// What a row of Q asks for or a row of K offers, in words: "noun (3)".
export const inWords = (row) => KINDS.flatMap((kind, i) => (row[i] ? [`${kind} (${row[i]})`] : [])).join(", ") || "nothing";
