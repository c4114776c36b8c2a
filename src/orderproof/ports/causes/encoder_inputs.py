"""The tables and the mask of an encoder: other position ids, another token type, and attention that is causal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.laws.ports import PortCall
from orderproof.models.hf.export_patches import patch_attribute
from orderproof.models.hf.position_tables import first_position, position_table_size
from orderproof.ports.causes.cause import Candidate, Cause, Defaults, with_values
from orderproof.ports.causes.window import NO_WINDOW
from orderproof.ports.reference import Change, Reference

TABLE_OF_TYPES = "token_type_embeddings"
_PREFIX = "create_bidirectional"  # of the functions of transformers that make masks


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    if reference.kind != "encoder":
        return
    first = first_position(reference.model)
    for other in (0, first - 1, first + 1) if position_table_size(reference.model) is not None else ():
        if other >= 0 and other != first:
            change = Change(positions=partial(_positions, first=other))
            yield Candidate("other", "first position id", str(first), str(other), change)
    tables = [part for name, part in reference.model.named_modules() if name.endswith(TABLE_OF_TYPES)]
    for table in tables[:1]:
        for kind in range(1, min(len(table.weight), 3)):
            yield Candidate("other", "token type", "0", str(kind), Change(prepare=partial(_take_type, kind=kind)))
        yield Candidate("other", "token type", "0", "none is added", Change(prepare=partial(_take_type, kind=None)))
    both = getattr(reference.config, "local_attention", 0)  # [tokens] of a window, half of them on each side
    for size in (NO_WINDOW, both + 2, both - 2) if both else ():
        assumed = "no window" if size == NO_WINDOW else str(size)
        yield Candidate("window", "local_attention", str(both), assumed, with_values({"local_attention": size}))
    if _mask_functions(reference.model):
        yield Candidate("other", "attention", "to both sides", "causal", Change(patch=_causal))


def _positions(call: PortCall, first: int) -> Sequence[Sequence[int]]:
    return [range(first, first + len(row)) for row in call.rows]


def _take_type(model: Any, kind: int | None) -> None:
    for name, part in model.named_modules():
        if name.endswith(TABLE_OF_TYPES) and isinstance(part, nn.Embedding):
            with torch.no_grad():
                part.weight[0] = 0.0 if kind is None else part.weight[kind]


def _mask_functions(model: Any) -> dict[str, Callable[..., Tensor | None]]:
    module = sys.modules[type(model).__module__]
    return {name: value for name, value in vars(module).items() if name.startswith(_PREFIX)}


def _causal(model: Any) -> AbstractContextManager[object]:
    stack, module = ExitStack(), sys.modules[type(model).__module__]
    for name, build in _mask_functions(model).items():
        stack.enter_context(patch_attribute(module, name, partial(_causal_mask, build, model)))
    return stack


def _causal_mask(build: Callable[..., Tensor | None], model: Any, *arguments: Any, **options: Any) -> Tensor:
    """The mask of an encoder, with the tokens after each one hidden."""
    mask, hidden = build(*arguments, **options), options["inputs_embeds"]
    earlier = torch.ones(hidden.shape[1], hidden.shape[1], dtype=torch.bool).tril()[None, None]
    if mask is None and model.config._attn_implementation == "sdpa":
        return earlier
    if mask is None or mask.is_floating_point():
        return torch.where(earlier, 0.0 if mask is None else mask, torch.finfo(hidden.dtype).min)
    return mask & earlier


CAUSE = Cause("other", 84, _candidates)
