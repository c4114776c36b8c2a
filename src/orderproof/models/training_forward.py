"""The training forward of a module, so that two calls of it can be compared.

Three things differ from a plain call in train mode, and none changes what one call may give:

- Normalization layers do not store running statistics, on which no output of train mode depends.
- Dropout and attention with dropout are computed by torch's operators one by one: numbers are drawn in the shape of the
  input, and the input is multiplied by what they keep. A law then holds for two runs that draw the same numbers.
- Each call draws from the same seed, so that two calls of one shape draw the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _NormBase

from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.seeded_random import seeded_random

NOT_AS_IN_TRAINING = "running statistics are not stored, and dropout is computed by torch's operators one by one"


class TrainingForward(PassesKeywordsOn):
    """A module whose call is that of another one in train mode; `eval()` of what wraps it does not end this mode."""

    def __init__(self, model: nn.Module, given: int) -> None:
        super().__init__()
        self.model = model
        self.given = given  # the number of inputs of a call

    def train(self, mode: bool = True) -> TrainingForward:  # noqa: FBT001, FBT002 - as nn.Module declares it
        """Switch itself, and not the other module."""
        self.training = mode
        return self

    def _gives(self, name: str, place: int) -> bool:
        del name
        return not isinstance(self.model, PassesKeywordsOn) and place < self.given

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """Call the module."""
        with _without_stored_statistics(self.model), _explicit_dropout(), seeded_random(0):
            return self.model(*inputs, **keywords)


@contextmanager
def _without_stored_statistics(model: nn.Module) -> Iterator[None]:
    parts = [p for p in model.modules() if isinstance(p, _NormBase) and p.training and p.track_running_stats]
    for part in parts:
        part.track_running_stats = False
    try:
        yield
    finally:
        for part in parts:
            part.track_running_stats = True


@contextmanager
def _explicit_dropout() -> Iterator[None]:
    """A block in which dropout is a product with drawn numbers; other functions that draw stay as they are."""
    attention = functional.scaled_dot_product_attention

    def scaled_dot_product_attention(
        query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,  # noqa: FBT001, FBT002
    ) -> Tensor:  # fmt: skip
        if not dropout_p or enable_gqa:
            return attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        if attn_mask is not None and attn_mask.dtype is torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        return _dropped(scores.softmax(-1), dropout_p, scores.shape) @ value

    with (
        mock.patch.object(functional, "dropout", _dropout(lambda x: x.shape)),
        mock.patch.object(functional, "dropout1d", _dropout(lambda x: (*x.shape[:-1], 1))),
        mock.patch.object(functional, "dropout2d", _dropout(lambda x: (*x.shape[:-2], 1, 1))),
        mock.patch.object(functional, "scaled_dot_product_attention", scaled_dot_product_attention),
    ):
        yield


def _dropout(shape: Callable[[Tensor], tuple[int, ...]]) -> Callable[..., Tensor]:
    """Dropout that draws numbers of this shape for an input."""

    def dropout(
        input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False,  # noqa: A002, FBT001, FBT002
    ) -> Tensor:  # fmt: skip
        if not training or not p:
            return input
        dropped = _dropped(input, p, shape(input))
        return input.copy_(dropped) if inplace else dropped

    return dropout


def _dropped(x: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    kept = torch.rand(shape, device=x.device) >= p
    return x * kept * (0.0 if p == 1 else 1 / (1 - p))
