"""Models of sound: whole rows of the batch are asked about, and what several calls tell; laws of tokens are not."""

from __future__ import annotations

import pytest

from orderproof import audit
from orderproof.errors import SubjectError
from orderproof.subjects import load
from orderproof.subjects.sounds import ROWS_ONLY


@pytest.mark.parametrize("name", ["speecht5", "speech_to_text"])
def test_rows_of_a_model_of_sound_are_proved_apart(name: str) -> None:
    subject = load(f"arch:{name}", tiny=True)
    assert subject.kind == "audio"
    assert ", sounds [" in subject.detail
    report = audit(subject, laws=["causal", "batch", "stateless", "batch_mates", "materialised"])
    verdicts = {f.law: f.verdict for f in report.findings}
    held = dict.fromkeys(("stateless", "batch_mates", "materialised"), "held")
    assert verdicts == {"causal": "not_applicable", "batch": "proved", **held}
    assert report.findings[0].reason == ROWS_ONLY


def test_model_of_sound_has_one_length() -> None:
    subject = load("arch:speecht5", tiny=True)
    assert subject.length == subject.max_length == subject.sample(subject.length).inputs[0].shape[1]


def test_sound_without_weights_is_refused() -> None:
    with pytest.raises(SubjectError, match="reads audio, neither text nor images"):
        load("arch:speecht5")
