"""Variants cover every pair of settings; the page lists the checks that only a variant fails."""

from __future__ import annotations

from itertools import combinations
from urllib.parse import unquote

import pytest

from orderproof.atlas.document import build_document
from orderproof.atlas.row import AtlasRow, LawResult, make_row
from orderproof.atlas.settings import _accepted_choices, selected_variants, variants
from orderproof.atlas.settings_page import settings_page
from orderproof.auditing.record.context import AuditContext
from orderproof.errors import UsageError
from orderproof.laws import measured_laws
from orderproof.models.hf.architectures import default_config, parse_spec


@pytest.mark.parametrize("name", ["llama", "bert", "minimax"])
def test_every_pair_of_values_is_in_a_variant(name: str) -> None:
    choices = dict(_accepted_choices(default_config(name)))
    rows = [parse_spec(unquote(text))[1] for text in variants(name)]
    seen = {(a, str(row.get(a)), b, str(row.get(b))) for row in rows for a, b in combinations(choices, 2)}
    wanted = {(a, str(x), b, str(y)) for a, b in combinations(choices, 2) for x in choices[a] for y in choices[b]}
    assert wanted <= seen
    assert len(rows) < 40
    assert variants(name)[0] == name


def test_values_that_a_configuration_refuses_together_are_in_no_variant() -> None:
    rows = [parse_spec(unquote(text))[1] for text in variants("gemma3_text")]
    assert any(row.get("use_bidirectional_attention") and "sliding_window" not in row for row in rows)
    assert any("sliding_window" in row for row in rows)
    assert not any(row.get("use_bidirectional_attention") and "sliding_window" in row for row in rows)  # it is halved


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="no architecture 'nope'"):
        selected_variants(("nope",))


def row(name: str, *failed: str) -> AtlasRow:
    results = tuple(
        LawResult(
            code="OP401", law=law, output="x", outcome="fail", verdict="refuted", expected="holds",
            expectation_met=False, witness="differs",
        )
        for law in failed
    )  # fmt: skip
    return AtlasRow(name=name, attention_backend="default", orderproof="0", torch="0", transformers="0", laws=results)


def test_the_page_lists_only_what_the_default_configuration_passes() -> None:
    rows = [row("a", "batch"), row("a?x=1&y=2", "batch", "causal"), row("a?x=1", "causal"), row("a?y=2", "batch")]
    page = settings_page(build_document(rows, requested=4, date="2026-01-01", machine=""))
    assert "| a | `x=1` | causal | 2 of 4 | differs |" in page
    assert "| batch |" not in page


def test_failures_at_one_place_are_one_line_with_the_values_that_explain_them() -> None:
    rows = [
        row("a"), row("a?rope=x&y=1", "batch", "causal"), row("a?rope=x&y=2", "batch", "causal"), row("a?y=1"),
        row("a?rope=z&y=1", "batch"), row("a?rope=z", "batch"),
    ]  # fmt: skip
    page = settings_page(build_document(rows, requested=6, date="2026-01-01", machine=""))
    assert "| a | `rope=x` | batch, causal | 2 of 6 | differs |" in page
    assert "| a | `rope=z` | batch | 2 of 6 | differs |" in page
    assert "y=1" not in page


def test_two_values_that_only_fail_together_are_named_together() -> None:
    rows = [row("a"), row("a?x=1&y=1", "batch"), row("a?x=1&y=2"), row("a?x=2&y=1")]
    page = settings_page(build_document(rows, requested=4, date="2026-01-01", machine=""))
    assert "| a | `x=1, y=1` | batch | 1 of 4 | differs |" in page


def test_the_time_of_a_variant_is_without_the_proofs_of_the_default_configuration() -> None:
    rows = [row(name).model_copy(update={"processor_seconds": s}) for name, s in (("a", 30.0), ("a?x=1", 2.0))]
    page = settings_page(build_document(rows, requested=2, date="2026-01-01", machine=""))
    assert "- 2.0 s of processor time a variant, the default configurations left out\n" in page


def test_the_page_says_if_variants_are_missing() -> None:
    rows = [row("a"), row("a?x=1"), row("b")]
    complete, incomplete = (
        settings_page(build_document(rows, requested=count, date="2026-01-01", machine="")) for count in (3, 7)
    )
    assert "- 2 architectures, 3 variants, 3 audited" in complete
    assert "incomplete" not in complete
    assert "- 2 architectures, 7 variants, 3 audited" in incomplete
    assert "the run is incomplete, so that pairs of values are missing; besides the default configurations: a 1\n" in (
        incomplete
    )


def test_values_that_no_variant_tells_apart_are_alternatives() -> None:
    rows = [row("a"), row("a?x=1&y=1&z=1", "batch"), row("a?z=1")]
    page = settings_page(build_document(rows, requested=9, date="2026-01-01", machine=""))
    assert "| a | `x=1 or y=1` | batch | 1 of 3 | differs |" in page


@pytest.mark.parametrize("name", ["llama", "gemma3_text"])
def test_rope_types_are_those_of_the_library(name: str) -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    values = dict(_accepted_choices(default_config(name)))["rope_parameters"][1:]
    assert {value.get("full_attention", value)["rope_type"] for value in values} == set(ROPE_INIT_FUNCTIONS)


def test_a_dtype_that_needs_repetition_is_only_in_variants_that_cover_a_pair() -> None:
    rows = [parse_spec(unquote(text))[1] for text in variants("llama")]
    narrow = [row for row in rows if row.get("dtype") == "bfloat16"]
    assert 0 < len(narrow) < len(rows) / 2
    pairs = [[(k, str(v)) for k, v in row.items() if k != "dtype"] for row in narrow]
    for number, own in enumerate(pairs):
        others = [pair for k, each in enumerate(pairs) if k != number for pair in each]
        left_out = {key for row in rows for key in row} - {key for key, _ in own} - {"dtype"}
        assert not set(own) <= set(others) or left_out, "every pair of this variant is in another one"


@pytest.mark.slow
def test_a_variant_is_measured_without_recording_its_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: AuditContext) -> str:
        raise AssertionError("recorded")

    monkeypatch.setattr(AuditContext, "export_failure", property(refuse))
    made = make_row("llama?attn_implementation=eager", None)
    assert made.failure is None
    assert {law.law for law in made.laws} == {law.name for law in measured_laws()}
    assert made.length == 7


def test_values_that_a_configuration_refuses_are_in_no_variant() -> None:
    """Phi3 takes the rope type longrope and no other; a variant that cannot be built would cover no pair."""
    rows = [parse_spec(unquote(text))[1] for text in variants("phi3")]
    assert {row["rope_parameters"]["rope_type"] for row in rows if "rope_parameters" in row} == {"longrope"}
    assert {row.get("sliding_window") for row in rows} == {None, 3}
