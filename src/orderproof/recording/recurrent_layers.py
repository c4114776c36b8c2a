"""Recurrent layers of torch with an open number of tokens: torch computes token by token, so they are kept whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_ATEN = torch.ops.aten
LAYERS = {_ATEN.lstm.input, _ATEN.gru.input, _ATEN.rnn_tanh.input, _ATEN.rnn_relu.input}


def empty_results(x: Tensor, first: Tensor | Sequence[Tensor], *options: Any) -> tuple[Tensor, ...]:
    """Tensors of the shapes of the results: the outputs [rows, tokens, directions * width], then the last states."""
    states = [first] if isinstance(first, Tensor) else list(first)
    directions = 2 if options[-2] else 1
    output = x.new_empty(*x.shape[:2], directions * states[0].shape[2])
    return output, *(torch.empty_like(state) for state in states)
