"""The names of the audit that its tests use, imported in this one place; and subjects captured once."""

from functools import cache

import pytest

from orderproof.auditing import audit, prove
from orderproof.auditing.api import report_on_law
from orderproof.auditing.decide.relation import ProofOptions
from orderproof.auditing.decide.verdict import prove_law as prove_law_for_every_length
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, walk_graph
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.laws.proved.proved_law import ProvedLaw
from orderproof.models import load
from orderproof.records.audit import Finding

__all__ = [
    "ARCHITECTURES",
    "AT_ONE_LENGTH",
    "NAMES",
    "AuditContext",
    "LawWalk",
    "ProofOptions",
    "WitnessSearch",
    "audit",
    "examined",
    "prove",
    "prove_law",
    "prove_law_for_every_length",
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


AT_ONE_LENGTH = ProofOptions(every_length=False)


def prove_law(context: AuditContext, law: ProvedLaw, options: ProofOptions = AT_ONE_LENGTH) -> tuple[Finding, ...]:
    """Prove a law at the recorded length only: theorems for every length have tests of their own."""
    return prove_law_for_every_length(context, law, options)


@cache
def examined(spec: str, attention: str | None = None) -> AuditContext:
    """The examination of a tiny architecture, captured once a process."""
    subject = load(f"arch:{spec}", tiny=True, attention=attention)
    return AuditContext(subject, subject.default_length)
