// Panel 6: what an audit found, from a report's JSON (schema version 1).
import { byId, cosine, count, el, fill, size, table, visible } from "./dom.js";
import { loadable, schemaProblem } from "./loading.js";

const VERDICTS = { proved: "PROVED", refuted: "REFUTED", undecided: "UNDECIDED", held: "HELD", not_applicable: "NOT APPLICABLE" };
const EXPECTED = { holds: "holds", fails: "fails", any: "either" };
const TOKENS_SHOWN = 48;

export function modelPanel() {
  loadable({ input: "report-file", embedded: "orderproof-report", note: "report-note", check, show });
}

function check(data) {
  const problem = schemaProblem(data, "a report of orderproof audit --json");
  if (problem) return problem;
  if (!Array.isArray(data.findings) || typeof data.subject !== "object" || data.subject === null) return "expected a report with a subject and findings.";
  return data.findings.every((f) => f && VERDICTS[f.verdict] && typeof f.law === "string") ? null : "a finding has no law or no verdict that is known.";
}

function show(report) {
  const parts = [heading(report), swapped(report), fingerprints(report), entryMaps(report), witnesses(report), ladders(report)];
  fill(byId("report"), parts.flat(Infinity).filter(Boolean));
}

const verdict = (word) => el("span", { class: `verdict ${word}` }, VERDICTS[word]);
const law = (f) => visible(["packed", "blocked"].includes(f.setting) ? `${f.law} (${f.setting})` : f.law);
const name = (f) => (f.code ? `${visible(f.code)} ${law(f)}` : law(f));

function heading({ subject, findings, interrupted }) {
  const details = [subject.kind, count(subject.parameters, "parameter"), subject.layers === null || subject.layers === undefined ? "" : count(subject.layers, "layer"), subject.detail];
  const [said, code] = concluded(findings, interrupted);
  return [
    el("h3", { id: "report-subject" }, visible(subject.name)),
    el("p", { class: "quiet" }, visible(details.filter(Boolean).join(", "))),
    el("p", { class: `conclusion${code === null ? "" : ` code-${code}`}` }, said),
  ];
}

// An audit that was stopped, or that asked nothing, has met no expectation.
function concluded(findings, interrupted) {
  if (interrupted) return [`Interrupted; ${count(findings.length, "finding")} so far.`, null];
  if (!findings.length) return ["No law was asked about.", null];
  const unmet = findings.filter((f) => !f.met);
  if (!unmet.length) return ["Every expectation is met.", 0];
  return [`Not as expected: ${unmet.map((f) => `${name(f)} is ${VERDICTS[f.verdict]}`).join("; ")}.`, unmet.some((f) => f.verdict !== "undecided") ? 1 : 3];
}

function swapped({ swap }) {
  if (!swap) return null;
  const rows = swap.rows.map((row) => [visible(row.condition), visible(row.dtype), cosine(row.cosine), size(row.largest_difference)]);
  const caption = `${visible(swap.first)} / ${visible(swap.second)}`;
  const shown = table({ caption, head: ["condition", "dtype", "cosine", "largest difference"], rows, numbers: [2, 3], name: "swapped" });
  return [el("h3", {}, "Does it know order?"), shown];
}

function inShort(f) {
  if (f.vacuous) return "vacuous: no token can see another, so the law says nothing about mixing";
  if (f.witness) return `${f.witness.change}: differs by ${size(f.witness.difference)}`;
  const made = (f.measurement?.trials ?? []).filter((t) => t.float32 !== null);
  if (f.verdict === "held" && made.length) return `${count(made.length, "comparison")}, at most ${size(Math.max(...made.map((t) => t.float32)))} apart`;
  if (f.reason) return f.reason;
  return f.proof ? count(f.proof.steps, "step") : "";
}

// What a lecture shows: the laws that are proved or refuted, of the first output. The rest is one click away.
function split({ findings }) {
  const main = findings.filter((f) => f.output === findings[0]?.output && !f.measurement && f.verdict !== "not_applicable");
  return [main, findings.filter((f) => !main.includes(f))];
}

const more = (many, what, content) => (many ? el("details", {}, el("summary", {}, count(many, `more ${what}`, `more ${what === "witness" ? "witnesses" : what + "s"}`)), content) : null);

function fingerprints(report) {
  const [main, rest] = split(report);
  return [el("h3", {}, "Verdicts"), verdicts(main, "report-verdicts"), more(rest.length, "finding", verdicts(rest, "report-others"))];
}

function verdicts(findings, id) {
  const rows = findings.map((f) => el("tr", {},
    el("td", {}, visible(f.code)),
    el("th", { scope: "row" }, el("span", { class: "law" }, law(f)), f.output ? el("code", { class: "quiet" }, visible(f.output)) : null),
    el("td", {}, verdict(f.verdict)),
    el("td", {}, EXPECTED[f.expected] ?? "either"),
    el("td", {}, f.met ? "yes" : el("strong", { class: "refuted" }, "no")),
    el("td", {}, f.statement ? el("div", { class: "statement" }, visible(f.statement)) : null, visible(inShort(f)))));
  const head = ["code", "law", "verdict", "expected", "met", "in short"].map((text) => el("th", { scope: "col" }, text));
  return el("div", { class: "scroll" }, el("table", { class: "laws", id }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

function entryMaps({ findings }) {
  const maps = new Map();
  for (const f of findings) {
    if (!f.entries?.length) continue;
    const key = JSON.stringify([f.output, f.entries]);
    maps.set(key, [...(maps.get(key) ?? []), f]);
  }
  const shown = [...maps.values()].map((sharing) => {
    const complete = sharing.map((f) => f.entries_complete).find((told) => told !== null && told !== undefined);
    const order = sharing[0].code.startsWith("OP1");
    const ending = complete === true ? "The map is complete: order enters here and nowhere else."
      : complete === false ? "The map is not shown to be complete: order may enter elsewhere too." : "";
    return el("section", { class: "entries" },
      el("h3", {}, order ? "Where order enters" : "Where it leaks"),
      el("p", { class: "quiet" }, sharing.map(name).join(", ")),
      sharing[0].entries.map(entry), el("p", {}, ending));
  });
  return [shown.slice(0, 1), more(shown.length - 1, "map", shown.slice(1))];
}

function entry({ kind, operator, sites, module, source, text, origin, reason }) {
  const facts = [["module", module || "(the model itself)"], ["source", source], ["origin", origin], ["reason", reason]];
  return [
    el("p", {}, el("code", {}, visible(operator)), " ", el("span", { class: "quiet" }, `${visible(kind)} at ${count(sites ?? 1, "site")}`)),
    text ? el("pre", {}, visible(text.trim())) : null,
    el("dl", {}, facts.filter(([, told]) => told).map(([term, told]) => [el("dt", {}, term), el("dd", {}, visible(told))])),
  ];
}

function witnesses({ findings }) {
  const shown = findings.filter((f) => f.witness).map((f) => {
    const { before, after, change, difference, module, weights, seed } = f.witness;
    const origin = `${module ? `first seen in ${module}; ` : ""}${weights === "random" ? `weights drawn with seed ${seed}` : "its own weights"}`;
    return el("section", { class: "witness" },
      el("h3", {}, `Witness against ${name(f)}`), el("p", {}, visible(change)),
      before.length || after.length ? el("div", { class: "pair" }, run("first run", before, after), run("second run", after, before)) : null,
      el("p", {}, "difference ", el("strong", {}, size(difference)), ", ", visible(origin)));
  });
  return [shown.slice(0, 1), more(shown.length - 1, "witness", shown.slice(1))];
}

function run(title, tokens, others) {
  const item = (token, i) => el("li", {}, el(token === others[i] ? "span" : "mark", { class: "mono" }, visible(token)), el("small", {}, String(i)));
  const rest = tokens.length - TOKENS_SHOWN;
  return el("div", { class: "run" }, el("h4", {}, title), el("ol", { class: "tokens" }, tokens.slice(0, TOKENS_SHOWN).map(item)),
    rest > 0 ? el("p", { class: "quiet" }, `${count(rest, "more token")} in the JSON`) : null);
}

function ladders(report) {
  const [main, rest] = split(report);
  const shown = ladder(main, "ladder");
  if (!shown) return null;
  const told = "The largest relative difference between the two sides of each law. A rounding difference falls by about 2^-29 from float32 to float64; a real one stays.";
  return [el("h3", {}, "Precision ladder"), el("p", {}, told), shown, more(rest.length, "finding", ladder(rest, "ladder-others"))];
}

function ladder(findings, kind) {
  const rows = findings.filter((f) => f.deviation && (f.deviation.float32 !== null || f.deviation.float64 !== null))
    .map((f) => [name(f), verdict(f.verdict), size(f.deviation.float32), size(f.deviation.float64), fall(f.deviation), axis(f.deviation)]);
  return rows.length ? table({ head: ["law", "verdict", "float32 ○", "float64 ●", "ratio", "1e-18 … 10"], rows, numbers: [2, 3], name: kind }) : null;
}

// Where a difference stands between 1e-18 and 10; an exact zero at the left end.
function axis({ float32, float64 }) {
  const place = (value) => `${value > 0 ? Math.min(Math.max((Math.log10(value) + 18) / 19, 0), 1) * 100 : 0}%`;
  const mark = (tag, kind, value) => {
    if (value === null) return null;
    const made = el(tag, { class: kind });
    made.style.left = place(value);
    return made;
  };
  return el("div", { class: "axis", "aria-hidden": "true" }, [1e-16, 1e-7, 1].map((at) => mark("b", null, at)), mark("i", null, float32), mark("i", "f64", float64));
}

function fall({ float32, float64 }) {
  if (float32 === null || float64 === null) return "";
  if (float32 === 0 || float64 === 0) return float64 === 0 ? "exact" : "";
  const power = Math.round(Math.log2(float64 / float32));
  return power === 0 ? "it stays: no rounding" : power < -15 ? `falls by 2^${power}: rounding` : `2^${power}`;
}
