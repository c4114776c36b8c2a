"""Stacks of causal layers, and whether they show which layers a further one may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tests.theorems.programs import WIDTH

Mask = Callable[[Tensor, Tensor], Tensor]  # of the places of queries and of keys


class Layer(nn.Module):
    """Attention with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x + self.linear(scaled_dot_product_attention(x, x, x, mask))


class Masked(nn.Module):
    """Layers that get their masks. Those with one function have one mask."""

    def __init__(self, *masks: Mask) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in masks)
        self.masks = masks

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        masks = {mask: mask(places[:, None], places) for mask in self.masks}
        for layer, mask in zip(self.layers, self.masks, strict=True):
            x = layer(x, masks[mask])
        return x


class Chained(nn.Module):
    """Layers whose masks are made from one tensor, which changes from layer to layer."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(4))
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1]) * 256
        for layer in self.layers:
            x = layer(x, places[:, None] >= places)
            places = self.change(places)
        return x


class Numbered(Layer):
    """A layer whose mask has a number, in its code or in a buffer."""

    def __init__(self, number: int, *, in_buffer: bool) -> None:
        super().__init__()
        if in_buffer:
            self.register_buffer("number", torch.tensor(number))
        else:
            self.number = number

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        return super().forward(x, (places[:, None] - places >= self.number) | (places[:, None] == places))


class Repeating(Layer):
    """A layer that executes more operators the further it is."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        for _ in range(self.count):
            places = places * 16
        return super().forward(x, places[:, None] >= places)


class Recurrent(nn.Module):
    """A layer that loops over the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        state, states = torch.zeros_like(x[:, 0]), []
        for token in range(x.shape[1]):
            state = state * torch.sigmoid(x[:, token]) + self.linear(x[:, token])
            states.append(state)
        return x + torch.stack(states, 1)


class InOrder(nn.Module):
    """Layers one after the other."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def _earlier(i: Tensor, j: Tensor) -> Tensor:
    return j <= i


def _window(i: Tensor, j: Tensor) -> Tensor:
    return (j <= i) & (i - j < 3)


def _after(distance: int) -> Mask:
    """Not causal for a negative distance."""
    return lambda i, j: (i - j >= distance) | (i == j)


def _numbered(*numbers: int, in_buffer: bool) -> nn.Module:
    return InOrder([Numbered(number, in_buffer=in_buffer) for number in numbers])


STACKS: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "one mask": (lambda: Masked(_earlier, _earlier, _earlier), True),
    "alternating masks": (lambda: Masked(_earlier, _window, _earlier, _window), True),
    "masks in two blocks": (lambda: Masked(_earlier, _earlier, _window, _window), False),
    "masks that end": (lambda: Masked(*map(_after, (8, 7, 6, 5))), False),
    "positions that overflow": (lambda: Chained(lambda places: places * 16), False),
    "positions that coincide": (lambda: Chained(lambda places: places // 2), False),
    "equal numbers": (partial(_numbered, 4, 4, 4, in_buffer=False), True),
    "falling numbers": (partial(_numbered, 6, 5, 4, in_buffer=False), False),
    "equal buffers": (partial(_numbered, 4, 4, 4, in_buffer=True), True),
    "falling buffers": (partial(_numbered, 6, 5, 4, in_buffer=True), False),
    "more and more operators": (lambda: InOrder([Repeating(count) for count in range(3)]), False),
    "loops": (lambda: InOrder([Recurrent() for _ in range(3)]), True),
}
