// Positional encodings: where each acts and what it enables, and one step for each.
import { choice } from "./choice.js";
import { byId, el, fill, formatDifference } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { strip } from "./heatmap.js";
import { PICTURES, thumbnail } from "./pictures.js";
import { runBoth, state, update } from "./state.js";
import { ABILITIES, PROBE_COUNT, abilityList, comparison, differencesOf, isAble, unchangedNote, yesOrNo } from "./verdict.js";
import { WIDTH } from "./transformer.js";

const STEP_OF = { sinusoidal: "sinusoidal", learned: "learned", rotary: "rope", alibi: "alibi", t5: "t5" };
const CODE_DIFFS = {
  sinusoidal: ["-x = embed(tokens)", "+x = Sinusoidal(width).embed(embed(tokens), positions)"],
  learned: ["-x = embed(tokens)", "+x = LearnedAbsolute(length, width).embed(embed(tokens), positions)"],
  rotary: ["+q, k = Rotary(d).rotate(q, k, positions)", " scores = q @ k.mT / d**0.5"],
  alibi: ["-scores = q @ k.mT / d**0.5", "+scores = q @ k.mT / d**0.5 + ALiBi(heads).bias(positions, positions)"],
  t5: ["-scores = q @ k.mT / d**0.5", "+scores = q @ k.mT / d**0.5 + t5.bias(positions, positions)"],
};

export function positionsStep() {
  fill(byId("positions-controls"),
    choice({ name: "positions-causal", legend: "A word sees", options: [[false, "all words"], [true, "no later word (causal)"]], value: state.causal, change: (causal) => update({ causal }) }),
    choice({ name: "positions-layers", legend: "Layers", options: [[1, "1"], [2, "2"]], value: state.layers, change: (layers) => update({ layers }) }));
  return () => {
    const { causal, layers } = state;
    const caption = `${causal ? "Causal" : "Bidirectional"}, ${layers === 1 ? "one layer" : "two layers"}`;
    fill(byId("abilities-table"), table(caption, (ability, choice) => yesOrNo(isAble(ability, choice))));
    fill(byId("abilities-numbers"), table(`${caption}: largest difference between the two sides of each law, ${PROBE_COUNT} random tokens, float64`,
      ({ law }, choice) => el("span", { class: "gap-size" }, formatDifference(differencesOf(choice)[law])), false));
  };
}

function table(caption, cell, pictures = true) {
  const { causal, layers } = state;
  const head = ["encoding", ...ABILITIES.map(({ text }) => text)].map((text) => el("th", { scope: "col" }, text));
  const rows = Object.entries(ENCODINGS).map(([encoding, { label, site }]) => el("tr", { "data-encoding": encoding },
    el("th", { scope: "row" }, el("div", {}, pictures ? thumbnail(encoding) : null,
      el("span", {}, encoding === "none" ? label : el("a", { href: `#${STEP_OF[encoding]}` }, label), el("span", { class: "statement" }, site)))),
    ABILITIES.map((ability) => el("td", { "data-law": ability.law }, cell(ability, { encoding, causal, layers })))));
  return el("table", { class: "abilities" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
}

// The step of one encoding: its picture, a switch, the two sentences, and its code.
export function encodingStep(encoding) {
  const id = STEP_OF[encoding];
  let on = true;
  fill(byId(`${id}-picture`), PICTURES[encoding]());
  const input = el("input", { type: "checkbox", role: "switch", id: `${id}-on`, checked: on, onchange: () => { on = input.checked; draw(); } });
  const onOrOff = el("span", {});
  fill(byId(`${id}-switch`), el("label", { class: "check" }, input, ` ${ENCODINGS[encoding].name} `, onOrOff));
  fill(byId(`${id}-code`), code(encoding));
  function draw() {
    const used = on ? encoding : "none";
    onOrOff.textContent = on ? "is on" : "is off";
    const { means } = runBoth({ encoding: used });
    fill(byId(`${id}-result`),
      strip(means[0], { id: `${id}-first`, name: "first", label: "vector of the first sentence" }), strip(means[1], { id: `${id}-second`, name: "second", label: "vector of the second sentence" }),
      unchangedNote() ?? comparison([means[0]], [means[1]]),
      abilityList({ encoding: used, causal: false, layers: 1 }));
  }
  return draw;
}

function code(encoding) {
  const model = (name) => `Transformer(${WIDTH}, 4, 2, encoding="${name}", causal=False${name === "learned" ? ", length=8" : ""})`;
  const line = (text) => el("span", { class: text.startsWith("+") ? "added" : text.startsWith("-") ? "removed" : null }, `${text}\n`);
  return [
    el("pre", { class: "diff code-model" }, [" from orderproof.blocks import Transformer  # width, heads, layers", `-model = ${model("none")}`, `+model = ${model(encoding)}`].map(line)),
    el("p", { class: "quiet" }, "or, in your own attention:"), el("pre", { class: "diff code-inside" }, CODE_DIFFS[encoding].map(line)),
  ];
}
