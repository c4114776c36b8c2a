// Panel 5: what each encoding repairs, as a fingerprint of laws, and the lines of code that choose it.
import { WIDTH } from "./attention.js";
import { byId, el, fill, size } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { LAWS, ROUNDING, fingerprint } from "./laws.js";
import { drawn } from "./random.js";
import { settings } from "./settings.js";
import { chosenModel, state, subscribe } from "./state.js";

const TOKENS = 7;
export const PROBE = drawn("fingerprint tokens", TOKENS, WIDTH);
export const OTHERS = drawn("fingerprint other tokens", TOKENS, WIDTH);
const CODE = {
  none: [],
  sinusoidal: ["-x = embed(tokens)", "+x = Sinusoidal(width).embed(embed(tokens), positions)"],
  learned: ["-x = embed(tokens)", "+x = Learned(length, width).embed(embed(tokens), positions)"],
  rotary: ["+q, k = Rotary(d).rotate(q, k, positions)", " scores = q @ k.mT / d**0.5"],
  alibi: ["-scores = q @ k.mT / d**0.5", "+scores = q @ k.mT / d**0.5 + ALiBi(heads).bias(positions, positions)"],
  t5: ["-scores = q @ k.mT / d**0.5", "+scores = q @ k.mT / d**0.5 + t5.bias(positions, positions)"],
};

const known = new Map();

// The fingerprint of one choice; worked out once.
export function fingerprintOf(choice) {
  const key = JSON.stringify([choice.encoding, choice.causal, choice.layers]);
  if (!known.has(key)) known.set(key, fingerprint(chosenModel(choice), PROBE, OTHERS));
  return known.get(key);
}

export function fixPanel() {
  fill(byId("laws-said"), Object.entries(LAWS).map(([law, said]) => [el("dt", {}, law), el("dd", {}, said)]));
  byId("fix-settings").append(settings("fix", ["encoding", "causal", "layers"]));
  subscribe(draw);
}

function draw() {
  const { causal, layers } = state;
  const laws = Object.keys(LAWS);
  const head = ["encoding", ...laws].map((text) => el("th", { scope: "col" }, breakable(text)));
  const rows = Object.entries(ENCODINGS).map(([encoding, { label, site }]) => {
    const found = fingerprintOf({ encoding, causal, layers });
    const here = encoding === state.encoding;
    return el("tr", { class: here ? "here" : null, "data-encoding": encoding, "aria-current": here ? "true" : null },
      el("th", { scope: "row" }, label, el("span", { class: "statement" }, site)),
      laws.map((law) => el("td", { "data-law": law }, told(found[law]))));
  });
  const caption = `${causal ? "Causal" : "Bidirectional"}, ${layers === 1 ? "one layer" : "two layers"}; ${TOKENS} random tokens, float64`;
  fill(byId("fingerprint-table"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "symmetry fingerprint" },
    el("table", { class: "fingerprint" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows))));
  fill(byId("remarkable"), remarkable());
  drawCode();
}

// A long name may break after its underscore, where the screen is narrow.
const breakable = (text) => text.split(/(?<=_)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));

function told(value) {
  const holds = value <= ROUNDING;
  return [el("span", { class: `verdict ${holds ? "proved" : "refuted"}` }, holds ? "HOLDS" : "FAILS"), el("span", { class: "gap-size" }, size(value))];
}

// The two lines of the table worth remembering, whatever is chosen.
function remarkable() {
  const alibi = fingerprintOf({ encoding: "alibi", causal: false, layers: 2 });
  const [one, two] = [1, 2].map((layers) => fingerprintOf({ encoding: "none", causal: true, layers }));
  const show = (value) => [...told(value)].map((part, i) => (i ? [" ", part] : part)).flat();
  return [
    el("li", { id: "alibi-mirror" }, el("strong", {}, "ALiBi in an encoder cannot tell a sentence from its mirror image. "),
      "|i − j| has no direction. order_blind ", show(alibi.order_blind), ", mirror_blind ", show(alibi.mirror_blind), "."),
    el("li", { id: "nope-layers" }, el("strong", {}, "Without positions a causal model is blind to its prompt at one layer, not at two. "),
      "After the first layer each word knows which words stand before it. prompt_blind at one layer ", show(one.prompt_blind), ", at two ", show(two.prompt_blind), "."),
  ];
}

function codeOf({ encoding, causal, layers }) {
  const model = (name) => `Transformer(${WIDTH}, 4, ${layers}, encoding="${name}", causal=${causal ? "True" : "False"}${name === "learned" ? ", length=8" : ""})`;
  if (encoding === "none") return [` model = ${model("none")}`];
  return [`-model = ${model("none")}`, `+model = ${model(encoding)}`];
}

function drawCode() {
  const line = (text) => el("span", { class: text.startsWith("+") ? "added" : text.startsWith("-") ? "removed" : "" }, `${text}\n`);
  fill(byId("code-model"), codeOf(state).map(line));
  byId("code-none").hidden = state.encoding !== "none";
  const inside = CODE[state.encoding];
  byId("code-inside-note").hidden = byId("code-inside").hidden = !inside.length;
  fill(byId("code-inside"), inside.map(line));
}
