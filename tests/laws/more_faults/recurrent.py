"""Faults of recurrences and convolutions, in a small model of both.

c_t = w_0 u_t + w_1 u_{t-1} + w_2 u_{t-2}      u = W x, zero at pads
h_t = a h_{t-1} + c_t,    y_t = V tanh(h_t) + x_t
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from orderproof.driver import Answer, Driver
from tests.laws.more_faults.planted import Planted

WIDTH, KERNEL = 8, 3


class State(NamedTuple):
    """What a recurrence keeps: the last inputs of its convolution, and its sum."""

    context: Tensor
    sum: Tensor


class Recurrence(nn.Module):
    """See the module's text."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.into = nn.Linear(WIDTH, WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.kernel = nn.Parameter(torch.randn(KERNEL, WIDTH))

    def start(self, rows: int, x: Tensor) -> State:
        """What there is before the first token."""
        return State(x.new_zeros(rows, KERNEL - 1, WIDTH), x.new_zeros(rows, WIDTH))

    def forward(self, x: Tensor, real: Tensor | None, state: State) -> tuple[Tensor, State]:
        """The outputs, and what is kept."""
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


class Recurrent(Driver):
    """The model as it should be."""

    takes = frozenset({"mask", "cache"})
    causal = True
    placed = False

    def __init__(self) -> None:
        self.module = Recurrence().eval()

    def draw(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randn((rows, tokens, WIDTH), generator=torch.Generator().manual_seed(seed))

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> Answer:  # fmt: skip
        state = self.module.start(len(tokens), tokens) if past is None else self.kept(past, tokens.shape[1])
        real = None if mask is None else self.hidden_by(mask[:, -tokens.shape[1] :])
        output, state = self.module(tokens, real, state)
        return Answer(output, state)

    def kept(self, state: State, tokens: int) -> State:
        """What a call of so many tokens goes on from."""
        return state

    def hidden_by(self, mask: Tensor) -> Tensor | None:
        """The mask as the layers get it."""
        return mask

    def reordered(self, cache: Any, rows: Tensor) -> Any:
        return State(*(x[rows] for x in copy.deepcopy(cache)))


class StateLeftOut(Recurrent):
    """A chunk of several tokens starts its recurrence from nothing; a single token goes on from the state."""

    def kept(self, state: State, tokens: int) -> State:
        return state if tokens == 1 else state._replace(sum=torch.zeros_like(state.sum))


class ContextLeftOut(Recurrent):
    """The convolution of a chunk of several tokens sees zeros before it, and not the last tokens of the cache."""

    def kept(self, state: State, tokens: int) -> State:
        return state if tokens == 1 else state._replace(context=torch.zeros_like(state.context))


class PadsRead(Recurrent):
    """The padding mask never reaches the convolution and the recurrence: pads on the left are read."""

    def hidden_by(self, mask: Tensor) -> Tensor | None:
        return None


class OneRowUnmasked(Recurrent):
    """The padding mask is used only where there are several rows."""

    def hidden_by(self, mask: Tensor) -> Tensor | None:
        return mask if len(mask) > 1 else None


class WideConvolution(Driver):
    """An encoder whose long convolution mixes the tokens of a row, pads among them: its mask is never used there."""

    takes = frozenset({"mask"})
    placed = False

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.module = nn.Conv1d(WIDTH, WIDTH, 15, padding=7).eval()

    def draw(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randn((rows, tokens, WIDTH), generator=torch.Generator().manual_seed(seed))

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> Answer:  # fmt: skip
        mixed = self.module(tokens.transpose(1, 2)).transpose(1, 2)
        return Answer(mixed if mask is None else mixed * mask.unsqueeze(-1))


FAULTS = (
    Planted(
        StateLeftOut,
        StateLeftOut,
        ("cache_chunks",),
        ("huggingface/transformers#46032", "huggingface/transformers#45513"),
    ),
    Planted(ContextLeftOut, ContextLeftOut, ("cache_chunks",), ("huggingface/transformers#46741",)),
    Planted(
        PadsRead,
        PadsRead,
        ("batch_mates",),
        ("huggingface/transformers#32677", "huggingface/transformers#41790"),
    ),
    Planted(OneRowUnmasked, OneRowUnmasked, ("batch_mates",), ("huggingface/transformers#46773",)),
    Planted(WideConvolution, WideConvolution, ("batch_mates",), ("HazyResearch/m2#43",)),
)
