"""One fault in one architecture: is the law refuted, and the place named?"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from orderproof.auditing.examine import Examination
from orderproof.auditing.verdict import prove_law
from orderproof.laws import get
from orderproof.record import Finding
from orderproof.subjects import load
from tests.faults.kinds import KINDS, inject

CAUSAL = (
    "llama", "mistral", "qwen3", "gemma3_text", "gpt2", "gpt_neox", "olmo2", "phi", "starcoder2", "cohere", "stablelm",
    "granite",
)  # fmt: skip
ENCODERS = ("bert", "roberta", "electra", "modernbert")
LAYERS = 2


@dataclass(frozen=True)
class Outcome:
    """What came of one fault."""

    kind: str
    architecture: str
    verdict: str
    located: bool
    told: str  # what was named


def applies(kind: str, architecture: str) -> bool:
    """Whether a kind can be put into an architecture, and breaks a law it obeys."""
    return architecture in CAUSAL or KINDS[kind].law != "causal"


def try_fault(kind: str, architecture: str, place: int = -1, attention: str | None = None) -> Outcome | None:
    """Build, inject, prove; None where the architecture has no place for the kind."""
    torch.manual_seed(0)
    subject = load(f"arch:{architecture}", tiny=True, attention=attention)
    site = inject(subject.module, KINDS[kind], place, causal=architecture in CAUSAL)
    if site is None:
        return None
    findings = [f for f in prove_law(Examination(subject, subject.length), get(KINDS[kind].law)) if asked(f)]
    assert findings, f"{kind} in {architecture}: the law asks nothing of it"
    worst = min(findings, key=lambda f: ("refuted", "undecided", "proved").index(f.verdict))
    named = [place for e in worst.entries for place in ((e.module, e.source), (e.made_in, e.made_at))]
    # A mask is given to a layer and does its harm in the attention below it; what made it stands in the layer.
    located = any(site.is_named_by(module, source) for module, source in named)
    return Outcome(kind, architecture, worst.verdict, located, f"{site}: {named[:4]} {worst.reason}")


def asked(finding: Finding) -> bool:
    """Whether a finding says anything, of the model's main output."""
    return finding.verdict != "not_applicable" and finding.output in ("last_hidden_state", "logits")


def untouched(architecture: str) -> dict[str, str]:
    """The verdict of each law that faults break, on the architecture as it is."""
    subject = load(f"arch:{architecture}", tiny=True)
    exam = Examination(subject, subject.length)
    found = {}
    for law in dict.fromkeys(cls.law for cls in KINDS.values()):
        if law == "causal" and architecture not in CAUSAL:
            continue
        verdicts = [(f.setting, f.verdict) for f in prove_law(exam, get(law)) if asked(f)]
        found[law] = ", ".join(f"{verdict} ({setting})" if setting else verdict for setting, verdict in verdicts) or "-"
    return found
