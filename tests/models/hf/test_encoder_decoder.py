"""Decoders of encoder-decoders are measured with a fixed output of the encoder, in separate findings."""

from __future__ import annotations

import pytest
import torch

from orderproof import audit
from orderproof.auditing.decide.sandbox import DECODER_PART
from orderproof.models import load

LAWS = ["cached_decoding", "chunked_prefill", "use_cache", "ignored_arguments", "save_load"]


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_the_decoder_has_separate_findings(name: str) -> None:
    report = audit(load(f"arch:{name}", tiny=True), laws=LAWS)
    findings = {(f.call_mode, f.law): f for f in report.findings}
    assert set(findings) == {(part, law) for part in ("", DECODER_PART) for law in LAWS}
    assert findings["", "cached_decoding"].verdict == "not_applicable"
    for law in LAWS:
        assert (findings[DECODER_PART, law].verdict, findings[DECODER_PART, law].expected) == ("held", "holds"), law
    measurement = findings[DECODER_PART, "save_load"].measurement
    assert measurement is not None
    assert "it is a component: the whole model is saved" in {
        comparison.reason for comparison in measurement.comparisons
    }


def test_a_model_without_a_decoder_has_no_decoder_findings() -> None:
    report = audit(load("arch:bert", tiny=True), laws=["stateless"])
    assert [f.call_mode for f in report.findings] == [""]


def test_the_decoder_of_a_model_in_bfloat16_is_given_states_in_bfloat16() -> None:
    build = load("arch:t5?dtype=bfloat16", tiny=True).build_decoder_adapter
    assert build is not None
    adapter = build()
    output = adapter.call(adapter.sample_tokens(2, 5, 0)).output
    assert output.dtype == torch.bfloat16
    assert output.shape[:2] == (2, 5)
