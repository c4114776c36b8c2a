"""The names of the audit that its tests use, imported in this one place; and subjects captured once."""

from functools import cache

import pytest

from orderproof.auditing import audit, prove
from orderproof.auditing.api import one_law
from orderproof.auditing.attempt import Attempt, attempt
from orderproof.auditing.examine import Examination
from orderproof.auditing.trials import Trial
from orderproof.auditing.verdict import Options, prove_law
from orderproof.subjects import load

__all__ = [
    "ARCHITECTURES",
    "NAMES",
    "Attempt",
    "Examination",
    "Options",
    "Trial",
    "attempt",
    "audit",
    "examined",
    "one_law",
    "prove",
    "prove_law",
]

NAMES = ("bert", "roberta", "distilbert", "gpt2", "gpt_neox", "llama", "mistral", "qwen3", "gemma3_text", "t5", "vit")
QUICK = {(name, "sdpa") for name in NAMES} | {(name, "eager") for name in ("bert", "gpt2", "gemma3_text")}
ARCHITECTURES = [
    pytest.param(
        name, attention, id=f"{name}-{attention}", marks=[] if (name, attention) in QUICK else pytest.mark.slow
    )
    for name in NAMES
    for attention in ("sdpa", "eager")
]


@cache
def examined(spec: str, attention: str | None = None) -> Examination:
    """The examination of a tiny architecture, captured once a process."""
    subject = load(f"arch:{spec}", tiny=True, attention=attention)
    return Examination(subject, subject.length)
