"""The names of the audit that its tests use, imported in this one place; and subjects captured once."""

from functools import cache

import pytest

from orderproof.auditing import audit, prove
from orderproof.auditing.api import report_on_law
from orderproof.auditing.context import AuditContext
from orderproof.auditing.proof import LawWalk, walk_graph
from orderproof.auditing.verdict import ProofOptions, prove_law
from orderproof.auditing.witness import WitnessSearch
from orderproof.models import load

__all__ = [
    "ARCHITECTURES",
    "NAMES",
    "AuditContext",
    "LawWalk",
    "ProofOptions",
    "WitnessSearch",
    "audit",
    "examined",
    "prove",
    "prove_law",
    "report_on_law",
    "walk_graph",
]

NAMES = ("bert", "roberta", "distilbert", "gpt2", "gpt_neox", "llama", "mistral", "qwen3", "gemma3_text", "t5", "vit")
QUICK = {(name, "sdpa") for name in NAMES} | {(name, "eager") for name in ("bert", "gpt2", "mistral")}
ARCHITECTURES = [
    pytest.param(
        name, attention, id=f"{name}-{attention}", marks=[] if (name, attention) in QUICK else pytest.mark.slow
    )
    for name in NAMES
    for attention in ("sdpa", "eager")
]


@cache
def examined(spec: str, attention: str | None = None) -> AuditContext:
    """The examination of a tiny architecture, captured once a process."""
    subject = load(f"arch:{spec}", tiny=True, attention=attention)
    return AuditContext(subject, subject.default_length)
