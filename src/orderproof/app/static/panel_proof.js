// Panel 3: the proof in steps, both sides worked out apart and shown as numbers.
//
// The left side starts from the permuted words and runs; the right side runs the words as typed and multiplies the
// result by P (and P^T) at the end. Without positions and mask the reasons beside the steps hold for every P, and the
// numbers show them at one. With them, equal numbers are said of this P alone: |m - n| survives a reversal, and all
// survives the identity.
import { largestDifference, multiply, transpose } from "./attention.js";
import { byId, el, fill, formula, size } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { biasOf, head, headVectors } from "./head.js";
import { ROUNDING, matrixOf, permuted } from "./laws.js";
import { matrix } from "./matrix.js";
import { change, state, subscribe } from "./state.js";

const STEPS = [
  { name: "X′ = P X", why: "The words are permuted, and with them the rows.", pairs: [["X′", "x", "P X"]] },
  {
    name: "Q′ = P Q, K′ = P K, V′ = P V", why: "A projection acts on each row alike: (P X) W = P (X W).",
    pairs: [["Q′", "q", "P Q"], ["K′", "k", "P K"], ["V′", "v", "P V"]],
  },
  { name: "S′ = P S P^T", why: "S′ = Q′ K′^T/√4 = P Q K^T P^T/√4: rows and columns move alike.", pairs: [["S′", "s", "P S P^T"]] },
  { name: "softmax(P S P^T) = P softmax(S) P^T", why: "A softmax along rows minds no order of rows or of columns.", pairs: [["A′", "a", "P A P^T"]] },
  { name: "Z′ = A′ V′ = P A P^T P V = P Z", why: "P^T P = 1: the two permutations meet and cancel.", pairs: [["Z′", "z", "P Z"]] },
  { name: "mean(Z′) = mean(Z)", why: "A mean over the rows forgets their order: one sentence for both.", pairs: [["mean Z′", "pooled", "mean Z"]] },
];

export function proofPanel() {
  const input = byId("proof-placed");
  input.addEventListener("change", () => change({ placed: input.checked }));
  subscribe(draw);
}

function sides(words, order, options) {
  const x = headVectors(words);
  const left = head(permuted(x, order), options);
  const plain = head(x, options);
  const P = matrixOf(order);
  // What is not seen stays apart from the products: 0 times infinity is no number.
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
  const bare = !state.placed || (state.encoding === "none" && !state.causal);
  const options = state.placed ? { encoding: state.encoding, causal: state.causal } : {};
  const { left, right, P } = sides(state.words, state.order, options);
  byId("proof-placed").checked = state.placed;
  byId("proof-what").textContent = described();
  fill(byId("proof-p"), matrix("P", P, { rows: state.order, columns: state.words.map((_, i) => i), digits: 0 }));
  const gaps = STEPS.map(({ pairs }) => Math.max(...pairs.map(([, key]) => largestDifference(left[key], right[key]))));
  const first = gaps.findIndex((gap) => gap > ROUNDING);
  const broken = first === -1 ? null : first;
  const shown = STEPS.map(({ name, why, pairs }, i) => {
    const holds = gaps[i] <= ROUNDING;
    return step(i, name, reason(i, { why, holds, broken, bare }), gaps[i], holds, pairs, { left, right });
  });
  fill(byId("proof-steps"), shown);
  const end = byId("proof-end");
  end.className = bare && broken === null ? "conclusion code-0" : broken === null ? "conclusion" : "conclusion code-1";
  end.textContent = concluded(gaps, broken, bare);
}

function reason(i, { why, holds, broken, bare }) {
  if (i === broken) return `Here order enters. ${because(i)}`;
  if (!holds) return "Order has entered above.";
  if (broken !== null && i > broken) return "Equal again, for these words and this P.";
  return !bare && placedAt(i) ? `${why} What is chosen in panel 1 acts here and is left as it is by this P; not every P does so.` : why;
}

// Whether the encoding or the mask acts at a step.
function placedAt(i) {
  const { embed, rotate, bias } = ENCODINGS[state.encoding];
  return Boolean((i === 0 && embed) || (i === 2 && (rotate || bias || state.causal)));
}

function concluded(gaps, broken, bare) {
  if (broken === null && bare) {
    return "Every step holds, for any words, any weights, any P: f(P X) = P f(X). Feed-forward layers, norms and residual sums act on each row alike and keep it. So the rows are ordered, and the order is not used. ∎";
  }
  if (broken === null) {
    const still = state.order.every((place, m) => place === m) ? " P moves nothing here." : "";
    return `For this P every step holds.${still} That is no proof, and it says nothing of other orders: the encoding and the mask may tell those apart. Move other words in panel 1.`;
  }
  const chain = `The chain breaks at step ${broken + 1}`;
  if (gaps[4] <= ROUNDING) return `${chain}, and for these words and this P the output is the same all the same.`;
  if (gaps[5] <= ROUNDING) return `${chain}: order reaches the rows of the output. Their mean is the same, for these words and this P.`;
  return `${chain}: order reaches the output. That is what an encoding or a mask is for.`;
}

function described() {
  if (!state.placed) return "One head, without positions, every token sees all.";
  const { label } = ENCODINGS[state.encoding];
  return `One head, ${state.encoding === "none" ? "without positions" : label}, ${state.causal ? "causal mask" : "every token sees all"}, as chosen in panel 1.`;
}

function because(i) {
  const { embed, rotate, bias } = ENCODINGS[state.encoding];
  if (embed && i === 0) return "Each place adds a vector of its own, whatever word stands there: X′ + E is not P (X + E).";
  if (rotate) return "Queries and keys are turned by their places, so a score sees how far apart two words stand.";
  if (bias && biasMoves()) return "A bias of the distance is added to each score, and P does not move it along.";
  return "The mask hides what comes later, and which words come later is their order.";
}

// Whether P changes the bias of a pair that the mask shows on both sides: a reversal leaves |m - n| as it is.
function biasMoves() {
  const { order, causal } = state;
  const bias = biasOf(state.encoding, causal);
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
    el("p", { class: "gap" }, "largest difference ", el("strong", { class: "gap-size" }, size(gap)), exact ? ` ${exact}` : "",
      " ", el("span", { class: `verdict ${holds ? "proved" : "refuted"}` }, holds ? "EQUAL" : "NOT EQUAL")),
    el("div", { class: "equation" }, pairs.map(([one, key, other]) => el("div", { class: "both" },
      matrix(one, left[key], { ...options, id: `left-${key}` }),
      el("span", { class: "sign", "aria-hidden": "true" }, largestDifference(left[key], right[key]) <= ROUNDING ? "=" : "≠"),
      matrix(other, right[key], { ...options, id: `right-${key}` }),
    ))),
  );
}
