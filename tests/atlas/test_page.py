"""The summary and the table of the atlas: the same rows give the same pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from orderproof.atlas.counts import code_span, entry_summary, summary
from orderproof.atlas.document import AtlasDocument, build_document
from orderproof.atlas.page import page
from orderproof.atlas.row import AtlasRow, LawResult, empty_row, one_line, summarize_finding, with_failure
from orderproof.atlas.runner import AtlasRequest, requested_document
from orderproof.atlas.store import AtlasStore
from orderproof.atlas.table import table_page
from orderproof.records.audit import Entry, Finding, Scope, Theorem


def law(code: str, name: str, verdict: str, **more: object) -> LawResult:
    fields: dict = {
        "expected": "fails", "expectation_met": verdict == "refuted", "output": "last_hidden_state",
        "outcome": "undecided", **more,
    }  # fmt: skip
    return LawResult(code=code, law=name, verdict=verdict, **fields)  # type: ignore[arg-type]


def document(rows: list[AtlasRow], *, requested: int) -> AtlasDocument:
    return build_document(rows, requested=requested, date="2026-01-02", machine="x86_64, 2 cores")


def sample_rows() -> list[AtlasRow]:
    entries = (
        Entry(kind="constant", operator="aten.mul.Tensor", source="modeling_a.py:3", origin="model.rope.inv_freq"),
        Entry(kind="constant", operator="aten.add.Tensor", source="modeling_a.py:9", origin="model.rope.inv_freq"),
        Entry(kind="operator", operator="aten.conv1d.default", source="modeling_a.py:7"),
    )
    stuck = {"stopped_at_operator": "aten.sort.default", "expectation_met": False, "expected": "holds"}
    assumption = ("for tensors of 7 tokens",)
    reason = "aten.sort.default (x, y): token 3 sees 12; no witness was found"
    results = {
        "a": (
            law("OP101", "permutation", "refuted", entries_complete=True),
            law("OP201", "causal", "undecided", stop_reason="token 3 sees 12", reason=reason, **stuck),
        ),
        "b": (
            law("OP101", "permutation", "proved", vacuous=True, reason="vacuous: no | `token`", assumptions=assumption),
            law(
                "OP201", "causal", "undecided", stop_reason="token 4 sees 12", reason="aten.sort.default: ...", **stuck
            ),
        ),
    }
    rows = [
        empty_row(n, None).model_copy(update={"model_kind": "causal_lm", "laws": laws}) for n, laws in results.items()
    ]
    rows[0] = rows[0].model_copy(update={"entries": entries, "processor_seconds": 1.25})
    return [
        *rows,
        with_failure(empty_row("c", None), "crash", "ended by SIGSEGV"),
        with_failure(empty_row("d", None), "no base model", "arch:d: none"),
        with_failure(empty_row("f", None), "memory", "arch:f: can't allocate; wrap it", limit=2.5),
        empty_row("e", None).model_copy(update={"alias_of": "a"}),
    ]


def table(rows: list[AtlasRow]) -> list[tuple[str, ...]]:
    """The lines of the table: name, kind, law, result, how it is known, evidence."""
    made = table_page(document(rows, requested=len(rows)))
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', made, re.DOTALL)
    assert match is not None
    data: dict[str, Any] = json.loads(match[1])
    return [
        (
            name, data["kinds"][kind], data["laws"][law], data["results"][result] + "!" * odd,
            data["known"][known], data["texts"][text],
        )
        for name, kind, lines in data["rows"]
        for law, result, known, text, odd in lines
    ]  # fmt: skip


def test_the_table_says_for_which_lengths_and_weights_a_law_is_proved() -> None:
    laws = (
        law("OP201", "causal", "proved", theorem="yes"),
        law("OP203", "packing", "proved", call_mode="blocked", theorem="yes", weights="these"),
        law("OP101", "permutation", "proved", theorem="no", theorem_reason="the law has no statement"),
        law("OP202", "padding", "refuted"),
        law("OP501", "attention_backend", "held"),
    )
    lines = table([empty_row("g", None).model_copy(update={"model_kind": "causal_lm", "laws": laws})])
    assert {line[2]: line[4] for line in lines} == {
        "OP201 causal": "proved for every length",
        "OP203 packing (blocked)": "proved for every length, for these weights",
        "OP101 permutation": "proved for the recorded length",
        "OP202 padding": "refuted",
        "OP501 attention_backend": "held",
    }


def test_the_table_has_every_result_and_why_there_is_none() -> None:
    lines = table(sample_rows())
    stuck = "aten.sort.default (x, y): token 3 sees 12; no witness was found"
    places = "rope.inv_freq: mul, add, modeling_a.py:3 and 1 other line; operator: conv1d, modeling_a.py:7"
    assert [line for line in lines if line[0] == "a"] == [
        ("a", "causal_lm", "OP101 permutation", "yes", "refuted", ""),
        ("a", "causal_lm", "OP201 causal", "undecided", "undecided", stuck),
        ("a", "causal_lm", "where order enters", "complete", "", places),
    ]
    assert ("b", "causal_lm", "OP101 permutation", "no!", "proved for the recorded length",
            "vacuous: no | `token`") in lines  # fmt: skip
    assert ("c", "-", "-", "no results", "crash", "ended by SIGSEGV") in lines
    assert ("d", "-", "-", "no results", "no base model", "none") in lines
    assert ("f", "-", "-", "no results", "memory", "can't allocate (limit 2.5 GiB)") in lines
    assert ("e", "-", "-", "alias", "", "the same configuration class as a, which has the results") in lines


def test_no_text_of_a_model_ends_the_data_of_the_table() -> None:
    reason = "</script><script>alert(1)</script>"
    rows = [empty_row("a", None).model_copy(update={"laws": (law("OP201", "causal", "undecided", reason=reason),)})]
    assert "alert(1)</script>" not in table_page(document(rows, requested=1))
    assert table(rows)[0][5] == reason


def test_a_finding_says_in_its_row_if_it_is_a_theorem() -> None:
    finding = Finding(code="OP201", law="causal", verdict="proved", scope=Scope(length=7))
    assert summarize_finding(finding).theorem == ""
    theorem = Theorem(proved=True, greatest_length=128)
    assert summarize_finding(finding.model_copy(update={"theorem": theorem})).theorem == "yes"
    result = summarize_finding(finding.model_copy(update={"theorem": Theorem(proved=False, reason="no\nrule")}))
    assert (result.theorem, result.theorem_reason) == ("no", "no rule")


def test_page_counts_and_names_the_failures() -> None:
    rows = sample_rows()
    made = page(document(rows, requested=7))
    assert "2026-01-02; x86_64, 2 cores; " in made
    assert "6 of 7 names of transformers" in made
    assert "of these 2 have findings, 1 are aliases and 3 have no model that could be audited" in made
    assert "| OP101 permutation | sees token order | 1 | 1 | 0 |" in made
    assert "| OP201 causal | hold | 0 | 0 | 2 |  |" in made
    assert "Of 1 proofs, 0 are for every length" in made
    assert "For 1 of 1 architectures the places where order enters are known" in made
    assert "graph: no base model (1), memory (1), crash (1)" in made
    assert "Faults of orderproof" not in made
    assert "failures: 1 no base model, 1 memory, 1 crash" in summary(document(rows, requested=7))


def test_checks_are_separate_from_properties() -> None:
    leak = law("OP201", "causal", "refuted", expected="holds", expectation_met=False, witness="replace token 1")
    allowed = law("OP201", "causal", "refuted", expected="any", expectation_met=True)
    rows = [
        empty_row(name, None).model_copy(update={"model_kind": kind, "laws": (result,)})
        for name, kind, result in (("a", "causal_lm", leak), ("b", "audio", allowed))
    ]
    made = page(document(rows, requested=2))
    (line,) = [line for line in made.splitlines() if line.startswith("| OP201")]
    assert line.endswith("| hold | 0 | [1](table.html#words=OP201&result=fail) | 0 | a |")
    assert [each[3] for each in table(rows)] == ["fail!", "no"]


def test_law_that_applies_to_no_model_is_left_out() -> None:
    shared = {"expected": "holds", "expectation_met": True}
    laws = (law("OP201", "causal", "not_applicable", **shared), law("OP204", "batch", "proved", **shared))
    rows = [empty_row("a", None).model_copy(update={"model_kind": "audio", "laws": laws})]
    made = page(document(rows, requested=1))
    assert "OP201 causal" not in made
    assert made.count("OP204 batch") == 1


def test_contradicted_proof_has_its_own_section() -> None:
    reason = "a proof was found, but two runs differ by 0.1: this is an error in the prover; please report it"
    wrong = law("OP201", "causal", "undecided", reason=reason)
    rows = [empty_row("a", None).model_copy(update={"model_kind": "encoder", "laws": (wrong,)})]
    assert "## Faults of orderproof" in page(document(rows, requested=1))


def test_page_and_json_do_not_depend_on_the_order_of_the_store(tmp_path: Path) -> None:
    rows = sample_rows()
    request = AtlasRequest(tuple(row.name for row in rows))
    outputs = []
    for order in (rows, rows[::-1]):
        (tmp_path / "store").unlink(missing_ok=True)
        with AtlasStore(tmp_path / "store") as store:
            for row in order:
                store.append(row)
            made = requested_document(request, store, machine="-")
        with AtlasStore(tmp_path / "store") as store:
            assert requested_document(request, store, machine="-") == made
        outputs.append((page(made), made.to_json(), table_page(made)))
    assert outputs[0] == outputs[1]
    stored = [AtlasRow.model_validate(each) for each in json.loads(outputs[0][1])["rows"]]
    assert stored == sorted(rows, key=lambda r: r.name)


def test_empty_atlas_has_a_page() -> None:
    empty = document([], requested=3)
    assert "0 of 3 names" in page(empty)
    assert json.loads(empty.to_json())["rows"] == []


def test_reasons_are_escaped() -> None:
    assert code_span("a|b`c](http://x)") == "`a\\|b'c] (http://x)`"
    assert code_span("") == ""
    assert "\x1b" not in one_line("red \x1b[31m text")
    assert len(one_line("x" * 9999)) == 400
    assert (
        entry_summary([Entry(kind="constant", operator="aten.mul.Tensor", origin=f"o{k}") for k in range(5)])[-1]
        == "and 2 more"
    )
