"""One fault in one architecture: the verdict of the law, and whether the report names the place."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from orderproof.auditing.record.context import AuditContext
from orderproof.laws import find_proved_law
from orderproof.models import load
from orderproof.records.audit import Finding
from tests.auditing.internals import prove_law
from tests.fault_injection.faults import KINDS, inject

CAUSAL = (
    "llama", "mistral", "qwen3", "gemma3_text", "gpt2", "gpt_neox", "olmo2", "phi", "starcoder2", "cohere", "stablelm",
    "granite",
)  # fmt: skip
ENCODERS = ("bert", "roberta", "electra", "modernbert")
LAYERS = 2


@dataclass(frozen=True)
class Outcome:
    """The result for one fault."""

    kind: str
    architecture: str
    verdict: str
    located: bool
    detail: str  # the places that the report names


def applies(kind: str, architecture: str) -> bool:
    """Whether a kind of fault fits an architecture and violates a law that the architecture obeys."""
    return architecture in CAUSAL or KINDS[kind].law != "causal"


def try_fault(kind: str, architecture: str, place: int = -1, attention: str | None = None) -> Outcome | None:
    """Build, inject, prove; None if the architecture has no place for this kind of fault."""
    torch.manual_seed(0)
    subject = load(f"arch:{architecture}", tiny=True, attention=attention)
    site = inject(subject.module, KINDS[kind], place, causal=architecture in CAUSAL)
    if site is None:
        return None
    findings = [
        f
        for f in prove_law(AuditContext(subject, subject.default_length), find_proved_law(KINDS[kind].law))
        if is_decisive(f)
    ]
    assert findings, f"{kind} in {architecture}: the law is not applicable"
    worst = min(findings, key=lambda f: ("refuted", "undecided", "proved").index(f.verdict))
    named = [place for e in worst.entries for place in ((e.module, e.source), (e.origin_module, e.origin_source))]
    # A wrong mask is passed to a layer and takes effect in its attention; the entry's origin is in the layer.
    located = any(site.is_named_by(module, source) for module, source in named)
    return Outcome(kind, architecture, worst.verdict, located, f"{site}: {named[:4]} {worst.reason}")


def is_decisive(finding: Finding) -> bool:
    """Whether a finding is about the main output and applicable."""
    return finding.verdict != "not_applicable" and finding.output in ("last_hidden_state", "logits")


def untouched(architecture: str) -> dict[str, str]:
    """The verdict of each law that faults violate, for the architecture without a fault."""
    subject = load(f"arch:{architecture}", tiny=True)
    context = AuditContext(subject, subject.default_length)
    found = {}
    for law in dict.fromkeys(cls.law for cls in KINDS.values()):
        if law == "causal" and architecture not in CAUSAL:
            continue
        verdicts = [(f.call_mode, f.verdict) for f in prove_law(context, find_proved_law(law)) if is_decisive(f)]
        found[law] = ", ".join(f"{verdict} ({setting})" if setting else verdict for setting, verdict in verdicts) or "-"
    return found
