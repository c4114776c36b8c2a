"""Pads: attended to, or counted by the position ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orderproof.laws.ports import PortCall
from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    if reference.kind == "encoder":
        for kind in ("batch", "pooled"):
            visible = Change(pads="visible")
            yield Candidate("mask or pads", "pads on the right", "hidden", "attended to", visible, kind)
        return
    yield Candidate("mask or pads", "pads on the left", "hidden", "attended to", Change(pads="visible"), "batch")
    counted = Change(positions=_counted_pads)
    yield Candidate("mask or pads", "position ids", "from the first real token", "from the first pad", counted, "batch")
    own = Change(pads="masked")  # of models without position ids
    yield Candidate(
        "mask or pads", "positions of padded rows", "as without pads", "as transformers counts them", own, "batch"
    )


def _counted_pads(call: PortCall) -> Sequence[Sequence[int]]:
    starts = [call.length - len(row) for row in call.rows]
    return [range(start, start + len(row)) for start, row in zip(starts, call.rows, strict=True)]


CAUSE = Cause("mask or pads", 80, _candidates)
