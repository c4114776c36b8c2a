// The choices of encoding, mask, layers and readout, shared by all panels that show them.
import { el } from "./dom.js";
import { ENCODINGS } from "./encodings.js";
import { update, state, subscribe } from "./state.js";

const CHOICES = {
  encoding: { legend: "Encoding", options: Object.entries(ENCODINGS).map(([value, { label }]) => [value, label]) },
  causal: { legend: "A token sees", options: [[false, "all tokens"], [true, "no later one (causal)"]] },
  layers: { legend: "Layers", options: [[1, "1"], [2, "2"]] },
  readout: { legend: "Read", options: [["mean", "the mean"], ["last", "the last token"], ["each", "each token"]] },
};

export function modelSettings(panel, names) {
  const sets = names.map((name) => choice(panel, name));
  subscribe(() => sets.forEach(({ sync }) => sync()));
  return el("div", { class: "settings" }, sets.map(({ fieldset }) => fieldset));
}

function choice(panel, name) {
  const { legend, options } = CHOICES[name];
  const inputs = options.map(([value, label]) => {
    const input = el("input", { type: "radio", name: `${panel}-${name}`, value: String(value), onchange: () => update({ [name]: value }) });
    return { value, input, shown: el("label", {}, input, el("span", {}, label)) };
  });
  const fieldset = el("fieldset", {}, el("legend", {}, legend), el("div", { class: "segments" }, inputs.map(({ shown }) => shown)));
  const sync = () => inputs.forEach(({ value, input }) => (input.checked = state[name] === value));
  return { fieldset, sync };
}

export function modelSummary() {
  const { label } = ENCODINGS[state.encoding];
  const place = state.encoding === "none" ? "no encoding" : label;
  return `${place}, ${state.causal ? "causal" : "bidirectional"}, ${state.layers === 1 ? "1 layer" : "2 layers"}`;
}
