"""Pads that are attended to, or counted by the position ids, and other masks of a prompt.

A mask of booleans may be added to the scores as numbers. A *prefix language model* shows each token of a prompt the
whole of it, and generates after it as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from orderproof.laws.ports import PortCall
from orderproof.ports.causes.attention_masks import replace_masks
from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

TO_SHOW_PROMPTS = (
    "config.json states prefix_lm: this is by design. transformers does the same with token_type_ids of 1 for the "
    "tokens of a prompt."
)


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
    added, whole = Change(prepare=_add_mask_as_numbers), Change(prepare_for=_show_whole_prompt)
    hides, remedy = "hides later tokens", "Hide the tokens that the reference hides."
    yield Candidate("mask or pads", "mask", hides, "added to the scores as 0 and 1", added, remedy=remedy)
    if getattr(reference.config, "prefix_lm", False):
        hides, remedy = f"{hides} without token_type_ids", TO_SHOW_PROMPTS
    yield Candidate(
        "mask or pads", "mask", hides, "shows each token of a prompt the whole prompt", whole, remedy=remedy
    )


def _add_mask_as_numbers(model: Any) -> None:
    """1 for a visible key and 0 for a hidden one, as a mask of booleans is added."""
    replace_masks(model, lambda mask: (mask >= 0).to(mask.dtype))


def _show_whole_prompt(model: Any, call: PortCall) -> None:
    """Show each token of a prompt the later ones of it; of a prompt in chunks, those of its chunk.

    Keys before a token stay as they are: those that a window hides are hidden.
    """

    def with_prompt(mask: Tensor) -> Tensor:
        queries, keys = mask.shape[-2:]
        query, key = torch.arange(keys - queries, keys)[:, None], torch.arange(keys)
        return mask.masked_fill((key > query) & (key < (_prompt_length(call) or keys)), 0.0)

    replace_masks(model, with_prompt)


def _prompt_length(call: PortCall) -> int | None:
    """The length of a prompt [tokens] after which tokens are generated; None if all that is read is a prompt."""
    if call.kind == "greedy":
        return call.length
    if call.kind == "preemption":
        return call.sizes[0]
    if call.kind == "prefix":  # the tokens after the first that differs are generated
        return 1 + next(index for index, (a, b) in enumerate(zip(*call.rows, strict=True)) if a != b)
    return None


def _counted_pads(call: PortCall) -> Sequence[Sequence[int]]:
    starts = [call.length - len(row) for row in call.rows]
    return [range(start, start + len(row)) for start, row in zip(starts, call.rows, strict=True)]


CAUSE = Cause("mask or pads", 80, _candidates)
