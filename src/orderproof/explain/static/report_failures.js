// The failed checks of a report, first and open: the line, the mask, the change, and the witness.
import { el, escapeControls } from "./dom.js";
import { lawTitle, placeOf } from "./report_phrases.js";

export function failures(findings, witnessOf) {
  return findings.filter((f) => f.outcome === "fail").map((f) => {
    const mask = (f.entries ?? []).map((entry) => entry.picture).find((picture) => picture?.kind === "mask");
    const place = f.verdict === "proved" ? "" : placeOf(f);
    const title = el("h3", {}, el("span", { class: "outcome fail" }, "FAIL"), ` ${escapeControls(lawTitle(f))}`);
    if (f.same_cause_as) return el("section", { class: "failed" }, title, el("p", {}, `The cause is that of ${escapeControls(f.same_cause_as)}${place ? `, ${escapeControls(place)}` : ""}.`));
    return el("section", { class: "failed" },
      title,
      el("p", {}, escapeControls(f.statement ?? "")),
      f.expected_because ? el("p", {}, el("span", { class: "quiet" }, "Expected because "), escapeControls(f.expected_because)) : null,
      place ? el("p", {}, el("code", { class: "quiet" }, escapeControls(place))) : null,
      mask ? maskPicture(mask.rows) : null,
      f.remedy ? el("p", {}, el("span", { class: "quiet" }, "To do "), escapeControls(f.remedy)) : null,
      f.remedy_diff ? el("pre", { class: "diff" }, f.remedy_diff.split("\n").map(diffLine)) : null,
      f.witness ? witnessOf(f) : null);
  });
}

const diffLine = (line) => el("span", { class: line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : null }, `${escapeControls(line)}\n`);

function maskPicture(rows) {
  const cell = (mark) => el("td", { class: mark === "!" ? "wrong" : mark === "1" ? "visible" : null }, mark === "!" ? "!" : "");
  return el("figure", { class: "mask-picture" },
    el("table", { "aria-label": "the mask: a row is a query, a column a key" }, el("tbody", {}, rows.map((row) => el("tr", {}, [...row].map(cell))))),
    el("figcaption", {}, "A row is a query, a column a key: grey is seen, white hidden, ! seen and must not be."));
}
