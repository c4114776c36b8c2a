"""Pads that are attended to, or counted by the position ids, and a mask that is added to the scores as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

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
    added = Change(prepare=_add_mask_as_numbers)
    yield Candidate("mask or pads", "mask", "hides later tokens", "added to the scores as 0 and 1", added)


def _add_mask_as_numbers(model: Any) -> None:
    """Give each attention module 1 for a visible key and 0 for a hidden one, as a mask of booleans is added."""

    def with_numbers(_part: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        mask, hidden = options.get("attention_mask"), options.get("hidden_states", next(iter(arguments), None))
        assert isinstance(hidden, Tensor)
        if isinstance(mask, Tensor):
            visible = mask if mask.dtype == torch.bool else mask >= 0
        else:  # of the first tokens, where a kernel knows that it is causal
            visible = torch.ones(1, 1, hidden.shape[1], hidden.shape[1], dtype=torch.bool).tril()
        return arguments, {**options, "attention_mask": visible.to(hidden.dtype)}

    for name, part in model.named_modules():
        if name.endswith("attn"):
            part.register_forward_pre_hook(with_numbers, with_kwargs=True)


def _counted_pads(call: PortCall) -> Sequence[Sequence[int]]:
    starts = [call.length - len(row) for row in call.rows]
    return [range(start, start + len(row)) for start, row in zip(starts, call.rows, strict=True)]


CAUSE = Cause("mask or pads", 80, _candidates)
