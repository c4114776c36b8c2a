// A matrix as a table with its name, the words of its rows and its numbers.
import { el, formatFixed, formula, isolatedWord } from "./dom.js";
import { wordClass } from "./word_chips.js";
import { state } from "./state.js";

const LEVELS = 21; // steps of the colour ramp

// rows, columns: indices of the words they belong to; null for features.
export function matrixTable(name, values, { rows = null, columns = null, digits = 2, shaded = false, id = null } = {}) {
  const word = (place) => el("span", { class: `tag ${wordClass(place)}` }, isolatedWord(state.words[place]));
  const head = columns && el("thead", {}, el("tr", {}, el("td", {}), columns.map((place) => el("th", { scope: "col" }, word(place)))));
  const body = values.map((row, m) =>
    el("tr", { "data-kind": rows && wordClass(rows[m]) },
      el("th", { scope: "row" }, rows ? word(rows[m]) : ""),
      row.map((value) => el("td", { class: shaded ? `h${Math.round(Math.min(Math.max(value, 0), 1) * (LEVELS - 1))}` : null }, formatFixed(value, digits))),
    ),
  );
  return el("figure", { class: "matrix", id },
    el("figcaption", {}, formula(name)),
    el("div", { class: "scroll" }, el("table", { class: "numbers" }, head, el("tbody", {}, body))),
  );
}

// The row of the word under the pointer is highlighted in every matrix.
export function highlightRows() {
  document.addEventListener("pointerover", (event) => {
    const row = event.target.closest?.("tr[data-kind]");
    for (const lit of document.querySelectorAll("tr.lit")) lit.classList.remove("lit");
    if (row) for (const same of document.querySelectorAll(`tr[data-kind="${row.dataset.kind}"]`)) same.classList.add("lit");
  });
}

// One vector as a row of numbers.
export function vectorRow(values, { digits = 3, id = null, label = null } = {}) {
  return el("div", { class: "vector", id, role: "group", "aria-label": label }, values.map((value) => el("span", {}, formatFixed(value, digits))));
}
