"""No honest mistake is proved without a note that names what the proof takes as fixed."""

from __future__ import annotations

import pytest
import torch

from orderproof import prove
from orderproof.records.audit import Finding
from tests.pairs import one_in
from tests.recording import honest_mistakes_with_data  # noqa: F401 - enters its models
from tests.recording.honest_mistakes import MISTAKES, WIDTH, Mistake

# From the weakest to the strongest: an assumption of every proof, a note of this one, no proof, a counterexample.
STRENGTH = ("assumed", "noted", "undecided", "refuted")
NOTES = ("of one call", "with the same answers", "its state", "with the defaults")


def protection(finding: Finding, words: str) -> str | None:
    """How a finding protects the reader from the mistake, or None if it proves the law without a word of it."""
    if finding.verdict != "proved":
        return finding.verdict
    assert finding.scope is not None
    named = [text for text in finding.scope.assumptions if words and words in text]
    if not named:
        return None
    return "noted" if any(text.startswith(NOTES) for text in named) else "assumed"


def found(mistake: Mistake) -> Finding:
    return prove(mistake.make().eval(), "causal", inputs=torch.randn(2, 7, WIDTH))


@pytest.mark.parametrize("name", one_in(2, [name for name, x in MISTAKES.items() if x.protection in STRENGTH]))
def test_mistake_is_as_well_protected_as_recorded(name: str) -> None:
    mistake = MISTAKES[name]
    finding = found(mistake)
    protected = protection(finding, mistake.words)
    assert protected is not None, "proved without a note"
    assert STRENGTH.index(protected) >= STRENGTH.index(mistake.protection), f"weaker than before: {finding.reason}"
    if finding.verdict == mistake.protection:
        # memory that was never written may hold an infinity, which another reason names first
        assert mistake.words in finding.reason or "on the same input" in finding.reason


@pytest.mark.parametrize("name", [name for name, x in MISTAKES.items() if x.protection == "harmless"])
def test_harmless_model_is_not_refuted(name: str) -> None:
    finding = found(MISTAKES[name])
    assert finding.verdict == "proved" or MISTAKES[name].words in finding.reason
    assert finding.verdict != "refuted"


def test_corpus_is_whole() -> None:
    assert len(MISTAKES) == 40
    assert {x.protection for x in MISTAKES.values()} == {*STRENGTH, "harmless"}
