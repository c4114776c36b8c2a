// The lab's answer: the scores and curves of a trained comparison, with exact ceilings, from a study's JSON (schema version 3).
import { ENCODINGS } from "./encodings.js";
import { lineChart } from "./line_chart.js";
import { scorePlot } from "./score_plot.js";
import { byId, pluralize, el, fill, formatFixed, escapeControls } from "./dom.js";
import { fileInput, schemaProblem } from "./file_input.js";

const SCHEMA_VERSION = 3;

export function studyPanel() {
  fileInput({ input: "study-file", embedded: "orderproof-study", note: "study-note", check, show });
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const isPoint = (at) => (point) => point && [at, "iqm", "low", "high"].every((key) => isNumber(point[key]));

function check(data) {
  const problem = schemaProblem(data, "a study", SCHEMA_VERSION);
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
    const title = `${cell.causal ? "Causal" : "Bidirectional"}, ${pluralize(cell.layers, "layer")}`;
    groups.set(title, [...(groups.get(title) ?? []), cell]);
  }
  const encodings = [...new Set(study.cells.map((cell) => cell.encoding))];
  const lengths = new Set(study.cells.flatMap((cell) => cell.lengths.map(({ length }) => length)));
  const charts = (draw) => [...groups].map(([title, cells]) => draw(title, cells, encodings, study));
  byId("study-conclusion").hidden = study.name !== "who_did_what"; // it is about this study
  fill(byId("study"),
    el("p", { class: "quiet" }, escapeControls(`${study.question ?? study.name ?? ""}: ${pluralize(study.cells.length, "model")}, measure: ${study.measure ?? "score"}${trainingTime(study)}.`)),
    isScored(study) ? el("div", { class: "scores-by-model", id: "scores" }, charts(scores)) : null,
    el("details", { id: "curves", open: !isScored(study) }, el("summary", {}, "While training"), legend(encodings), el("div", { class: "charts", id: "learning" }, charts(learning))),
    // One length is in the plot of scores: a line needs two.
    lengths.size > 1 ? el("details", { open: true }, el("summary", {}, "By length"), legend(encodings), el("div", { class: "charts", id: "lengths" }, charts(byLength))) : null,
    numbers(study), published(study));
}

const trainingTime = ({ seconds }) => (isNumber(seconds) ? `; ${(seconds / 60).toLocaleString("en", { maximumFractionDigits: 0 })} minutes of training` : "");

// The score at the trained lengths; only shares have the axis from 0 to 1.
const scoreOf = (cell) => cell.lengths.find((point) => point.in_training_range);
const isAlone = (cell, cells) => cells.filter((other) => ["encoding", "causal", "layers"].every((key) => other[key] === cell[key])).length === 1;
const isScored = ({ cells }) => cells.every((cell) => scoreOf(cell) && isAlone(cell, cells)) && cells.every((cell) => [scoreOf(cell).low, scoreOf(cell).high].every((score) => score >= 0 && score <= 1));
const nameOf = (encoding) => (encoding === "none" ? "no positions" : Object.hasOwn(ENCODINGS, encoding) ? ENCODINGS[encoding].label : encoding);

function scores(title, cells, encodings) {
  const found = encodings.map((encoding) => cells.find((cell) => cell.encoding === encoding));
  const rows = found.map((cell) => cell && { ...scoreOf(cell), label: nameOf(cell.encoding) }); // none where a group lacks an encoding
  const ceilings = new Set(rows.filter(Boolean).map(({ ceiling }) => ceiling));
  const [ceiling] = ceilings;
  return scorePlot({ title, rows, ceiling: ceilings.size === 1 && isNumber(ceiling) ? ceiling : null });
}

const series = (cells, encodings, part, at) => cells.map((cell) => ({
  label: escapeControls(cell.label), kind: encodings.indexOf(cell.encoding) % 8,
  points: cell[part].map((point) => ({ x: point[at], y: point.iqm, low: point.low, high: point.high })),
}));

// Models of one chart can have different ceilings at a length; then no line is drawn there.
function ceilingsOf(cells) {
  const ceilings = new Map();
  for (const cell of cells) for (const { length, ceiling } of cell.lengths) if (isNumber(ceiling)) ceilings.set(length, new Set([...(ceilings.get(length) ?? []), ceiling]));
  return [...ceilings].filter(([, known]) => known.size === 1).sort(([a], [b]) => a - b).map(([x, [y]]) => ({ x, y }));
}

function learning(title, cells, encodings, study) {
  const ends = cells.flatMap((cell) => cell.curve.map(({ step }) => step));
  const within = cells.flatMap((cell) => cell.lengths.filter((point) => point.in_training_range));
  const known = [...new Set(within.map(({ ceiling }) => ceiling).filter(isNumber))];
  // The mean over several lengths has several ceilings: a line is drawn only where there is one number.
  const ceiling = known.length === 1 && ends.length ? [{ x: Math.min(...ends), y: known[0] }, { x: Math.max(...ends), y: known[0] }] : [];
  return lineChart({ title, xLabel: "step", yLabel: escapeControls(study.measure ?? "score"), series: series(cells, encodings, "curve", "step"), ceiling });
}

function byLength(title, cells, encodings, study) {
  return lineChart({
    title, xLabel: "length", yLabel: escapeControls(study.measure ?? "score"), series: series(cells, encodings, "lengths", "length"),
    ceiling: ceilingsOf(cells), shaded: Array.isArray(study.trained_lengths) && study.trained_lengths.every(isNumber) ? study.trained_lengths : null,
  });
}

function legend(encodings) {
  const sample = (kind) => el("svg", { viewBox: "0 0 44 12", class: "sample", "aria-hidden": "true" }, el("line", { x1: 1, x2: 43, y1: 6, y2: 6, class: `line k${kind % 8}` }));
  return el("ul", { class: "legend" }, encodings.map((encoding, kind) => el("li", {}, sample(kind), escapeControls(nameOf(encoding)))),
    el("li", {}, el("svg", { viewBox: "0 0 44 12", class: "sample", "aria-hidden": "true" }, el("line", { x1: 1, x2: 43, y1: 6, y2: 6, class: "ceiling" })), "exact ceiling"));
}

function numbers({ cells }) {
  const titles = ["length", "score", "interval", "ceiling", "proved laws"];
  // On a phone a row is a block, and each number has its title in front of it.
  const row = (cell) => cell.lengths.map((at) => el("tr", {}, el("th", { scope: "row" }, escapeControls(cell.label)), [
    `${at.length}${at.in_training_range ? "" : " (not trained)"}`, formatFixed(at.iqm), `${formatFixed(at.low)} to ${formatFixed(at.high)}`,
    isNumber(at.ceiling) ? formatFixed(at.ceiling) : "none known", escapeControls((cell.proved_laws ?? []).join(", ")),
  ].map((text, i) => el("td", { class: i < 4 ? "number" : null, "data-title": titles[i] }, text))));
  const head = ["model", ...titles].map((text, i) => el("th", { scope: "col", class: i && i < 5 ? "number" : null }, text));
  return el("details", { id: "study-numbers" }, el("summary", {}, "The numbers"),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, cells.map(row)))));
}

function published(study) {
  if (!Array.isArray(study.published) || !study.published.length) return null;
  return [el("h3", {}, "Published results"), el("ul", {}, study.published.map(({ label, text, source }) =>
    el("li", {}, el("strong", {}, escapeControls(label ?? "")), ` ${escapeControls(text ?? "")} `, el("span", { class: "quiet" }, escapeControls(source ?? "")))))];
}
