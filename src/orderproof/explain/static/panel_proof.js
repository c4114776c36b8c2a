// Panel 3: the proof of permutation equivariance in steps, with both sides computed separately.
//
// The left side runs the permuted words; the right side runs the words as typed and multiplies the result by P (and
// P^T). Without positions and mask the reasons hold for every P, and the numbers show one P. With them, equal numbers
// hold for this P only: |m - n| is unchanged by a reversal, and everything is unchanged by the identity.
import { largestDifference, multiply, transpose } from "./transformer.js";
import { byId, el, fill, formula, formatDifference } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { scoreBias, attentionHead, headVectors } from "./attention_head.js";
import { ROUNDING_TOLERANCE, permutationMatrix, permuted } from "./laws.js";
import { matrixTable } from "./matrix_table.js";
import { update, state, subscribe } from "./state.js";

const STEPS = [
  { name: "X′ = P X", why: "The words are permuted, and with them the rows.", pairs: [["X′", "x", "P X"]] },
  {
    name: "Q′ = P Q, K′ = P K, V′ = P V", why: "A projection acts on each row in the same way: (P X) W = P (X W).",
    pairs: [["Q′", "q", "P Q"], ["K′", "k", "P K"], ["V′", "v", "P V"]],
  },
  { name: "S′ = P S P^T", why: "S′ = Q′ K′^T/√4 = P Q K^T P^T/√4: rows and columns are permuted in the same way.", pairs: [["S′", "s", "P S P^T"]] },
  { name: "softmax(P S P^T) = P softmax(S) P^T", why: "A softmax along rows is equivariant in rows and columns.", pairs: [["A′", "a", "P A P^T"]] },
  { name: "Z′ = A′ V′ = P A P^T P V = P Z", why: "P^T P = 1: the two permutations meet and cancel.", pairs: [["Z′", "z", "P Z"]] },
  { name: "mean(Z′) = mean(Z)", why: "A mean over the rows does not depend on their order: one vector for both sentences.", pairs: [["mean Z′", "pooled", "mean Z"]] },
];

export function proofPanel() {
  const input = byId("proof-placed");
  input.addEventListener("change", () => update({ useEncoding: input.checked }));
  subscribe(draw);
}

function sides(words, order, options) {
  const x = headVectors(words);
  const left = attentionHead(permuted(x, order), options);
  const plain = attentionHead(x, options);
  const P = permutationMatrix(order);
  // Masked entries are kept out of the products: 0 times infinity is not a number.
  const rows = (value) => multiply(P, value);
  const both = (value) => multiply(multiply(P, value), transpose(P));
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
  return { left: { ...left, pooled: [left.pooled] }, right, P };
}

function draw() {
  const bare = !state.useEncoding || (state.encoding === "none" && !state.causal);
  const options = state.useEncoding ? { encoding: state.encoding, causal: state.causal } : {};
  const { left, right, P } = sides(state.words, state.order, options);
  byId("proof-placed").checked = state.useEncoding;
  byId("proof-what").textContent = modelText();
  fill(byId("proof-p"), matrixTable("P", P, { rows: state.order, columns: state.words.map((_, i) => i), digits: 0 }));
  const gaps = STEPS.map(({ pairs }) => Math.max(...pairs.map(([, key]) => largestDifference(left[key], right[key]))));
  const first = gaps.findIndex((gap) => gap > ROUNDING_TOLERANCE);
  const broken = first === -1 ? null : first;
  const shown = STEPS.map(({ name, why, pairs }, i) => {
    const holds = gaps[i] <= ROUNDING_TOLERANCE;
    return step(i, name, reason(i, { why, holds, broken, bare }), gaps[i], holds, pairs, { left, right });
  });
  fill(byId("proof-steps"), shown);
  const end = byId("proof-end");
  end.className = bare && broken === null ? "conclusion code-0" : broken === null ? "conclusion" : "conclusion code-1";
  end.textContent = conclusion(gaps, broken, bare);
}

function reason(i, { why, holds, broken, bare }) {
  if (i === broken) return `Here order enters. ${breakReason(i)}`;
  if (!holds) return "Order has entered above.";
  if (broken !== null && i > broken) return "Equal again, for these words and this P.";
  return !bare && encodingActsAt(i) ? `${why} The choices of panel 1 act here, and this P leaves them unchanged; other permutations do not.` : why;
}

// True where the encoding or the mask acts at step i.
function encodingActsAt(i) {
  const { embed, rotate, bias } = ENCODINGS[state.encoding];
  return Boolean((i === 0 && embed) || (i === 2 && (rotate || bias || state.causal)));
}

function conclusion(gaps, broken, bare) {
  if (broken === null && bare) {
    return "Every step holds, for any words, any weights, any P: f(P X) = P f(X). Feed-forward layers, norms and residual sums act on each row in the same way and preserve it. So attention without positions is permutation-equivariant: the rows have an order, and it is not used. ∎";
  }
  if (broken === null) {
    const still = state.order.every((place, m) => place === m) ? " P moves nothing here." : "";
    return `For this P every step holds.${still} That is not a proof for other permutations: the encoding and the mask may distinguish those. Move other words in panel 1.`;
  }
  const chain = `The chain breaks at step ${broken + 1}`;
  if (gaps[4] <= ROUNDING_TOLERANCE) return `${chain}, but for these words and this P the output is the same.`;
  if (gaps[5] <= ROUNDING_TOLERANCE) return `${chain}: order reaches the rows of the output. Their mean is the same, for these words and this P.`;
  return `${chain}: order reaches the output. That is the purpose of a positional encoding or a mask.`;
}

function modelText() {
  if (!state.useEncoding) return "One head, without positions, every token sees all.";
  const { label } = ENCODINGS[state.encoding];
  return `One head, ${state.encoding === "none" ? "without positions" : label}, ${state.causal ? "causal mask" : "every token sees all"}, as chosen in panel 1.`;
}

function breakReason(i) {
  const { embed, rotate, bias } = ENCODINGS[state.encoding];
  if (embed && i === 0) return "Each position adds its own vector, for any word: X′ + E is not P (X + E).";
  if (rotate) return "Queries and keys are rotated by their positions, so a score depends on the distance between two words.";
  if (bias && biasIsChanged()) return "A bias that depends on the distance is added to each score, and P does not move it.";
  return "The mask hides later words, and which words are later depends on the order.";
}

// True where P changes the bias of a pair that is visible on both sides: a reversal leaves |m - n| unchanged.
function biasIsChanged() {
  const { order, causal } = state;
  const bias = scoreBias(state.encoding, causal);
  const seen = (m, n) => !causal || (n <= m && order[n] <= order[m]);
  return order.some((p, m) => order.some((q, n) => seen(m, n) && bias(m, n) !== bias(p, q)));
}

function step(i, name, why, gap, holds, pairs, { left, right }) {
  const square = i === 2 || i === 3, pooled = i === 5;
  const rows = pooled ? null : state.order;
  const options = { rows, columns: square ? state.order : null, digits: 3, shaded: i === 3 };
  const exact = gap === 0 ? "exactly" : holds ? "rounding" : "";
  return el("li", { class: holds ? "holds" : "breaks", id: `step-${i + 1}` },
    el("h3", {}, formula(name)),
    el("p", {}, formula(why)),
    el("p", { class: "gap" }, "largest difference ", el("strong", { class: "gap-size" }, formatDifference(gap)), exact ? ` ${exact}` : "",
      " ", el("span", { class: `result ${holds ? "equal" : "unequal"}` }, holds ? "EQUAL" : "NOT EQUAL")),
    el("div", { class: "equation" }, pairs.map(([one, key, other]) => el("div", { class: "both" },
      matrixTable(one, left[key], { ...options, id: `left-${key}` }),
      el("span", { class: "sign", "aria-hidden": "true" }, largestDifference(left[key], right[key]) <= ROUNDING_TOLERANCE ? "=" : "≠"),
      matrixTable(other, right[key], { ...options, id: `right-${key}` }),
    ))),
  );
}
