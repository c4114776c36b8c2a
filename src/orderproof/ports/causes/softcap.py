"""Softcaps of attention scores or of logits that only one side applies: softcap(x) = c tanh(x / c).

A program of a family may take the softcaps of that family where a configuration states none.
"""

from __future__ import annotations

from collections.abc import Iterator

from orderproof.ports.causes.cause import Candidate, Cause, Defaults, with_values
from orderproof.ports.reference import Reference

USUAL = {"final": 30.0, "attn": 50.0}  # of Gemma 2, for logits and for scores


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    for key, value in reference.config.to_dict().items():
        if "softcap" not in key:
            continue
        if isinstance(value, (int, float)) and value:
            yield Candidate("softcap", key, f"{value:g}", "no softcap", with_values({key: None}))
        elif (usual := next((cap for part, cap in USUAL.items() if part in key), None)) is not None:
            yield Candidate("softcap", key, "no softcap", f"{usual:g}", with_values({key: usual}))


CAUSE = Cause("softcap", 60, _candidates)
