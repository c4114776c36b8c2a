// Panel 7: the curves of a trained comparison, with the ceilings that are exact, from a study's JSON (schema 1).
import { lineChart } from "./chart.js";
import { byId, count, el, fill, fixed, visible } from "./dom.js";
import { loadable, schemaProblem } from "./loading.js";

export function labPanel() {
  loadable({ input: "study-file", embedded: "orderproof-study", note: "study-note", check, show });
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const isPoint = (at) => (point) => point && [at, "iqm", "low", "high"].every((key) => isNumber(point[key]));

function check(data) {
  const problem = schemaProblem(data, "a study");
  if (problem) return problem;
  if (data.kind !== "study") return `expected kind "study", got ${JSON.stringify(data.kind) ?? "none"}.`;
  if (!Array.isArray(data.cells) || !data.cells.length) return "expected cells, one for each model that was trained; there are none.";
  const right = (cell) => cell && typeof cell.label === "string" && Array.isArray(cell.curve) && Array.isArray(cell.lengths) &&
    cell.curve.every(isPoint("step")) && cell.lengths.every(isPoint("length"));
  return data.cells.every(right) ? null : "a cell has no label, no curve or no lengths, or a number is missing.";
}

function show(study) {
  const groups = new Map();
  for (const cell of study.cells) {
    const title = `${cell.causal ? "Causal" : "Bidirectional"}, ${count(cell.layers, "layer")}`;
    groups.set(title, [...(groups.get(title) ?? []), cell]);
  }
  const encodings = [...new Set(study.cells.map((cell) => cell.encoding))];
  const seconds = isNumber(study.seconds) ? `; ${study.seconds.toLocaleString("en", { maximumFractionDigits: 0 })} s of training` : "";
  fill(byId("study"),
    el("h3", {}, visible(study.question ?? study.study ?? "")),
    el("p", { class: "quiet" }, visible(`${count(study.cells.length, "model")}, measure: ${study.measure ?? "score"}${seconds}. A line is the interquartile mean over seeds, its band an interval; dashed: the exact ceiling of a reader that cannot see order.`)),
    legend(encodings),
    el("h3", {}, "While training"), el("div", { class: "charts", id: "learning" }, [...groups].map(([title, cells]) => learning(title, cells, encodings, study))),
    el("h3", {}, "By length"), el("div", { class: "charts", id: "lengths" }, [...groups].map(([title, cells]) => byLength(title, cells, encodings, study))),
    numbers(study), published(study));
}

const series = (cells, encodings, part, at) => cells.map((cell) => ({
  label: visible(cell.label), kind: encodings.indexOf(cell.encoding) % 8,
  points: cell[part].map((point) => ({ x: point[at], y: point.iqm, low: point.low, high: point.high })),
}));

// At a length where the models of a chart were asked questions with several ceilings there is no one line to draw.
function ceilingsOf(cells) {
  const told = new Map();
  for (const cell of cells) for (const { length, ceiling } of cell.lengths) if (isNumber(ceiling)) told.set(length, new Set([...(told.get(length) ?? []), ceiling]));
  return [...told].filter(([, known]) => known.size === 1).sort(([a], [b]) => a - b).map(([x, [y]]) => ({ x, y }));
}

function learning(title, cells, encodings, study) {
  const ends = cells.flatMap((cell) => cell.curve.map(({ step }) => step));
  const within = cells.flatMap((cell) => cell.lengths.filter(({ trained }) => trained));
  const known = [...new Set(within.map(({ ceiling }) => ceiling).filter(isNumber))];
  // One line only where there is one number: of several lengths the mean has several ceilings.
  const ceiling = known.length === 1 && ends.length ? [{ x: Math.min(...ends), y: known[0] }, { x: Math.max(...ends), y: known[0] }] : [];
  return lineChart({ title, xLabel: "step", yLabel: visible(study.measure ?? "score"), series: series(cells, encodings, "curve", "step"), ceiling });
}

function byLength(title, cells, encodings, study) {
  return lineChart({
    title, xLabel: "length", yLabel: visible(study.measure ?? "score"), series: series(cells, encodings, "lengths", "length"),
    ceiling: ceilingsOf(cells), shaded: Array.isArray(study.trained_lengths) && study.trained_lengths.every(isNumber) ? study.trained_lengths : null,
  });
}

function legend(encodings) {
  const sample = (kind) => el("svg", { viewBox: "0 0 44 12", class: "sample", "aria-hidden": "true" }, el("line", { x1: 1, x2: 43, y1: 6, y2: 6, class: `line k${kind % 8}` }));
  return el("ul", { class: "legend" }, encodings.map((encoding, kind) => el("li", {}, sample(kind), visible(encoding))),
    el("li", {}, el("svg", { viewBox: "0 0 44 12", class: "sample", "aria-hidden": "true" }, el("line", { x1: 1, x2: 43, y1: 6, y2: 6, class: "ceiling" })), "exact ceiling"));
}

function numbers({ cells }) {
  const row = (cell) => cell.lengths.map((at) => el("tr", {},
    el("th", { scope: "row" }, visible(cell.label)), el("td", { class: "number" }, `${at.length}${at.trained ? "" : " (not trained)"}`),
    el("td", { class: "number" }, fixed(at.iqm)), el("td", { class: "number" }, `${fixed(at.low)} to ${fixed(at.high)}`),
    el("td", { class: "number" }, isNumber(at.ceiling) ? fixed(at.ceiling) : "none known"),
    el("td", {}, visible((cell.proved ?? []).join(", ")))));
  const head = ["model", "length", "score", "interval", "ceiling", "proved of it"].map((text, i) => el("th", { scope: "col", class: i && i < 5 ? "number" : null }, text));
  return el("details", { id: "study-numbers" }, el("summary", {}, "The numbers"),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, cells.map(row)))));
}

function published(study) {
  if (!Array.isArray(study.published) || !study.published.length) return null;
  return [el("h3", {}, "Published beside it"), el("ul", {}, study.published.map(({ label, text, source }) =>
    el("li", {}, el("strong", {}, visible(label ?? "")), ` ${visible(text ?? "")} `, el("span", { class: "quiet" }, visible(source ?? "")))))];
}
