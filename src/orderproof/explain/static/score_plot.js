// Scores with their intervals on one axis from the ceiling's side to 1: a row for each encoding, a column for each model.
import { el, escapeControls, formatFixed } from "./dom.js";

const WIDE = 400, ROW = 40, LEFT = 165, RIGHT = 14, BOTTOM = 44, TOP = 8;

// rows: {label, iqm, low, high}, or nothing for an empty row; ceiling: a score or null. Scores are between 0 and 1.
export function scorePlot({ title, rows, ceiling }) {
  const low = Math.min(0.4, ...rows.filter(Boolean).map((row) => row.low), ceiling ?? 1);
  const at = (score) => Number((LEFT + ((score - low) / (1 - low)) * (WIDE - LEFT - RIGHT)).toFixed(2));
  const height = TOP + rows.length * ROW + BOTTOM;
  const y = (i) => TOP + (i + 0.5) * ROW;
  const ticks = [0, 0.25, 0.5, 0.75, 1].filter((score) => score >= low);
  return el("figure", { class: "chart scores" }, el("figcaption", {}, title),
    el("svg", { viewBox: `0 0 ${WIDE} ${height}`, role: "img", "aria-label": escapeControls(`${title}: ${rows.filter(Boolean).map(text).join("; ")}`) },
      ticks.map((score) => el("g", {}, el("line", { class: "grid", x1: at(score), x2: at(score), y1: TOP, y2: height - BOTTOM }),
        el("text", { class: "tick", x: at(score), y: height - 12, "text-anchor": score === 1 ? "end" : "middle" }, String(score)))),
      ceiling === null ? null : el("line", { class: "ceiling", x1: at(ceiling), x2: at(ceiling), y1: TOP, y2: height - BOTTOM }, el("title", {}, `exact ceiling ${formatFixed(ceiling)}`)),
      rows.map((row, i) => row && el("g", { class: "score-row", "data-label": escapeControls(row.label) },
        el("text", { class: "tick", x: 0, y: y(i) + 8 }, escapeControls(row.label.length > 15 ? `${row.label.slice(0, 14)}…` : row.label)),
        el("line", { class: "interval", x1: at(row.low), x2: at(row.high), y1: y(i), y2: y(i) }),
        el("circle", { class: ceiling !== null && row.low > ceiling ? "score above" : "score", cx: at(row.iqm), cy: y(i), r: 9 }, el("title", {}, escapeControls(text(row))))))));
}

const text = ({ label, iqm, low, high }) => `${label}: ${formatFixed(iqm)} (${formatFixed(low)} to ${formatFixed(high)})`;
