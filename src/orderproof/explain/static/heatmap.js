// A matrix as colour: blue above zero, orange below. The number of a cell is shown on hover and on focus.
import { byId, el, escapeControls, fill, formatFixed, formula, isolatedWord } from "./dom.js";
import { wordClass } from "./word_chips.js";
import { state } from "./state.js";

// rows, columns: indices of the words they belong to, or texts; null for features. head, names: whether columns and
// rows are headed by them.
export function heatmap(name, values, { rows = null, columns = null, id = null, digits = 3, label = name, marked = null, head: withHead = true, names = true } = {}) {
  const most = Math.max(...values.flat().map(Math.abs).filter(Number.isFinite), 1e-300);
  const nameOf = (keys, i, feature) => (keys === null ? `${feature} ${i + 1}` : typeof keys[i] === "number" ? state.words[keys[i]] : keys[i]);
  const cell = (value, m, n) => el("td", {
    role: "gridcell", class: value === -Infinity ? "hidden" : value < 0 ? "minus" : null, "data-column": n,
    "--v": Number.isFinite(value) ? Math.abs(value) / most : 0,
    "aria-label": escapeControls(`${nameOf(rows, m, "row")}, ${nameOf(columns, n, "feature")}: ${value === -Infinity ? "hidden by the mask" : formatFixed(value, digits)}`),
  });
  const head = columns && withHead && el("thead", {}, el("tr", {}, rows && names && el("td", {}), columns.map((key) => el("th", { scope: "col" }, wordTag(key)))));
  const body = values.map((row, m) => el("tr", { role: "row", class: marked && marked[m] ? "changed" : null },
    rows && names && el("th", { scope: "row", role: "rowheader" }, wordTag(rows[m])), row.map((value, n) => cell(value, m, n))));
  const text = `${label}: ${values.length} by ${values[0].length} numbers; arrow keys read them`;
  return el("figure", { class: "heat", id },
    name ? el("figcaption", {}, formula(name)) : null,
    el("table", { role: "grid", tabindex: 0, "aria-label": escapeControls(text), "data-shape": `${values.length} ${values[0].length}` }, head, el("tbody", {}, body)));
}

const wordTag = (key) => (typeof key === "number" ? el("span", { class: `tag ${wordClass(key)}` }, isolatedWord(state.words[key])) : el("span", { class: "tag" }, isolatedWord(key)));

// One vector: a matrix of one row, with a name in front of it if one is given.
export const strip = (values, { id = null, label, digits = 3, name = null }) => {
  const made = heatmap("", [values], { id, label, digits, rows: name === null ? null : [name] });
  made.classList.add("strip");
  return made;
};

// One box for all matrices: it follows the pointer, or the focus and the arrow keys.
export function showNumbers() {
  const box = byId("cell-number");
  let at = null;
  const show = (cell) => {
    at?.classList.remove("current");
    at = cell;
    if (!cell) {
      box.hidden = true;
      return;
    }
    cell.classList.add("current");
    fill(box, cell.getAttribute("aria-label"));
    box.hidden = false;
    const place = cell.getBoundingClientRect();
    const left = Math.min(Math.max(place.left, 8), document.documentElement.clientWidth - box.offsetWidth - 8);
    box.style.left = `${left}px`;
    box.style.top = `${place.top - box.offsetHeight - 8 > 0 ? place.top - box.offsetHeight - 8 : place.bottom + 8}px`;
  };
  const gridOf = (target) => target.closest?.(".heat table");
  document.addEventListener("pointerover", ({ target }) => show(target.closest?.(".heat td[aria-label]") ?? null));
  document.addEventListener("focusin", ({ target }) => show(gridOf(target)?.querySelector("td[aria-label]") ?? null));
  document.addEventListener("focusout", () => show(null));
  document.addEventListener("scroll", () => show(null), { passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(null);
    const grid = gridOf(event.target);
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!grid || !move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const lines = [...grid.tBodies[0].rows].map((row) => [...row.querySelectorAll("td")]);
    const line = Math.max(0, lines.findIndex((cells) => cells.includes(at)));
    const next = Math.min(Math.max(line + move[0], 0), lines.length - 1);
    const column = Math.max(0, lines[line].indexOf(at));
    show(lines[next][Math.min(Math.max(column + move[1], 0), lines[next].length - 1)]);
  });
}
