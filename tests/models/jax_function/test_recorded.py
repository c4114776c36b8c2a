"""Programs that JAX traced: proved, or refuted at the line of the model, without jax."""

from __future__ import annotations

import pytest

import orderproof
from orderproof.records.audit import Finding
from tests.models.jax_function.recorded import names, recorded_names_in_source, recorded_subject

FOR_EVERY_LENGTH = ["nnx_block", "equinox_block", "linen_model", "scan_forward"]


def finding(name: str) -> Finding:
    (found,) = orderproof.audit(recorded_subject(name), laws=["causal"]).findings
    return found


def test_every_model_is_recorded() -> None:
    assert set(names()) == set(recorded_names_in_source())


@pytest.mark.parametrize("name", FOR_EVERY_LENGTH)
def test_a_causal_model_is_proved_for_every_length(name: str) -> None:
    found = finding(name)
    assert found.theorem is not None
    assert (found.verdict, found.theorem.proved, found.theorem.open_length) == ("proved", True, True)


def test_a_mask_that_is_off_by_one_is_refuted_at_the_line_that_gives_it() -> None:
    found = finding("nnx_off_by_one")
    assert found.verdict == "refuted"
    assert found.fix_source.endswith("subjects.py:34")


def test_a_scan_from_the_end_is_refuted_at_its_line() -> None:
    found = finding("scan_backward")
    assert found.verdict == "refuted"
    assert found.fix_source.endswith("subjects.py:92")


def test_a_loop_that_counts_reads_and_writes_at_its_counter() -> None:
    assert finding("counted_loop").verdict == "proved"


def test_the_notes_say_that_jax_was_called() -> None:
    notes = " ".join(recorded_subject("linen_model").notes)
    assert "flax.linen.Module, traced and called by JAX" in notes
    assert "computes what JAX computes" in notes
    assert "at most 32 tokens: JAX refuses more" in notes
