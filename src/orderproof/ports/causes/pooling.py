"""The pooling of an encoder: of other tokens than the checkpoint states, of pads too, or not divided by its length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.encoder_reference import EncoderReference
from orderproof.ports.pooling import Mode
from orderproof.ports.reference import Change, Reference


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    stated = reference.pooling if isinstance(reference, EncoderReference) else None
    if stated is None:
        return
    others = [replace(stated, normalised=not stated.normalised)]
    others += [replace(stated, over_pads=True)] if stated.mode == "mean" else []
    for mode in get_args(Mode):
        if mode != stated.mode:
            others += [replace(stated, mode=mode), replace(stated, mode=mode, normalised=not stated.normalised)]
    for other in others:
        yield Candidate("other", "pooling", str(stated), str(other), Change(pooling=other), "pooled")


CAUSE = Cause("other", 85, _candidates)
