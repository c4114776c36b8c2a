"""Softcaps of attention scores or of logits that are not applied: softcap(x) = c tanh(x / c)."""

from __future__ import annotations

from collections.abc import Iterator

from orderproof.ports.causes.cause import Candidate, Cause, Defaults, with_values
from orderproof.ports.reference import Reference


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    for key, value in reference.config.to_dict().items():
        if "softcap" in key and isinstance(value, (int, float)) and value:
            yield Candidate("softcap", key, f"{value:g}", "no softcap", with_values({key: None}))


CAUSE = Cause("softcap", 60, _candidates)
