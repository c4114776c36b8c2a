// One weight, opened: the products of q . k, the score, and the softmax over all words, number by number.
import { el, formatFixed, formula, isolatedWord } from "./dom.js";

// names: of the features; q, k: what the score compares; bias: what is added to it; row: the scores of this query.
export function openedWeight({ words, n, names, q, k, bias = 0, row, weight }) {
  const products = q.map((value, i) => value * k[i]);
  const sum = products.reduce((total, value) => total + value, 0);
  const grown = row.map(Math.exp);
  const total = grown.reduce((all, value) => all + value, 0);
  const fixed = (value) => formatFixed(value);
  const line = (name, values) => el("tr", {}, el("th", { scope: "row" }, name), values.map((value) => el("td", {}, fixed(value))));
  const step = (name, text) => el("p", { "data-step": name }, formula(text));
  const added = (values) => values.map((value, i) => (i ? ` ${value < 0 ? "−" : "+"} ${fixed(Math.abs(value))}` : fixed(value))).join("");
  return el("div", { class: "opened" },
    el("table", {}, el("caption", { class: "away" }, "query times key, feature by feature"),
      el("thead", {}, el("tr", {}, el("td", {}), names.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, line("q", q), line("k", k), line("q × k", products))),
    step("product", `q · k = ${added(products)} = ${fixed(sum)}`),
    step("score", `score = ${fixed(sum)} / √${q.length}${bias ? ` ${bias < 0 ? "−" : "+"} ${fixed(Math.abs(bias))}` : ""} = ${fixed(row[n])}`),
    el("p", { "data-step": "grown" }, formula(`softmax: e^{${fixed(row[n])}} = ${fixed(grown[n])}, of all words `), words.map((word, i) => [i ? " + " : "", fixed(grown[i]), " (", isolatedWord(word), ")"]), ` = ${fixed(total)}`),
    step("weight", `weight = ${fixed(grown[n])} / ${fixed(total)} = ${fixed(weight)}`));
}

// A weight as a bar that opens its arithmetic; `open` says whether it is open.
export const weightButton = ({ weight, open, label, toggle }) => el("button", { type: "button", class: "weight", title: `weight ${formatFixed(weight)}`, "aria-expanded": String(open), onclick: toggle },
  el("span", { class: "bar", "--v": weight }), el("span", { class: "away" }, `weight ${formatFixed(weight)}: open `, isolatedWord(label)));
