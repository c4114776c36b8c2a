"""The page of the atlas, in Markdown: the rows counted, grouped and listed. The same rows give the same page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orderproof.auditing.atlas_counts import COUNTED, SHOULD, assumptions, code, counts, law_of, places, undecided
from orderproof.auditing.atlas_rows import CATEGORIES, LawRow, Row
from orderproof.laws.measured import find, measured_laws
from orderproof.report import words

ADVICE = "; give example inputs it accepts"
EXAMPLES = 3  # how many architectures are named beside a reason
_SIGNS = {"proved": "P", "refuted": "R", "undecided": "?", "held": "H", "not_applicable": "-"}
_ERRORS = ("error in the prover", "internal error", "contradict")

HEAD = """# The atlas

Written by `orderproof atlas --markdown docs/atlas.md`; not edited by hand. The rows are in `atlas.json`.

The text and vision architectures that transformers knows. Each is built from its default configuration made tiny (two
layers, a few dozen features), with random weights and every parameter moved off its initial value (and batch norms
with the statistics of eight samples, as training would leave them), in a process of its own with a limit on time and
memory, and audited: every law that can be proved, on its first output and on the others, and every law of behaviour
that can be measured. *Proved* rests on the recorded graph and holds, over the real numbers and for finite
activations, for every input of that length under the assumptions listed; *refuted* rests on two runs that differ
beyond rounding; *held* is no counterexample in the trials made. *Undecided* is none of these, and says which operator
had the last word."""

Cells = Sequence[str]


def page(rows: Sequence[Row], *, asked: int, date: str, machine: str) -> str:
    """The page. `rows` by name; `asked`: how many there are to be."""
    audited = [row for row in rows if row.laws]
    sections = [
        HEAD,
        "\n".join(f"- {fact}" for fact in _facts(rows, asked, date, machine)),
        _summary(audited),
        *_errors(audited),
        _unexpected(audited),
        _vacuous(audited),
        _undecided(audited),
        _assumptions(audited),
        _maps(audited),
        _behaviour(audited),
        _others(audited),
        _failures(rows),
        _same(rows),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _facts(rows: Sequence[Row], asked: int, date: str, machine: str) -> Iterator[str]:
    same = sum(1 for row in rows if row.same_as)
    failed = [row for row in rows if row.failed and not row.laws]
    yield f"date: {date}"
    yield f"machine: {machine}"
    for name, values in (
        ("orderproof", {r.orderproof for r in rows}),
        ("torch", {r.torch for r in rows}),
        ("transformers", {r.transformers for r in rows}),
    ):
        yield f"{name}: {', '.join(sorted(values)) or '-'}"
    shown = {"default": "SDPA where the model has it, else eager"}
    yield f"attention: {', '.join(sorted({shown.get(r.attention, r.attention) for r in rows})) or '-'}"
    state = "all" if len(rows) >= asked else f"**{len(rows):,}, the others are not yet done**"
    yield f"finished: {state} of {words.count(asked, 'architecture')}"
    done = len(rows) - same - len(failed)
    yield f"of these {done:,} have verdicts, {same:,} are another one by another name, {len(failed):,} have none"
    yield f"time: {sum(row.seconds for row in rows):,.0f} s in all, summed over the processes"


def _summary(rows: Sequence[Row]) -> str:
    counted = counts(rows)
    used = [verdict for verdict in COUNTED if any(each[verdict] for each in counted.values())]
    lines = [
        [law, kind, SHOULD[expected], f"{sum(found.values()):,}", *(f"{found[verdict]:,}" for verdict in used)]
        for (law, kind, expected), found in counted.items()
    ]
    head = ["law", "kind", "should", "architectures", *(verdict.replace("_", " ") for verdict in used)]
    said = {f"{each.code} {each.law}": find(each.law).statement for row in rows for each in row.laws}
    text = "\n".join(f"- {law}: {statement}" for law, statement in sorted(said.items()))
    return "\n\n".join(
        ["## Verdicts", "Of the first output, by law and kind of model.", text, _table(head, lines, right=3)]
    )


def _errors(rows: Sequence[Row]) -> Iterator[str]:
    wrong = [
        [row.name, law_of(each), code(each.reason)]
        for row in rows
        for each in (*row.laws, *row.others)
        if any(sign in each.reason for sign in _ERRORS)
    ]
    if wrong:
        text = "A proof that two runs contradict, or an audit that broke: faults of orderproof, to be mended."
        yield f"## Faults of orderproof\n\n{text}\n\n" + _table(["architecture", "law", "what happened"], wrong)


def _unexpected(rows: Sequence[Row]) -> str:
    lines = [
        [row.name, row.kind, law_of(each), f"{each.verdict}, should {SHOULD[each.expected]}",
         code(_seen(each)), code(_short(each))]
        for row in rows
        for each in row.laws
        if not each.met and each.verdict != "undecided"
    ]  # fmt: skip
    title = "## Not as expected"
    if not lines:
        return f"{title}\n\nNone: every verdict reached is the one expected of its kind of model."
    text = (
        "Decided, and not what is expected of that kind of model: a property of the architecture, "
        "a defect of it, or a kind read wrongly."
    )
    return f"{title}\n\n{text}\n\n" + _table(
        ["architecture", "kind", "law", "verdict", "what was seen", "where"], lines
    )


def _short(each: LawRow) -> str:
    return each.reason.split(": ", 1)[0] if each.operator else ""


def _seen(each: LawRow) -> str:
    largest = each.deviation.float64 if each.deviation.float64 is not None else each.deviation.float32
    return each.witness or each.reason or (f"two runs differ by {words.size(largest)}" if largest is not None else "")


def _vacuous(rows: Sequence[Row]) -> str:
    found = [f"{row.name} ({law_of(each)})" for row in rows for each in row.laws if each.vacuous]
    if not found:
        return ""
    return "## Vacuous proofs\n\nProved because no token's output depends on another token: " + ", ".join(found) + "."


def _undecided(rows: Sequence[Row]) -> str:
    lines = [
        [f"{len(who):,}", law, code(operator) if operator else "-", code(who[0][1].cause or _plain(who[0][1])),
         _named([name for name, _ in who])]
        for law, operator, _, who in undecided(rows)
    ]  # fmt: skip
    if not lines:
        return "## Undecided\n\nNone."
    text = (
        "By the operator that had the last word. Shown is the reason in the first example; sizes differ in the others."
    )
    return f"## Undecided\n\n{text}\n\n" + _table(["times", "law", "operator", "reason", "examples"], lines, left=4)


def _assumptions(rows: Sequence[Row]) -> str:
    lines = [[f"{times:,}", law, text.replace("|", "\\|")] for (law, text), times in assumptions(rows)]
    if not lines:
        return ""
    text = "What the proofs of the first output rest on, with the number of proofs that do."
    return f"## Assumptions\n\n{text}\n\n" + _table(["proofs", "law", "assumption"], lines, left=3)


def _plain(each: LawRow) -> str:
    return each.reason.removesuffix("; no witness was found")


def _maps(rows: Sequence[Row]) -> str:
    behaviour = {law.name for law in measured_laws()}
    laws = sorted({law_of(each) for row in rows for each in row.laws if each.law not in behaviour})
    lines, complete, mapped = [], 0, 0
    for row in rows:
        verdicts = {law_of(each): each for each in row.laws}
        blind = next((each for each in row.laws if each.code == "OP101"), None)
        done = blind.entries_complete if blind is not None else None
        mapped += done is not None
        complete += done is True
        marks = [_mark(verdicts.get(c)) for c in laws]
        lines.append(
            [row.name, row.kind, *marks, {True: "yes", False: "no", None: "-"}[done], "; ".join(places(row.entries))]
        )
    text = (
        "P proved, R refuted, ? undecided, - not applicable; ! not what is expected. An entry map is complete where "
        "the graph with the constants at its entries made the same for every position is proved order-blind: order "
        f"enters there and nowhere else. That is so for {complete:,} of {mapped:,} architectures. Named is what a "
        "constant is made of, with the operator where it meets the tokens."
    )
    head = ["architecture", "kind", *laws, "map complete", "where order enters"]
    return f"## Architectures\n\n{text}\n\n" + _table(head, lines)


def _mark(each: LawRow | None) -> str:
    return "" if each is None else _SIGNS[each.verdict] + ("" if each.met else "!")


def _behaviour(rows: Sequence[Row]) -> str:
    laws = [law for law in measured_laws() if any(each.law == law.name for row in rows for each in row.laws)]
    if not laws:
        return ""
    text = (
        "Laws that are measured by several calls: H held, with a control that moved the output, R refuted, "
        "? undecided, - not applicable; ! not what is expected."
    )
    names = {law.name for law in laws}
    lines = []
    for row in rows:
        parts: dict[str, dict[str, LawRow]] = {}
        for each in row.laws:
            if each.law in names:
                parts.setdefault(each.setting, {})[each.law] = each
        for part, verdicts in parts.items():
            shown = f"{row.name}, {part}" if part else row.name
            lines.append([shown, part or row.kind, *(_mark(verdicts.get(law.name)) for law in laws)])
    head = ["architecture", "kind", *(f"{law.code} {law.name}" for law in laws)]
    return f"## Behaviour\n\n{text}\n\n" + _table(head, lines)


def _others(rows: Sequence[Row]) -> str:
    lines = [
        [row.name, each.output, law_of(each), each.verdict, code(each.witness or each.reason)]
        for row in rows
        for each in row.others
        if not each.met
    ]
    if not lines:
        return ""
    text = (
        "Outputs besides the first whose verdict is not what is expected of the kind of model, or is undecided. "
        "The expectation is the model's, not the output's."
    )
    return f"## Other outputs\n\n{text}\n\n" + _table(
        ["architecture", "output", "law", "verdict", "what was seen"], lines
    )


def _failures(rows: Sequence[Row]) -> str:
    failed = {
        category: [row for row in rows if row.failed and row.failed.category == category] for category in CATEGORIES
    }
    summary = [[name, f"{len(failed[name]):,}", text] for name, text in CATEGORIES.items() if failed[name]]
    if not summary:
        return "## Failures\n\nNone."
    parts = ["## Failures", _table(["category", "architectures", "meaning"], summary)]
    for category, found in failed.items():
        if found and category == "no base model":
            parts += [f"### {category.capitalize()}", ", ".join(row.name for row in found)]
        elif found:
            lines = [[row.name, row.kind or "-", code(_reason(row))] for row in found]
            parts += [f"### {category.capitalize()}", _table(["architecture", "kind", "reason"], lines)]
    return "\n\n".join(parts)


def _reason(row: Row) -> str:
    """The reason, without the advice for who asked about this one model."""
    assert row.failed is not None
    text = row.failed.reason.removeprefix(f"arch:{row.name}: ").split("; wrap ")[0].removesuffix(ADVICE)
    return text + (f" (limit {row.failed.limit:g} GiB)" if row.failed.category == "memory" and row.failed.limit else "")


def _same(rows: Sequence[Row]) -> str:
    lines = [[row.name, row.same_as] for row in rows if row.same_as]
    if not lines:
        return ""
    text = (
        "Names whose text part transformers lists under a name of its own: the same configuration class, hence the "
        "same model and the same row, given once."
    )
    return f"## The same by another name\n\n{text}\n\n" + _table(["name", "see"], lines)


def _named(names: Sequence[str]) -> str:
    rest = len(names) - EXAMPLES
    return ", ".join(names[:EXAMPLES]) + (f" and {rest} more" if rest > 0 else "")


def _table(head: Cells, rows: Iterable[Cells], *, right: int | None = None, left: int | None = None) -> str:
    rule = ["---:" if right is not None and k >= right else "---" for k in range(len(head))]
    if left is not None:
        rule[0] = "---:"
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))
