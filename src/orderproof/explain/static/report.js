// The reader's model: the findings of an audit, from a report's JSON (schema version 2).
import { byId, cosine, pluralize, el, fill, formatDifference, table, escapeControls } from "./dom.js";
import { fileInput, schemaProblem } from "./file_input.js";
import { failures } from "./report_failures.js";
import { LEAK_TITLES, evidenceText, groupsWith, lawTitle, lawName, lengthsText, propertyName, summarySentence } from "./report_phrases.js";

const OUTCOMES = { pass: "PASS", fail: "FAIL", undecided: "UNDECIDED", yes: "yes", no: "no", not_applicable: "not applicable" };
const TOKENS_SHOWN = 48;
const SCHEMA_VERSION = 2;

export function reportPanel() {
  fileInput({ input: "report-file", embedded: "orderproof-report", note: "report-note", check, show });
}

function check(data) {
  const problem = schemaProblem(data, "a report of orderproof audit --json", SCHEMA_VERSION);
  if (problem) return problem;
  if (!Array.isArray(data.findings) || typeof data.subject !== "object" || data.subject === null) return "expected a report with a subject and findings.";
  return data.findings.every((f) => f && OUTCOMES[f.outcome] && typeof f.law === "string") ? null : "a finding has no law or no known outcome.";
}

function show(report) {
  const parts = [heading(report), failures(report.findings, witness), swapSection(report), checkSection(report), propertySection(report), excludedSection(report), entryMaps(report), witnesses(report), precisionSection(report)];
  fill(byId("report"), parts.flat(Infinity).filter(Boolean));
}

// Green and red are for checks; a property is in ink.
const outcome = (f) => el("span", { class: `outcome ${f.outcome}` }, f.kind === "property" ? OUTCOMES[f.outcome].toLowerCase() : OUTCOMES[f.outcome]);
const name = (f) => escapeControls(lawTitle(f));

function heading(report) {
  const { subject, interrupted } = report;
  const details = [subject.kind, pluralize(subject.parameters, "parameter"), subject.layers === null || subject.layers === undefined ? "" : pluralize(subject.layers, "layer"), subject.detail];
  const code = interrupted ? null : exitCode(report);
  return [
    el("h3", { id: "report-subject" }, escapeControls(subject.name)),
    el("p", { class: "quiet" }, escapeControls(details.filter(Boolean).join(", "))),
    el("p", { class: `conclusion${code === null ? "" : ` code-${code}`}` }, escapeControls(summarySentence(report))),
  ];
}

function exitCode({ findings }) {
  const unmet = findings.filter((f) => !f.expectation_met);
  if (!findings.length) return null;
  return unmet.some((f) => f.verdict !== "undecided") ? 1 : unmet.length ? 3 : 0;
}

function swapSection({ sentence_pair: pair }) {
  if (!pair) return null;
  const rows = pair.distances.map((row) => [escapeControls(row.condition), escapeControls(row.dtype), cosine(row.cosine), formatDifference(row.max_abs_difference)]);
  const caption = `${escapeControls(pair.first)} / ${escapeControls(pair.second)}`;
  const shown = table({ caption, head: ["condition", "dtype", "cosine", "largest difference"], rows, numbers: [2, 3], name: "swapped" });
  return [el("h3", {}, "Does it see token order?"), shown];
}

const collapsed = (many, what, content) => (many ? el("details", {}, el("summary", {}, pluralize(many, `more ${what}`, `more ${what === "witness" ? "witnesses" : what + "s"}`)), content) : null);

// Failed and undecided checks are open; those that passed are one click away.
function checkSection({ findings }) {
  const made = findings.filter((f) => f.kind === "check" && ["pass", "fail", "undecided"].includes(f.outcome));
  if (!made.length) return null;
  const failed = made.filter((f) => f.outcome === "fail"), open = made.filter((f) => f.outcome === "undecided"), passed = made.filter((f) => f.outcome === "pass");
  const shown = [...failed, ...open];
  return [
    el("h3", {}, "Checks"), shown.length ? findingTable(shown, "report-checks", "check", "result", lawName) : null,
    passed.length ? el("details", { open: !shown.length && passed.length <= 6 }, el("summary", {}, `${pluralize(groupsWith(findings, "pass").length, "check")} passed`), findingTable(passed, "report-passed", "check", "result", lawName)) : null,
  ];
}

function propertySection({ findings }) {
  const described = findings.filter((f) => f.kind === "property" && f.outcome !== "not_applicable");
  return described.length ? [el("h3", {}, "Properties"), findingTable(described, "report-properties", "property", "answer", propertyName)] : null;
}

function excludedSection({ findings }) {
  const excluded = findings.filter((f) => f.outcome === "not_applicable");
  const items = excluded.map((f) => el("li", {}, name(f), f.reason ? `: ${escapeControls(f.reason)}` : ""));
  return excluded.length ? el("details", {}, el("summary", {}, `${pluralize(excluded.length, "law does", "laws do")} not apply`), el("ul", { id: "report-excluded" }, items)) : null;
}

function findingTable(findings, id, title, result, label) {
  const several = new Set(findings.map((f) => f.output).filter(Boolean)).size > 1;
  const rows = findings.map((f) => el("tr", {},
    el("td", {}, escapeControls(f.code)),
    el("th", { scope: "row" }, el("span", { class: "name" }, escapeControls(label(f))), f.output && several ? el("code", { class: "quiet" }, escapeControls(f.output)) : null),
    el("td", {}, outcome(f)),
    el("td", {}, escapeControls(evidenceText(f)), f.statement ? el("div", { class: "statement" }, escapeControls(f.statement)) : null)));
  const head = ["code", title, result, "how it is known"].map((text) => el("th", { scope: "col" }, text));
  return el("div", { class: "scroll" }, el("table", { class: "findings", id }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

function entryMaps({ findings }) {
  const maps = new Map();
  for (const f of findings) {
    if (!f.entries?.length) continue;
    const key = JSON.stringify([f.output, f.entries]);
    maps.set(key, [...(maps.get(key) ?? []), f]);
  }
  const shown = [...maps.values()].map((sharing) => {
    const complete = sharing.map((f) => f.entries_complete).find((value) => value !== null && value !== undefined);
    const ending = complete === true ? `The map is complete${forLengths(sharing)}: order enters here and nowhere else.`
      : complete === false ? "The map is not shown to be complete: order may enter elsewhere too." : "";
    return el("section", { class: "entries" },
      el("h3", {}, LEAK_TITLES[sharing[0].law] ?? "Where order enters"),
      el("p", { class: "quiet" }, sharing.map(name).join(", ")),
      sharing[0].entries.map(entry), el("p", {}, ending));
  });
  return [shown.slice(0, 1), collapsed(shown.length - 1, "map", shown.slice(1))];
}

// As entry_map_phrases.py says it.
function forLengths(sharing) {
  const found = sharing.find((f) => f.completion?.theorem);
  if (!found) return "";
  const { theorem } = found.completion;
  return theorem.proved ? ` for ${lengthsText(theorem)}` : ` at ${pluralize(found.scope.length, "token")}`;
}

function entry({ kind, operator, node_count, module, source, source_line, origin, reason }) {
  const facts = [["module", module || "(the model itself)"], ["source", source], ["origin", origin], ["reason", reason]];
  return [
    el("p", {}, el("code", {}, escapeControls(operator)), " ", el("span", { class: "quiet" }, `${escapeControls(kind)} at ${pluralize(node_count ?? 1, "site")}`)),
    source_line ? el("pre", {}, escapeControls(source_line.trim())) : null,
    el("dl", {}, facts.filter(([, value]) => value).map(([term, value]) => [el("dt", {}, term), el("dd", {}, escapeControls(value))])),
  ];
}

function witness(f) {
  const { tokens_before: before, tokens_after: after, change, relative_difference, first_violating_module: module, weights, seed } = f.witness;
  const origin = `${module ? `first seen in ${module}; ` : ""}${weights === "random" ? `random weights, seed ${seed}` : "the model's own weights"}`;
  const title = f.kind === "check" || !f.trait ? `${lawTitle(f)} does not hold` : `${lawTitle(f)}, ${propertyName(f)}: ${f.outcome}`;
  return el("section", { class: "witness" },
    el("h3", {}, `Witness: ${escapeControls(title)}`), el("p", {}, escapeControls(change)),
    before.length || after.length ? el("div", { class: "pair" }, tokenRow("first run", before, after), tokenRow("second run", after, before)) : null,
    el("p", {}, "difference ", el("strong", {}, formatDifference(relative_difference)), ", ", escapeControls(origin)));
}

// Those of failed checks are with them.
function witnesses({ findings }) {
  const shown = findings.filter((f) => f.witness && f.outcome !== "fail").map(witness);
  return [shown.slice(0, 1), collapsed(shown.length - 1, "witness", shown.slice(1))];
}

function tokenRow(title, tokens, others) {
  const item = (token, i) => el("li", {}, el(token === others[i] ? "span" : "mark", { class: "mono" }, escapeControls(token)), el("small", {}, String(i)));
  const rest = tokens.length - TOKENS_SHOWN;
  return el("div", { class: "run" }, el("h4", {}, title), el("ol", { class: "tokens" }, tokens.slice(0, TOKENS_SHOWN).map(item)),
    rest > 0 ? el("p", { class: "quiet" }, `${pluralize(rest, "more token")} in the JSON`) : null);
}

function precisionSection({ findings }) {
  const [main, rest] = [findings.filter((f) => !f.measurement), findings.filter((f) => f.measurement)];
  const shown = precisionTable(main, "precision");
  if (!shown) return null;
  const note = "The largest relative difference between the two sides of each law. A rounding difference falls by about 2^-29 from float32 to float64; a real difference stays.";
  return [el("h3", {}, "Rounding or not: float32 and float64"), el("p", {}, note), shown, collapsed(rest.length, "finding", precisionTable(rest, "precision-others"))];
}

function precisionTable(findings, kind) {
  const rows = findings.filter((f) => f.deviation && (f.deviation.float32 !== null || f.deviation.float64 !== null))
    .map((f) => [name(f), formatDifference(f.deviation.float32), formatDifference(f.deviation.float64), precisionRatio(f.deviation), logAxis(f.deviation)]);
  return rows.length ? table({ head: ["law", "float32 ○", "float64 ●", "ratio", "1e-18 … 10"], rows, numbers: [1, 2], name: kind }) : null;
}

// The place of a difference between 1e-18 and 10; an exact zero is at the left end.
function logAxis({ float32, float64 }) {
  const place = (value) => `${value > 0 ? Math.min(Math.max((Math.log10(value) + 18) / 19, 0), 1) * 100 : 0}%`;
  const mark = (tag, kind, value) => {
    if (value === null) return null;
    const made = el(tag, { class: kind });
    made.style.left = place(value);
    return made;
  };
  return el("div", { class: "axis", "aria-hidden": "true" }, [1e-16, 1e-7, 1].map((at) => mark("b", null, at)), mark("i", null, float32), mark("i", "f64", float64));
}

function precisionRatio({ float32, float64 }) {
  if (float32 === null || float64 === null) return "";
  if (float32 === 0 || float64 === 0) return float64 === 0 ? "exact" : "";
  const power = Math.round(Math.log2(float64 / float32));
  return power === 0 ? "the same: not rounding" : power < -15 ? `falls by 2^${power}: rounding` : `2^${power}`;
}
