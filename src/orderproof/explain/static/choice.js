// A choice of one of several values, as radio buttons in a row.
import { el } from "./dom.js";

export function choice({ name, legend, options, value, change }) {
  const inputs = options.map(([each, label]) => el("label", {},
    el("input", { type: "radio", name, value: String(each), checked: each === value, onchange: () => change(each) }), el("span", {}, label)));
  return el("fieldset", { id: name }, el("legend", {}, legend), el("div", { class: "segments" }, inputs));
}
