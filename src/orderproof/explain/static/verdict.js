// How far apart two outputs are, in words, and what a model can do.
import { el, formatDifference } from "./dom.js";
import { ROUNDING_TOLERANCE, lawDifferences } from "./laws.js";
import { seededMatrix } from "./seeded_random.js";
import { isUnchanged, model, state } from "./state.js";
import { WIDTH, largestDifference } from "./transformer.js";

export const PROBE_COUNT = 7;
export const PROBE_TOKENS = seededMatrix("fingerprint tokens", PROBE_COUNT, WIDTH);
export const REPLACEMENT_TOKENS = seededMatrix("fingerprint other tokens", PROBE_COUNT, WIDTH);

// What a model can do, and the law that says so: it can where the law fails, or for `causal` where it holds.
export const ABILITIES = [
  { law: "permutation", trueIf: "fails", text: "tells orders apart", statement: "Some order of the words gives outputs that are not just reordered: the model is not permutation-equivariant." },
  { law: "reversal", trueIf: "fails", text: "tells a sentence from its reverse", statement: "The reversed sentence gives outputs that are not just reversed." },
  { law: "prompt_permutation", trueIf: "fails", text: "tells orders of the prompt apart", statement: "Some order of the words before the last changes the output at the last." },
  { law: "causal", trueIf: "holds", text: "ignores later words", statement: "Replacing the words from j on leaves the outputs before j unchanged." },
];

const cache = new Map();

// The differences of one model on the probe tokens; computed once.
export function differencesOf({ encoding, causal, layers }) {
  const key = JSON.stringify([encoding, causal, layers]);
  if (!cache.has(key)) cache.set(key, lawDifferences(model({ encoding, causal, layers }), PROBE_TOKENS, REPLACEMENT_TOKENS));
  return cache.get(key);
}

export const isAble = ({ law, trueIf }, choice) => differencesOf(choice)[law] <= ROUNDING_TOLERANCE === (trueIf === "holds");

export const yesOrNo = (can) => el("span", { class: can ? "can" : "cannot" }, can ? "yes" : "no");

export function abilityList(choice, laws = ["permutation", "reversal"]) {
  return el("dl", { class: "ability-list" }, ABILITIES.filter(({ law }) => laws.includes(law)).map((ability) =>
    el("div", { "data-law": ability.law }, el("dt", { title: ability.statement }, ability.text), el("dd", {}, yesOrNo(isAble(ability, choice))))));
}

// "The same output", the largest difference, and why.
export function comparison(first, second, [one, many] = ["vector", "vectors"]) {
  const difference = largestDifference(first, second);
  const equal = difference <= ROUNDING_TOLERANCE;
  return el("p", { class: "comparison", "data-same": String(equal) },
    el("strong", { class: "answer" }, equal ? `The same ${one}` : `Different ${many}`), " ",
    el("span", { class: "quiet" }, "largest difference ", el("span", { class: "gap-size" }, formatDifference(difference)), note(first, difference, equal)));
}

// Colours are relative to the largest number: a difference below a thirtieth of it is hardly seen.
function note(first, difference, equal) {
  if (equal) return difference > 0 ? ": rounding" : "";
  return difference < Math.max(...first.flat().map(Math.abs)) / 30 ? ": too small for the colours" : "";
}

// A problem to show in place of a comparison, where both sentences are the same.
export const unchangedNote = (order = state.order, text = "Both sentences are the same: move a word of the second.") => (isUnchanged(order) ? el("p", { class: "problem" }, text) : null);
