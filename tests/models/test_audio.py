"""Audio models: laws of whole rows and of several calls apply; laws of tokens do not."""

from __future__ import annotations

import pytest

from orderproof import audit
from orderproof.errors import SubjectError
from orderproof.models import load
from orderproof.models.audio import WHOLE_ROWS_REASON


@pytest.mark.parametrize("name", ["speecht5", "speech_to_text"])
def test_rows_of_an_audio_model_are_independent(name: str) -> None:
    subject = load(f"arch:{name}", tiny=True)
    assert subject.model_kind == "audio"
    assert ", audio [" in subject.load_summary
    report = audit(subject, laws=["causal", "batch", "stateless", "batch_composition", "save_load"])
    verdicts = {f.law: f.verdict for f in report.findings}
    held = dict.fromkeys(("stateless", "batch_composition", "save_load"), "held")
    assert verdicts == {"causal": "undecided", "batch": "proved", **held}  # it is named, and does not apply
    assert report.findings[0].reason == f"does not apply, so nothing was checked: {WHOLE_ROWS_REASON}"


def test_an_audio_model_has_one_length() -> None:
    subject = load("arch:speecht5", tiny=True)
    assert subject.default_length == subject.max_length == subject.sample(subject.default_length).inputs[0].shape[1]


def test_an_audio_model_without_weights_is_refused() -> None:
    with pytest.raises(SubjectError, match="reads audio, neither text nor images"):
        load("arch:speecht5")
