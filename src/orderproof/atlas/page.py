"""The summary of the atlas in Markdown: the results of each law, counted. The same document gives the same page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from orderproof.atlas.counts import (
    LawCounts,
    code_span,
    expectation_text,
    is_check,
    law_counts,
    law_label,
)
from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.row import CATEGORIES, AtlasRow
from orderproof.laws import entry_map_law
from orderproof.records.audit import Outcome
from orderproof.report.markdown_table import markdown_table

EXAMPLES = 3  # architectures named with a law
_PROVER_FAULT_TEXTS = ("error in the prover", "internal error", "contradict")
HEAD = """# The atlas

Which laws of token order does each architecture of transformers obey? Each is built small, with random weights, and
audited. [**Search every result**](table.html): by architecture, law, operator or file; the table works from disk.

A *check* should hold for a kind of model, and passes or fails. It is about code, so what fails here fails for a
checkpoint of that architecture as well, unless its settings avoid the code. The [findings](../findings/README.md)
explain most failures, each with a script, and [the laws](../../reference/laws.md) say what to do. A *property*
describes the model, and neither answer is wrong."""
TERMS = """## How a result is known

- *proved*: lemmas on the recorded graph of one call derive the law over the real numbers, for every input; the table
  says if for every length or for the recorded one.
- *refuted*: two runs differ by more than rounding.
- *held*: a measured law, of which no comparison showed a difference.
- *undecided*: none of these; the table has the reason.

Laws are decided on a call with the tokens alone, or as the word in parentheses says: `padded` with a padding mask,
`packed` with position ids that restart for a second document, `blocked` with a mask between the documents as well,
`labelled` with position ids and the mask of a causal model, `decoder` on the decoder of an encoder-decoder model. In
the table the kind `causal_lm` is a text decoder, `encoder` any other text model, and `vision` and `audio` are encoders;
the tokens of an image are its patches."""
METHOD = """## How the rows were made

Each architecture is built from its default configuration, reduced to two layers and a few dozen features. A weight that
starts at zero would hide a difference, so every parameter is moved off its initial value, and batch norms get the
statistics of eight samples. Each is audited in its own process, with limits on time and memory."""


def page(document: AtlasDocument) -> str:
    """The page of a document whose rows are sorted by name."""
    audited = [row for row in document.rows if row.laws]
    counts = law_counts(audited)
    sections = [
        HEAD,
        _facts(document, audited),
        _faults_of_orderproof(audited),
        _checks([each for each in counts if is_check(each.law, each.expected)]),
        _properties([each for each in counts if not is_check(each.law, each.expected)]),
        TERMS,
        f"{METHOD} {_failures(document.rows)}\n\n{_run(document)}",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _facts(document: AtlasDocument, audited: Sequence[AtlasRow]) -> str:
    rows = document.rows
    aliases = sum(1 for row in rows if row.alias_of)
    failed = sum(1 for row in rows if row.failure and not row.laws)
    state = f"{len(rows):,} of" if len(rows) < document.requested else "All"
    maps = [each.entries_complete for row in audited for each in row.laws if each.law == entry_map_law().name]
    known = [each for each in maps if each is not None]
    return (
        f"{state} {document.requested:,} names of transformers {_versions(document)['transformers']}: of these "
        f"{len(rows) - aliases - failed:,} have findings, {aliases:,} are aliases and {failed:,} have no model that "
        f"could be audited. Of {_proofs(audited)}. For {sum(known):,} of {len(known):,} architectures the places where "
        "order enters are known to be all of them."
    )


def _proofs(rows: Sequence[AtlasRow]) -> str:
    proofs = [each for row in rows for each in row.laws if each.verdict == "proved"]
    every_length = sum(1 for each in proofs if each.theorem == "yes")
    these = sum(1 for each in proofs if each.weights == "these")
    return f"{len(proofs):,} proofs, {every_length:,} are for every length, and {these:,} for these weights only"


def _versions(document: AtlasDocument) -> dict[str, str]:
    return {
        name: ", ".join(sorted({getattr(row, name) for row in document.rows})) or "-"
        for name in ("orderproof", "torch", "transformers")
    }


def _run(document: AtlasDocument) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in _versions(document).items())
    seconds = sum(row.processor_seconds for row in document.rows)
    return (
        f"{document.date}; {document.machine}; {versions}; {seconds:,.0f} s of processor time. The page and the "
        "table are written by\n\n    orderproof atlas --from-json docs/evidence/atlas/atlas.json.gz --markdown "
        "docs/evidence/atlas/atlas.md --html docs/evidence/atlas/table.html\n\nThe rows are in "
        "[atlas.json.gz](atlas.json.gz)."
    )


def _checks(counts: Sequence[LawCounts]) -> str:
    if not counts:
        return ""
    lines = [
        [each.label, expectation_text(each.law, each.expected), *_checked(each), named(each.failing)] for each in counts
    ]
    head = ["law", "should", "pass", "fail", "undecided", "fails for"]
    text = "Results for the first output, with and without a mask, and for the decoder of an encoder-decoder model."
    return f"## Checks\n\n{text}\n\n{markdown_table(head, lines, right=(2, 3, 4))}"


def _properties(counts: Sequence[LawCounts]) -> str:
    if not counts:
        return ""
    lines = [[each.label, each.model, *_numbers(each, ("yes", "no"))] for each in counts]
    return "## Properties\n\n" + markdown_table(["law", "the model", "yes", "no", "undecided"], lines, right=(2, 3, 4))


def _checked(counts: LawCounts) -> list[str]:
    """How many pass, fail and are undecided; the failures are a link into the table."""
    passed, failed, undecided = _numbers(counts, ("pass", "fail"))
    found = f"table.html#words={counts.label.split()[0]}&result=fail"
    return [passed, f"[{failed}]({found})" if counts.outcomes["fail"] else failed, undecided]


def _numbers(counts: LawCounts, answers: tuple[Outcome, Outcome]) -> list[str]:
    asked: tuple[Outcome, ...] = (*answers, "undecided")
    return [f"{counts.outcomes[outcome]:,}" for outcome in asked]


def _faults_of_orderproof(rows: Sequence[AtlasRow]) -> str:
    """Proofs that two runs contradict and internal errors; empty where there are none."""
    wrong = [
        [row.name, law_label(each), code_span(each.reason)]
        for row in rows
        for each in (*row.laws, *row.other_output_laws)
        if any(sign in each.reason for sign in _PROVER_FAULT_TEXTS)
    ]
    text = "Proofs that two runs contradict, and audits that raised an internal error. Please report them."
    table = markdown_table(["architecture", "law", "error"], wrong) if wrong else ""
    return f"## Faults of orderproof\n\n{text}\n\n{table}" if wrong else ""


def _failures(rows: Sequence[AtlasRow]) -> str:
    """How many architectures have no findings or no graph, by category."""
    failed = Counter(row.failure.category for row in rows if row.failure)
    if not failed:
        return ""
    counts = ", ".join(f"{name} ({failed[name]:,})" for name in CATEGORIES if failed[name])
    return f"Without findings, or without a graph: {counts}; the table has each reason."


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - EXAMPLES
    return ", ".join(names[:EXAMPLES]) + (f" and {rest} more" if rest > 0 else "")
