"""Decoders of encoder-decoders: measured beside the fixed output of their encoder, in findings of their own."""

from __future__ import annotations

import pytest

from orderproof import audit
from orderproof.auditing.apart import DECODER
from orderproof.subjects import load

LAWS = ["cache", "cache_chunks", "cache_switch", "live", "materialised"]


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_decoder_is_measured_beside_its_encoder(name: str) -> None:
    report = audit(load(f"arch:{name}", tiny=True), laws=LAWS)
    found = {(f.setting, f.law): f for f in report.findings}
    assert set(found) == {(part, law) for part in ("", DECODER) for law in LAWS}
    assert found["", "cache"].verdict == "not_applicable"
    for law in LAWS:
        assert (found[DECODER, law].verdict, found[DECODER, law].expected) == ("held", "holds"), law
    measurement = found[DECODER, "materialised"].measurement
    assert measurement is not None
    assert "it is a part: what is saved is the whole model" in {trial.reason for trial in measurement.trials}


def test_model_without_a_decoder_has_findings_of_itself_alone() -> None:
    report = audit(load("arch:bert", tiny=True), laws=["stateless"])
    assert [f.setting for f in report.findings] == [""]
