"""The atlas page: the same rows give the same page."""

from __future__ import annotations

import json
from pathlib import Path

from orderproof.atlas.counts import code_span, entry_summary, summary, undecided_reasons
from orderproof.atlas.document import AtlasDocument, build_document
from orderproof.atlas.page import page
from orderproof.atlas.row import AtlasRow, LawResult, empty_row, one_line, summarize_finding, with_failure
from orderproof.atlas.runner import AtlasRequest, requested_document
from orderproof.atlas.store import AtlasStore
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


def test_the_page_says_which_proved_laws_are_theorems_for_every_length() -> None:
    laws = (
        law("OP201", "causal", "proved", theorem="yes"),
        law("OP203", "packing", "proved", call_mode="blocked", theorem="yes"),
        law("OP101", "permutation", "proved", theorem="no", theorem_reason="the law has no statement"),
        law("OP202", "padding", "refuted"),
    )
    new = empty_row("g", None).model_copy(update={"model_kind": "causal_lm", "laws": laws})
    made = page(document([*sample_rows(), new], requested=7))
    heads = [line for line in made.splitlines() if line.startswith("| architecture | kind of model | OP101")]
    place = [cell.strip() for cell in heads[0].split("|")].index("for every length")
    cells = {
        line.split("|")[1].strip(): line.split("|")[place].strip()
        for line in made.splitlines()[made.splitlines().index(heads[0]) + 2 :]
        if line.count("|") == heads[0].count("|")
    }
    assert cells == {
        "a": "", "b": "",
        "g": "yes: OP201 causal, OP203 packing (blocked); no: OP101 permutation",
    }  # fmt: skip


def test_a_finding_says_in_its_row_if_it_is_a_theorem() -> None:
    finding = Finding(code="OP201", law="causal", verdict="proved", scope=Scope(length=7))
    assert summarize_finding(finding).theorem == ""
    theorem = Theorem(proved=True, greatest_length=128)
    assert summarize_finding(finding.model_copy(update={"theorem": theorem})).theorem == "yes"
    result = summarize_finding(finding.model_copy(update={"theorem": Theorem(proved=False, reason="no\nrule")}))
    assert (result.theorem, result.theorem_reason) == ("no", "no rule")


def test_page_counts_groups_and_lists() -> None:
    rows = sample_rows()
    made = page(document(rows, requested=7))
    assert "date: 2026-01-02" in made
    assert "finished: **6, the others are not yet audited** of 7 architectures" in made
    assert "of these 2 have findings, 1 are aliases, 3 failed" in made
    assert "| OP101 permutation | sees token order | causal_lm | yes | 2 | 1 | 1 | 0 | 0 | 1 | 0 | 1 |" in made
    assert "| OP201 causal | hides later tokens from earlier ones | causal_lm | holds | 2 | 0 | 0 | 2 | 0 |" in made
    assert "| 2 | OP201 causal | `aten.sort.default` | `token 3 sees 12` | a, b |" in made
    assert (
        "| b | causal_lm | OP101 permutation | sees token order: no, expected yes (proved) "
        "| `vacuous: no \\| 'token'` |  |" in made
    )
    assert "b (OP101 permutation)" in made
    assert "`rope.inv_freq: mul, add, modeling_a.py:3 and 1 other line`" in made
    assert "`operator: conv1d, modeling_a.py:7`" in made
    assert "| c | - | `ended by SIGSEGV` |" in made
    assert "| d | - | `none` |" in made
    assert "| f | - | `can't allocate (limit 2.5 GiB)` |" in made
    assert "| e | a |" in made
    assert "| 1 | for tensors of 7 tokens | OP101 permutation: 1 | b |" in made
    assert "| a | causal_lm | yes | ?! | yes |" in made
    assert "Faults of orderproof" not in made
    assert [(n, len(members)) for _, n, _, members in undecided_reasons(rows)] == [("aten.sort.default", 2)]
    assert "failures: 1 no base model, 1 memory, 1 crash" in summary(document(rows, requested=7))


def test_checks_are_separate_from_properties() -> None:
    leak = law("OP201", "causal", "refuted", expected="holds", expectation_met=False, witness="replace token 1")
    allowed = law("OP201", "causal", "refuted", expected="any", expectation_met=True)
    rows = [
        empty_row(name, None).model_copy(update={"model_kind": kind, "laws": (result,)})
        for name, kind, result in (("a", "causal_lm", leak), ("b", "audio", allowed))
    ]
    made = page(document(rows, requested=2))
    checks, _, properties = made.partition("### Properties")
    assert "| causal_lm | holds | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |" in checks
    assert "| audio | - | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |" in properties
    assert "| a | causal_lm | OP201 causal | fail: refuted, should hold | `replace token 1` |  |" in made


def test_law_that_applies_to_no_model_of_a_kind_is_left_out() -> None:
    shared = {"expected": "any", "expectation_met": True}
    laws = (law("OP201", "causal", "not_applicable", **shared), law("OP204", "batch", "proved", **shared))
    rows = [empty_row("a", None).model_copy(update={"model_kind": "audio", "laws": laws})]
    made = page(document(rows, requested=1))
    assert "OP201 causal" not in made
    assert made.count("OP204 batch") == 2


def test_results_without_a_graph_are_listed_once() -> None:
    reason = "the graph cannot be recorded: modeling_a.py:3"
    laws = tuple(law(*name, "undecided", reason=reason) for name in (("OP201", "causal"), ("OP204", "batch")))
    made_of = empty_row("a", None).model_copy(update={"model_kind": "encoder", "laws": laws})
    made = page(document([with_failure(made_of, "cannot be recorded", reason)], requested=1))
    assert made.count(reason) == 1
    assert reason in made.partition("### Cannot be recorded")[2]
    assert "## Undecided\n\nNone." in made


def test_assumptions_of_proofs_are_merged() -> None:
    rows = [
        empty_row(name, None).model_copy(
            update={
                "model_kind": "encoder",
                "laws": (
                    law("OP201", "causal", "proved", assumptions=(f"as traced: a.py:{line}",)),
                    law("OP204", "batch", "proved", assumptions=(f"as traced: a.py:{line}",), weights="these"),
                ),
            }
        )
        for name, line in (("a", 1), ("b", 23))
    ]
    made = page(document(rows, requested=2))
    assert "| 4 | as traced: a.py:1 | OP201 causal: 2, OP204 batch: 2 | a, b |" in made
    assert "proofs for the first output: 2 for every value of every parameter, and 2 for these random weights" in made


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
        outputs.append((page(made), made.to_json()))
    assert outputs[0] == outputs[1]
    stored = [AtlasRow.model_validate(each) for each in json.loads(outputs[0][1])["rows"]]
    assert stored == sorted(rows, key=lambda r: r.name)


def test_empty_atlas_has_a_page() -> None:
    empty = document([], requested=3)
    assert "finished: **0, the others" in page(empty)
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
