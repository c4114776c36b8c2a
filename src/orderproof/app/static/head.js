// One bare attention head for the panels that show every number: width 4, no norm, no residual sum, no bias vectors.
//
//   Q = X Wq    K = X Wk    V = X Wv    S = Q K^T / sqrt(4)    A = softmax(S)    Z = A V
//
// Where an encoding is chosen it acts as in a model of eight heads on the first of them: ALiBi's slope is 1/2.
import { LONGEST, meanOfRows, multiply, scores, softmax } from "./attention.js";
import { ENCODINGS } from "./encodings.js";
import { drawn, vectorOf } from "./random.js";
import { BUCKETS } from "./weights.js";

export const SIZE = 4;
const EIGHT = 8; // heads, of which this is the first

export const HEAD_WEIGHTS = {
  query: drawn("head query", SIZE, SIZE, 0.6),
  key: drawn("head key", SIZE, SIZE, 0.6),
  value: drawn("head value", SIZE, SIZE, 0.6),
  "learned.weight": drawn("head learned", LONGEST, SIZE),
  "t5.weight": drawn("head t5", BUCKETS, 1),
};

export const headVectors = (words) => words.map((word) => vectorOf(word, SIZE));

// What is added to the score of query m and key n, as a function of both; none where the encoding adds nothing there.
export function biasOf(encoding, causal) {
  const { bias } = ENCODINGS[encoding];
  return bias && bias({ head: 0, heads: EIGHT, causal, weights: HEAD_WEIGHTS });
}

export function head(x, { encoding = "none", causal = false } = {}) {
  const { embed, rotate } = ENCODINGS[encoding];
  const placed = embed ? embed(x, HEAD_WEIGHTS) : x;
  const [q, k, v] = ["query", "key", "value"].map((name) => multiply(placed, HEAD_WEIGHTS[name]));
  const options = { causal, bias: biasOf(encoding, causal) };
  const s = rotate ? scores(rotate(q), rotate(k), options) : scores(q, k, options);
  const a = softmax(s);
  const z = multiply(a, v);
  return { x: placed, q, k, v, s, a, z, pooled: meanOfRows(z) };
}
