"""Faults of recurrences and convolutions, in a small model of both.

c_t = w_0 u_t + w_1 u_{t-1} + w_2 u_{t-2}      u = W x, zero at pads
h_t = a h_{t-1} + c_t,    y_t = V tanh(h_t) + x_t
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter, ModelOutput
from tests.laws.faults.fault import Planted

WIDTH, KERNEL = 8, 3


class State(NamedTuple):
    """The state of a recurrence: the last inputs of its convolution, and its sum."""

    context: Tensor
    sum: Tensor


class Recurrence(nn.Module):
    """The model of this module."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.into = nn.Linear(WIDTH, WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.kernel = nn.Parameter(torch.randn(KERNEL, WIDTH))

    def start(self, rows: int, x: Tensor) -> State:
        """The initial state."""
        return State(x.new_zeros(rows, KERNEL - 1, WIDTH), x.new_zeros(rows, WIDTH))

    def forward(self, x: Tensor, real: Tensor | None, state: State) -> tuple[Tensor, State]:
        """The outputs and the state."""
        u = self.into(x)
        if real is not None:
            u = u * real.unsqueeze(-1)
        u = torch.cat([state.context, u], dim=1)
        mixed = sum(self.kernel[j] * u[:, j : u.shape[1] - KERNEL + 1 + j] for j in range(KERNEL))
        total, sums = state.sum, []
        for t in range(x.shape[1]):
            total = 0.7 * total + mixed[:, t]
            sums.append(total)
        return self.out(torch.stack(sums, dim=1).tanh()) + x, State(u[:, -KERNEL + 1 :], total)


class Recurrent(ModelAdapter):
    """The model without a fault."""

    supported_inputs = frozenset({"mask", "cache"})
    causal = True
    has_positions = False

    def __init__(self) -> None:
        self.module = Recurrence().eval()

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randn((rows, tokens, WIDTH), generator=torch.Generator().manual_seed(seed))

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> ModelOutput:  # fmt: skip
        state = self.module.start(len(tokens), tokens) if past is None else self.kept(past, tokens.shape[1])
        real = None if mask is None else self.hidden_by(mask[:, -tokens.shape[1] :])
        output, state = self.module(tokens, real, state)
        return ModelOutput(output, state)

    def kept(self, state: State, tokens: int) -> State:
        """The state from which a call with this number of tokens starts."""
        return state

    def hidden_by(self, mask: Tensor) -> Tensor | None:
        """The mask that the layers get."""
        return mask

    def reorder_cache(self, cache: Any, rows: Tensor) -> Any:
        return State(*(x[rows] for x in copy.deepcopy(cache)))


class StateLeftOut(Recurrent):
    """A chunk of several tokens starts its recurrence from zero; a single token starts from the cached state."""

    def kept(self, state: State, tokens: int) -> State:
        return state if tokens == 1 else state._replace(sum=torch.zeros_like(state.sum))


class ContextLeftOut(Recurrent):
    """The convolution of a chunk of several tokens is padded with zeros, not with the last tokens of the cache."""

    def kept(self, state: State, tokens: int) -> State:
        return state if tokens == 1 else state._replace(context=torch.zeros_like(state.context))


class PadsRead(Recurrent):
    """The padding mask does not reach the convolution and the recurrence: pads on the left are read."""

    def hidden_by(self, mask: Tensor) -> Tensor | None:
        return None


class OneRowUnmasked(Recurrent):
    """The padding mask is used only for batches of several rows."""

    def hidden_by(self, mask: Tensor) -> Tensor | None:
        return mask if len(mask) > 1 else None


class WideConvolution(ModelAdapter):
    """An encoder whose long convolution mixes pads with the other tokens: it does not use the mask."""

    supported_inputs = frozenset({"mask"})
    has_positions = False

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.module = nn.Conv1d(WIDTH, WIDTH, 15, padding=7).eval()

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randn((rows, tokens, WIDTH), generator=torch.Generator().manual_seed(seed))

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> ModelOutput:  # fmt: skip
        mixed = self.module(tokens.transpose(1, 2)).transpose(1, 2)
        return ModelOutput(mixed if mask is None else mixed * mask.unsqueeze(-1))


FAULTS = (
    Planted(
        StateLeftOut,
        StateLeftOut,
        ("chunked_prefill",),
        ("huggingface/transformers#46032", "huggingface/transformers#45513"),
    ),
    Planted(ContextLeftOut, ContextLeftOut, ("chunked_prefill",), ("huggingface/transformers#46741",)),
    Planted(
        PadsRead,
        PadsRead,
        ("batch_composition",),
        ("huggingface/transformers#32677", "huggingface/transformers#41790"),
    ),
    Planted(OneRowUnmasked, OneRowUnmasked, ("batch_composition",), ("huggingface/transformers#46773",)),
    Planted(WideConvolution, WideConvolution, ("batch_composition",), ("HazyResearch/m2#43",)),
)
