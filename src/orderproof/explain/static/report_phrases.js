// The sentences of a report, as orderproof.report.phrases writes them; the tests compare the two.
import { formatDifference, pluralize } from "./dom.js";

export const LEAK_TITLES = {
  causal: "Where outputs depend on later tokens",
  padding: "Where outputs depend on pad tokens",
  packing: "Where outputs depend on other documents",
  batch: "Where outputs depend on other rows",
};
const NAMED_CALL_MODES = [
  "packed", "blocked", "padded right first", "padded left", "padded right", "no pads", "pads inside", "one real token",
  "one row of pads", "one row without pads",
];

const showsCallMode = (f) =>
  NAMED_CALL_MODES.includes(f.call_mode) || f.call_mode.startsWith("pads of ") || (f.call_mode === "padded" && f.law !== "padding");
const withCallMode = (f, text) => (showsCallMode(f) ? `${text} (${f.call_mode})` : text);
export const lawName = (f) => withCallMode(f, f.law);
export const lawTitle = (f) => (f.code ? `${f.code} ${lawName(f)}` : lawName(f));
export const propertyName = (f) => withCallMode(f, f.trait || f.law);

// "arch:gpt2: causal is proved for every length from 2 to 1,024; sees token order; order enters at 2 lines, first
// modeling_gpt2.py:575; 19 checks passed, none failed."
export function summarySentence({ subject, findings, interrupted }) {
  const first = findings.find((f) => f.kind === "property" && f.outcome !== "not_applicable");
  const clauses = [failureClause(findings), theoremClause(findings), ...(first ? [traitClause(first), entryClause(first)] : [])];
  clauses.push(checkClause(findings));
  if (interrupted) clauses.push(`interrupted after ${pluralize(findings.length, "finding")}`);
  return `${subject.name}: ${clauses.filter(Boolean).join("; ") || "no law was checked"}.`;
}

function traitClause(f) {
  const [verb, ...words] = propertyName(f).split(" ");
  const rest = words.join(" ");
  if (f.outcome === "no") return verb === "is" ? `is not ${rest}` : `does not ${verb.replace(/s$/, "")} ${rest}`;
  const text = `${verb} ${rest}`.trim();
  return f.outcome === "yes" ? text : `whether it ${text} is undecided`;
}

function entryClause(f) {
  const places = [...new Set((f.entries ?? []).map((entry) => entry.source || entry.module).filter(Boolean))];
  if (!places.length || LEAK_TITLES[f.law]) return "";
  if (places.length > 1) return `order enters at ${places.length.toLocaleString("en")} lines, first ${places[0]}`;
  return f.entries_complete === false ? `order enters at ${places[0]} and perhaps elsewhere` : `order enters at one place, ${places[0]}`;
}

function checkClause(findings) {
  const [passed, failed, open] = ["pass", "fail", "undecided"].map((outcome) => groupsWith(findings, outcome).length);
  if (!passed && !failed && !open) return "";
  return [
    passed ? `${pluralize(passed, "check")} passed` : "no check passed",
    failed ? `${failed.toLocaleString("en")} failed` : "none failed",
    ...(open ? [`${open.toLocaleString("en")} undecided`] : []),
  ].join(", ");
}

// "fails OP201 causal at model.py:20": each failed law, laws of one line together.
function failureClause(findings) {
  const byPlace = new Map();
  for (const group of groupsWith(findings, "fail")) {
    const failed = group.find((f) => f.outcome === "fail");
    const place = failed.verdict === "proved" ? "" : placeOf(failed);
    byPlace.set(place, [...(byPlace.get(place) ?? []), lawTitle(failed)]);
  }
  const texts = [...byPlace].map(([place, titles]) => joinWords(titles) + (place ? ` at ${place}` : ""));
  return texts.length ? `fails ${texts.join(", ")}` : "";
}

// "padding and batch are proved for every length from 2 to 512", by range of lengths.
function theoremClause(findings) {
  const names = new Map();
  for (const group of lawGroups(findings)) {
    const first = firstOf(group);
    if (!["pass", "yes"].includes(first.outcome) || !group.every((f) => f.verdict === "proved" && f.theorem?.proved)) continue;
    const lengths = lengthsText(group[0].theorem);
    if (group.some((f) => lengthsText(f.theorem) !== lengths)) continue;
    names.set(lengths, [...(names.get(lengths) ?? []), lawName(first)]);
  }
  return [...names]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([lengths, laws]) => `${joinWords(laws)} ${laws.length === 1 ? "is" : "are"} proved for ${lengths}`)
    .join("; ");
}

const joinWords = (words) => [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ");

// The findings of each law in one call mode, of one kind; the first decides a property, the worst a check.
function lawGroups(findings) {
  const groups = new Map();
  for (const f of findings) {
    if (f.outcome === "not_applicable") continue;
    const key = JSON.stringify([f.code, f.law, f.call_mode, f.kind]);
    groups.set(key, [...(groups.get(key) ?? []), f]);
  }
  return [...groups.values()];
}

const WORST_FIRST = ["fail", "undecided", "pass", "yes", "no"];

function firstOf(group) {
  if (group[0].kind === "property") return group[0];
  return WORST_FIRST.map((outcome) => group.find((f) => f.outcome === outcome)).find(Boolean);
}

export function groupsWith(findings, outcome) {
  return lawGroups(findings).filter((group) => firstOf(group).kind === "check" && firstOf(group).outcome === outcome);
}

// The line to look at: the one to change, else that of the first entry, of the first difference or of the last step.
export function placeOf(f) {
  if (f.fix_source) return f.fix_source;
  const known = (f.entries ?? []).filter((entry) => fileName(entry.source));
  const first = f.witness?.first_violating_module;
  const entry = known.find(({ module }) => first && moduleMatches(module, first)) ?? known[0];
  if (entry) return entry.source;
  if (f.witness && fileName(f.witness.first_violating_source)) return f.witness.first_violating_source;
  return f.proof?.steps.findLast((step) => fileName(step.source))?.source ?? "";
}

const moduleMatches = (pattern, module) => new RegExp(`^${pattern.split("*").map((text) => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`).test(module);

function fileName(source) {
  const name = (source ?? "").replace(/:\d+$/, "").replaceAll("\\", "/").split("/").at(-1);
  return ["", ".", ".."].includes(name) || name.startsWith("<") ? "" : name;
}

// "every length from 2 to 128", "inputs of shape [batch, 9]", "every length of at least 2 where tokens >= 3 and 1 more".
export function lengthsText(theorem) {
  const [first, ...others] = theorem.conditions;
  if (first === undefined) return sizesText(theorem);
  return `${sizesText(theorem)} where ${first}${others.length ? ` and ${others.length} more` : ""}`;
}

function sizesText({ open_length: open, least_length: least, greatest_length: greatest, recorded_shapes: shapes }) {
  if (!open) return shapes?.length ? `inputs of shape${shapes.length > 1 ? "s" : ""} ${joinWords(shapes)}` : "inputs of this size";
  const [from, to] = [least, greatest].map((n) => n?.toLocaleString("en"));
  return greatest === null ? `every length of at least ${from}` : `every length from ${from} to ${to}`;
}

// "for every length from 2 to 128, every batch size of at least 2, every attention mask and every weight".
function proofScope({ scope, theorem }) {
  const weights = scope.weights === "these" ? "these weights" : "every weight";
  if (!theorem.proved) {
    const at = `at ${pluralize(scope.length, "token")} for ${weights}`;
    return `${at}${compared(scope)}; for every length not proved: ${theorem.reason || "no reason is recorded"}`;
  }
  const named = theorem.covers.filter((text) => text !== "no attention mask");
  const inputs = named.length < theorem.covers.length ? named.map((text) => `${text} or none`) : named;
  const layers = theorem.every_depth ? ["every number of layers"] : [];
  const held = [sizesText(theorem), "every batch size of at least 2", ...inputs, ...layers].join(", ");
  const where = theorem.conditions.length ? `, where ${theorem.conditions.join(" and ")}` : "";
  const missing = theorem.reason ? `; for every length not proved: ${theorem.reason}` : "";
  return `for ${held} and every weight${where}${compared(scope)}${missing}`;
}

// "; runs at 16, 33 and 65 tokens and with other attention masks (padded left) agree", which proves nothing of them.
function compared({ compared_lengths: lengths = [], compared_rows: rows = [], compared_masks: masks = [] }) {
  const calls = [];
  if (lengths.length) calls.push(`at ${joinWords(lengths.map((n) => n.toLocaleString("en")))} tokens`);
  if (rows.length) calls.push(`with ${joinWords(rows.map(String))} row${rows.join() === "1" ? "" : "s"}`);
  if (masks.length) calls.push(`with other attention masks (${masks.join(", ")})`);
  return calls.length ? `; runs ${joinWords(calls)} agree` : "";
}

// How an outcome is known: "proved: for every length of at least 2, ...", "measured: 3 comparisons, largest difference 9.4e-07", "witness: ...".
export function evidenceText(f) {
  const evidence = [evidenceKind(f), clause(f)].filter(Boolean).join(": ");
  if (f.kind !== "check" || f.expected !== "fails" || !evidenceKind(f)) return evidence;
  return `${f.outcome === "pass" ? "does not hold, as expected" : "holds, and should not"}; ${evidence}`;
}

function evidenceKind({ verdict, measurement }) {
  if (verdict === "undecided" || verdict === "not_applicable") return "";
  if (verdict === "proved") return "proved";
  return verdict === "held" || measurement ? "measured" : "witness";
}

function clause(f) {
  if (f.vacuous) return "vacuous: no token can see another, so the law says nothing about mixing";
  if (f.witness) return `${f.witness.change}: differs by ${formatDifference(f.witness.relative_difference)}`;
  if (f.verdict === "held" && f.measurement) return comparisonSummary(f.measurement);
  if (f.verdict === "proved" && f.theorem) return proofScope(f);
  if (f.reason) return f.reason;
  return f.proof ? `${pluralize(f.proof.step_count, "step")}, ${valuesUsed(f.scope.tensors_read)}` : "";
}

function valuesUsed([first, ...rest]) {
  if (first === undefined) return "no parameter's values were used";
  return `values used: ${first}${rest.length ? ` and ${rest.length.toLocaleString("en")} more` : ""}`;
}

function comparisonSummary({ comparisons, control_difference: control }) {
  const completed = comparisons.filter(({ float32 }) => float32 !== null);
  const parts = [pluralize(completed.length, "comparison")];
  if (completed.length) {
    const most = completed.reduce((a, b) => (b.float32 > a.float32 ? b : a));
    const float64 = most.float64 === null ? "" : ` (${formatDifference(most.float64)} in float64)`;
    parts[0] += most.float32 ? `, largest difference ${formatDifference(most.float32)}${float64}` : ", no difference";
  }
  if (control !== null) parts.push(`positive control ${formatDifference(control)}`);
  if (completed.length < comparisons.length) parts.push(`${(comparisons.length - completed.length).toLocaleString("en")} more could not be run`);
  return parts.join("; ");
}
