"""The table of the atlas: every result on one page that searches itself, without a server or a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orderproof.atlas.counts import entry_summary, law_label, shown_outcome
from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.row import AtlasRow, LawResult
from orderproof.laws import entry_map_law
from orderproof.report import phrases
from orderproof.report.html_page import read_asset
from orderproof.report.json_output import script_safe_json

ENTRIES = "where order enters"
NO_LAW = "-"
_ADVICE = "; give example inputs it accepts"

Line = tuple[str, str, str, str, bool]  # law, result, how it is known, evidence, not as expected


def table_page(document: AtlasDocument, *, summary: str = "atlas.html") -> str:
    """The page as text; `summary` is the address of the page with the counts."""
    template = (Path(__file__).parent / "table.html").read_text(encoding="utf-8")
    data = script_safe_json(_data(document))
    return (
        template.replace("/*STYLE*/", read_asset("page.css")).replace("ATLAS_PAGE", summary).replace("/*DATA*/", data)
    )


def _data(document: AtlasDocument) -> dict[str, object]:
    """The rows, with each text that repeats once: a row refers to it by its number."""
    numbers: dict[str, dict[str, int]] = {each: {} for each in ("kinds", "laws", "results", "known", "texts")}

    def number(name: str, text: str) -> int:
        return numbers[name].setdefault(text, len(numbers[name]))

    rows = [
        [
            row.name,
            number("kinds", row.model_kind or "-"),
            [
                [number("laws", law), number("results", result), number("known", how), number("texts", text), int(odd)]
                for law, result, how, text, odd in _lines(row)
            ],
        ]
        for row in document.rows
    ]
    return {**{name: list(texts) for name, texts in numbers.items()}, "rows": rows}


def _lines(row: AtlasRow) -> Iterator[Line]:
    """The results of an architecture, where order enters it, or why it has none."""
    if row.alias_of:
        yield NO_LAW, "alias", "", f"the same configuration class as {row.alias_of}, which has the results", False
    if row.failure is not None:
        yield NO_LAW, "no graph" if row.laws else "no results", row.failure.category, _error(row), False
    for each in row.laws:
        yield _line(each, law_label(each))
    for each in row.other_output_laws:
        if each.verdict != "not_applicable":
            yield _line(each, f"{law_label(each)}, output {each.output}")
    if row.entries:
        whole = next((each.entries_complete for each in row.laws if each.law == entry_map_law().name), None)
        places = "; ".join(text.strip("`") for text in entry_summary(row.entries))
        yield ENTRIES, {True: "complete", False: "perhaps elsewhere too", None: "-"}[whole], "", places, False


def _line(each: LawResult, law: str) -> Line:
    result = shown_outcome(each).replace("_", " ")
    return law, result, how_it_is_known(each), _evidence(each), not each.expectation_met and result != "undecided"


def how_it_is_known(each: LawResult) -> str:
    """`proved for every length`, `proved for the recorded length, for these weights`, or the verdict."""
    if each.verdict != "proved":
        return each.verdict.replace("_", " ")
    length = "every length" if each.theorem == "yes" else "the recorded length"
    return f"proved for {length}" + (", for these weights" if each.weights == "these" else "")


def _evidence(each: LawResult) -> str:
    """The witness or the reason; of a proof the largest difference of two runs."""
    largest = each.deviation.float64 if each.deviation.float64 is not None else each.deviation.float32
    shown = f"two runs differ by {phrases.format_difference(largest)}" if largest is not None else ""
    return phrases.escape_control_characters(each.witness or each.reason or shown)


def _error(row: AtlasRow) -> str:
    """The error without the subject's name and the advice to a user who audits this model alone."""
    assert row.failure is not None
    text = row.failure.reason.removeprefix(f"arch:{row.name}: ").split("; wrap ")[0].removesuffix(_ADVICE)
    limit = f" (limit {row.failure.limit:g} GiB)" if row.failure.category == "memory" and row.failure.limit else ""
    return phrases.escape_control_characters(text) + limit
