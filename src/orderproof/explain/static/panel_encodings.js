// Panel 5: the abilities that each positional encoding gives a model, and the lines of code that choose it.
import { WIDTH } from "./transformer.js";
import { byId, el, fill, formatDifference } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { ROUNDING_TOLERANCE, lawDifferences } from "./laws.js";
import { seededMatrix } from "./seeded_random.js";
import { modelSettings } from "./model_settings.js";
import { chosenModel, state, subscribe } from "./state.js";

const TOKENS = 7;
export const PROBE_TOKENS = seededMatrix("fingerprint tokens", TOKENS, WIDTH);
export const REPLACEMENT_TOKENS = seededMatrix("fingerprint other tokens", TOKENS, WIDTH);
const CODE_DIFFS = {
  none: [],
  sinusoidal: ["-x = embed(tokens)", "+x = Sinusoidal(width).embed(embed(tokens), positions)"],
  learned: ["-x = embed(tokens)", "+x = LearnedAbsolute(length, width).embed(embed(tokens), positions)"],
  rotary: ["+q, k = Rotary(d).rotate(q, k, positions)", " scores = q @ k.mT / d**0.5"],
  alibi: ["-scores = q @ k.mT / d**0.5", "+scores = q @ k.mT / d**0.5 + ALiBi(heads).bias(positions, positions)"],
  t5: ["-scores = q @ k.mT / d**0.5", "+scores = q @ k.mT / d**0.5 + t5.bias(positions, positions)"],
};

// What a model can do, and the law that says so: it can where the law fails, or for `causal` where it holds.
const ABILITIES = [
  { law: "permutation", trueIf: "fails", text: "tells orders apart", statement: "Some order of the words gives outputs that are not just reordered: the model is not permutation-equivariant." },
  { law: "prompt_permutation", trueIf: "fails", text: "tells orders of the prompt apart", statement: "Some order of the words before the last changes the output at the last." },
  { law: "reversal", trueIf: "fails", text: "tells a sentence from its reverse", statement: "The reversed sentence gives outputs that are not just reversed." },
  { law: "causal", trueIf: "holds", text: "hides later words", statement: "Replacing the words from j on leaves the outputs before j unchanged." },
];

const cache = new Map();

// The differences of one model; computed once.
export function differencesOf(choice) {
  const key = JSON.stringify([choice.encoding, choice.causal, choice.layers]);
  if (!cache.has(key)) cache.set(key, lawDifferences(chosenModel(choice), PROBE_TOKENS, REPLACEMENT_TOKENS));
  return cache.get(key);
}

export function encodingsPanel() {
  fill(byId("abilities"), ABILITIES.map(({ law, text, statement }) => [el("dt", {}, text), el("dd", {}, statement, " ", el("span", { class: "quiet" }, `Law: ${law}.`))]));
  byId("encodings-settings").append(modelSettings("encodings", ["encoding", "causal", "layers"]));
  subscribe(render);
}

function render() {
  const { causal, layers } = state;
  const head = ["encoding", ...ABILITIES.map(({ text }) => text)].map((text) => el("th", { scope: "col" }, text));
  const rows = Object.entries(ENCODINGS).map(([encoding, { label, site }]) => {
    const differences = differencesOf({ encoding, causal, layers });
    const chosen = encoding === state.encoding;
    return el("tr", { class: chosen ? "here" : null, "data-encoding": encoding, "aria-current": chosen ? "true" : null },
      el("th", { scope: "row" }, label, el("span", { class: "statement" }, site)),
      ABILITIES.map((ability) => el("td", { "data-law": ability.law }, abilityCell(ability, differences[ability.law]))));
  });
  const caption = `${causal ? "Causal" : "Bidirectional"}, ${layers === 1 ? "one layer" : "two layers"}; ${TOKENS} random tokens, float64`;
  fill(byId("abilities-table"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "abilities of each encoding" },
    el("table", { class: "abilities" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows))));
  fill(byId("highlights"), highlights());
  renderCode();
}

function abilityCell({ trueIf }, difference) {
  const can = difference <= ROUNDING_TOLERANCE === (trueIf === "holds");
  return [el("span", { class: `outcome ${can ? "can" : "cannot"}` }, can ? "yes" : "no"), el("span", { class: "gap-size" }, formatDifference(difference))];
}

// Two rows of the table that are easy to overlook, for every choice of settings.
function highlights() {
  const alibi = differencesOf({ encoding: "alibi", causal: false, layers: 2 });
  const [one, two] = [1, 2].map((layers) => differencesOf({ encoding: "none", causal: true, layers }));
  const ability = (law) => ABILITIES.find((each) => each.law === law);
  const show = (law, difference) => abilityCell(ability(law), difference).flatMap((part) => [" ", part]);
  return [
    el("li", { id: "alibi-reversal" }, el("strong", {}, "ALiBi in an encoder cannot tell a sentence from its reverse. "),
      "|i − j| has no direction. Tells orders apart:", show("permutation", alibi.permutation), "; tells a sentence from its reverse:", show("reversal", alibi.reversal), "."),
    el("li", { id: "nope-layers" }, el("strong", {}, "Without positions, a causal model sees the order of its prompt from the second layer on. "),
      "After the first layer each word depends on the words before it. Tells orders of the prompt apart with one layer:", show("prompt_permutation", one.prompt_permutation), "; with two layers:", show("prompt_permutation", two.prompt_permutation), "."),
  ];
}

function codeOf({ encoding, causal, layers }) {
  const model = (name) => `Transformer(${WIDTH}, 4, ${layers}, encoding="${name}", causal=${causal ? "True" : "False"}${name === "learned" ? ", length=8" : ""})`;
  if (encoding === "none") return [` model = ${model("none")}`];
  return [`-model = ${model("none")}`, `+model = ${model(encoding)}`];
}

function renderCode() {
  const line = (text) => el("span", { class: text.startsWith("+") ? "added" : text.startsWith("-") ? "removed" : "" }, `${text}\n`);
  fill(byId("code-model"), codeOf(state).map(line));
  byId("code-none").hidden = state.encoding !== "none";
  const inside = CODE_DIFFS[state.encoding];
  byId("code-inside-note").hidden = byId("code-inside").hidden = !inside.length;
  fill(byId("code-inside"), inside.map(line));
}
