// The chain of equations from P X to P Z, with both sides computed separately.
//
// The left side runs the permuted words; the right side runs the words as typed and multiplies the result by P (and
// P^T). Without positions and mask the reasons hold for every P, and the numbers show one P. With them, equal numbers
// hold for this P only: |m - n| is unchanged by a reversal, and everything is unchanged by the identity.
import { attentionHead, headVectors, scoreBias } from "./attention_head.js";
import { el, formatDifference, formula } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { heatmap } from "./heatmap.js";
import { ROUNDING_TOLERANCE, permutationMatrix, permuted } from "./laws.js";
import { state } from "./state.js";
import { largestDifference, multiply, transpose } from "./transformer.js";

const STEPS = [
  { name: "X′ = P X", why: "The words are permuted, and with them the rows.", pairs: [["X′", "x", "P X"]] },
  { name: "Q′ = P Q, K′ = P K, V′ = P V", why: "A projection acts on each row alone: (P X) W = P (X W).", pairs: [["Q′", "q", "P Q"], ["K′", "k", "P K"], ["V′", "v", "P V"]] },
  { name: "S′ = P S P^T", why: "Scores S = Q K^T / √d compare queries with keys: rows and columns are permuted in the same way.", pairs: [["S′", "s", "P S P^T"]] },
  { name: "A′ = P A P^T", why: "Weights A = softmax(S), row by row: the softmax of a permuted row is the permuted softmax.", pairs: [["A′", "a", "P A P^T"]] },
  { name: "Z′ = A′ V′ = P Z", why: "Output Z = A V: P A P^T P V = P A V, because P^T P = I: each weight meets the value of its own word.", pairs: [["Z′", "z", "P Z"]] },
  { name: "mean Z′ = mean Z", why: "A mean does not depend on the order of its rows.", pairs: [["mean Z′", "pooled", "mean Z"]] },
];

function sides(words, order, options) {
  const x = headVectors(words);
  const left = attentionHead(permuted(x, order), options);
  const plain = attentionHead(x, options);
  const P = permutationMatrix(order);
  const rows = (value) => multiply(P, value);
  const both = (value) => multiply(multiply(P, value), transpose(P));
  // Masked entries are kept out of the products: 0 times infinity is not a number.
  const hidden = (value) => value.map((row) => row.map((entry) => (entry === -Infinity ? 1 : 0)));
  const scores = (value) => {
    const moved = both(value.map((row) => row.map((entry) => (entry === -Infinity ? 0 : entry))));
    const masked = both(hidden(value));
    return moved.map((row, m) => row.map((entry, n) => (masked[m][n] ? -Infinity : entry)));
  };
  const right = {
    x: rows(plain.x), q: rows(plain.q), k: rows(plain.k), v: rows(plain.v), s: scores(plain.s), a: both(plain.a),
    z: rows(plain.z), pooled: [plain.pooled],
  };
  return { left: { ...left, pooled: [left.pooled] }, right };
}

// The steps as list items and the conclusion; `id` is a prefix for the matrices.
export function chain({ encoding = "none", causal = false, id }) {
  const bare = encoding === "none" && !causal;
  const { left, right } = sides(state.words, state.order, { encoding, causal });
  const gaps = STEPS.map(({ pairs }) => Math.max(...pairs.map(([, key]) => largestDifference(left[key], right[key]))));
  const first = gaps.findIndex((gap) => gap > ROUNDING_TOLERANCE);
  const context = { encoding, causal, bare, broken: first === -1 ? null : first };
  const items = STEPS.map(({ name, why, pairs }, i) => {
    const holds = gaps[i] <= ROUNDING_TOLERANCE;
    return item(i, name, reason(i, why, holds, context), gaps[i], holds, pairs, { left, right, id });
  });
  return { items, broken: context.broken, bare, text: conclusion(gaps, context) };
}

function reason(i, why, holds, { encoding, causal, broken, bare }) {
  if (i === broken) return `Here order enters. ${breakReason(i, encoding, causal)}`;
  if (!holds) return "Order has entered above.";
  if (broken !== null && i > broken) return "Equal again, for these words and this P.";
  return !bare && actsAt(i, encoding, causal) ? `${why} The encoding or mask acts here, and this P leaves it unchanged; other permutations do not.` : why;
}

// True where the encoding or the mask acts at step i.
function actsAt(i, encoding, causal) {
  const { embed, rotate, bias } = ENCODINGS[encoding];
  return Boolean((i === 0 && embed) || (i === 2 && (rotate || bias || causal)));
}

function conclusion(gaps, { broken, bare }) {
  if (broken === null && bare) return "Every equation holds, for any words, any weights, any P: f(P X) = P f(X). This is permutation equivariance.";
  if (broken === null) {
    const still = state.order.every((place, m) => place === m) ? " P moves nothing here." : "";
    return `For this P every equation holds.${still} That is not a proof for other permutations: move other words.`;
  }
  const begin = `The chain breaks at equation ${broken + 1}`;
  if (gaps[4] <= ROUNDING_TOLERANCE) return `${begin}, but for these words and this P the output is the same.`;
  if (gaps[5] <= ROUNDING_TOLERANCE) return `${begin}: order reaches the rows of the output. Their mean is the same, for these words and this P.`;
  return `${begin}: order reaches the output. That is the purpose of a positional encoding or a mask.`;
}

function breakReason(i, encoding, causal) {
  const { embed, rotate, bias } = ENCODINGS[encoding];
  if (embed && i === 0) return "Each position adds its own vector, for any word: X′ + E is not P (X + E).";
  if (rotate) return "Queries and keys are rotated by their positions, so a score depends on the distance between two words.";
  if (bias && biasIsChanged(encoding, causal)) return "A bias that depends on the distance is added to each score, and P does not move it.";
  return "The mask hides later words, and which words are later depends on the order.";
}

// True where P changes the bias of a pair that is visible on both sides: a reversal leaves |m - n| unchanged.
function biasIsChanged(encoding, causal) {
  const { order } = state;
  const bias = scoreBias(encoding, causal);
  const seen = (m, n) => !causal || (n <= m && order[n] <= order[m]);
  return order.some((p, m) => order.some((q, n) => seen(m, n) && bias(m, n) !== bias(p, q)));
}

function item(i, name, why, gap, holds, pairs, { left, right, id }) {
  const options = { rows: i === 5 ? null : state.order, columns: i === 2 || i === 3 ? state.order : null, head: false };
  const side = (text, key, values) => heatmap(text, values[key], { ...options, names: values === left, id: `${id}-${values === left ? "left" : "right"}-${key}` });
  return el("li", { class: holds ? "holds" : "breaks", id: `${id}-step-${i + 1}` },
    el("h3", {}, formula(name), " ", el("span", { class: `result ${holds ? "equal" : "unequal"}` }, holds ? "EQUAL" : "NOT EQUAL")),
    el("div", { class: "equation" }, pairs.map(([one, key, other]) => el("div", { class: "both" },
      side(one, key, left),
      el("span", { class: "sign", "aria-hidden": "true" }, largestDifference(left[key], right[key]) <= ROUNDING_TOLERANCE ? "=" : "≠"),
      side(other, key, right),
    ))),
    el("p", {}, formula(why), " ", el("span", { class: "quiet" }, "Largest difference ", el("span", { class: "gap-size" }, formatDifference(gap)), ".")),
  );
}
