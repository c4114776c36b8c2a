// Elements and texts. Text from the reader or a file becomes a text node: nothing here writes markup.

const SVG = "http://www.w3.org/2000/svg";
const IN_SVG = new Set(["svg", "g", "path", "line", "rect", "circle", "text", "title", "polyline", "marker", "defs"]);

// el("button", {class: "chip", onclick: act, "--v": 0.5}, "text", child); a name with -- sets a variable of the style
export function el(tag, attributes = {}, ...children) {
  const made = IN_SVG.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("--")) made.style.setProperty(name, value); // a style attribute is refused by the page's policy
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const byId = (id) => document.getElementById(id);

export function fill(target, ...children) {
  target.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

// Control and direction characters become escape sequences, so that none takes effect; emoji joiners stay.
export function escapeControls(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, (c) =>
    c === "\u200d" ? c : `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`,
  );
}

// "S′ = P S P^T, W_q, 10000^{2i/48}": what follows ^ is superscript, what follows _ subscript.
export function formula(text) {
  const raised = (piece) => piece.slice(1).replace(/^\{|\}$/g, "");
  const part = (piece) => (piece[0] === "^" ? el("sup", {}, raised(piece)) : piece[0] === "_" ? el("sub", {}, raised(piece)) : piece);
  return el("span", { class: "formula" }, text.split(/([_^](?:\{[^}]*\}|.))/u).filter(Boolean).map(part));
}

// A word in any script, isolated so that its direction does not affect its neighbours.
export const isolatedWord = (text) => el("bdi", {}, escapeControls(text));

// 0.131, -1.250, and never -0.000
export function formatFixed(value, digits = 3) {
  if (value === -Infinity) return "−∞";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

// A difference to two digits, in the format of reports: 0, 2.2e-16, 0.13
export function formatDifference(value) {
  if (value === null || value === undefined) return "not run";
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return "∞";
  const [digits, power] = scientific(value);
  return power >= -4 && power < 2 ? String(Number(value.toPrecision(2))) : Number(digits) + exponent(power);
}

function scientific(value) {
  const [digits, power] = value.toExponential(1).split("e");
  return [digits, Number(power)];
}

const exponent = (power) => `e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;

// A cosine to four digits; one that rounds to 1 as its distance from 1.
export function cosine(value) {
  const gap = 1 - value;
  if (gap === 0) return "1";
  if (Math.abs(gap) >= 5e-5) return value.toFixed(4);
  const [digits, power] = scientific(Math.abs(gap));
  return `1 ${gap > 0 ? "-" : "+"} ${digits}${exponent(power)}`;
}

export const pluralize = (number, one, many = one + "s") => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export function table({ caption, head, rows, numbers = [], name = "" }) {
  const cell = (value, i) => el(i ? "td" : "th", { scope: i ? null : "row", class: numbers.includes(i) ? "number" : null }, value);
  return el("div", { class: "scroll" },
    el("table", { class: name || null },
      caption ? el("caption", {}, caption) : null,
      el("thead", {}, el("tr", {}, head.map((text, i) => el("th", { scope: "col", class: numbers.includes(i) ? "number" : null }, text)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell)))),
    ),
  );
}
