"""Which programs are proved for every number of layers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof.laws import find_law
from orderproof.prover.logic.solver import Solver
from orderproof.prover.recording.open_recording import OpenInput, record_open
from orderproof.prover.symbolic.theorem import TOKEN_INPUT, OutputProof, prove
from tests.prover.symbolic.programs import WIDTH, Program, attend, lower


class Stack(nn.Module):
    """Layers one after the other, and how they are connected."""

    def __init__(self, *functions: Callable[..., Tensor], connect: Callable[[nn.ModuleList, Tensor], Tensor]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Program(function) for function in functions)
        self.connect = connect

    def forward(self, x: Tensor) -> Tensor:
        """The result of the last layer."""
        return self.connect(self.layers, x)


def in_order(layers: nn.ModuleList, x: Tensor) -> Tensor:
    """Each layer reads the result of the one before."""
    for layer in layers:
        x = layer(x)
    return x


def shifted_between(layers: nn.ModuleList, x: Tensor) -> Tensor:
    """Tokens move by one between layers, outside of them."""
    x = layers[0](x)
    for layer in layers[1:]:
        x = layer(torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :-1])
    return x


def summed(layers: nn.ModuleList, x: Tensor) -> Tensor:
    """The results of all layers are added."""
    total = x
    for layer in layers:
        x = layer(x)
        total = total + x
    return total


def causal(m: Program, x: Tensor) -> Tensor:
    """Causal attention with a residual."""
    return x + attend(m, x, lower(x))


def local(m: Program, x: Tensor) -> Tensor:
    """Token by token."""
    return x + m.first(x)


def reads_ahead(m: Program, x: Tensor) -> Tensor:
    """Each token reads the next one."""
    return torch.nn.functional.pad(x, (0, 0, 0, 1))[:, 1:]


def reads_back(m: Program, x: Tensor) -> Tensor:
    """Each token reads the one before."""
    return torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]


def _proof(stack: nn.Module) -> OutputProof:
    torch.manual_seed(0)
    graphs = record_open(
        stack.eval(), [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)], {"batch": 3, "tokens": 13}
    )
    statement = find_law("causal").open_statement(frozenset())
    assert statement is not None
    return prove(graphs, [TOKEN_INPUT], statement, Solver())["output"]


@pytest.mark.parametrize(
    "functions", [(causal, causal), (causal, local, causal), (local, causal)], ids=["equal", "three", "of two kinds"]
)
def test_layers_in_order_are_proved_for_every_number(functions: tuple[Callable[..., Tensor], ...]) -> None:
    proof = _proof(Stack(*functions, connect=in_order))
    assert proof.proved
    assert proof.every_depth


def test_a_proof_that_needs_the_order_of_layers_is_one_for_these_layers_only() -> None:
    """Back and ahead is causal; ahead, or ahead twice, is not: the layers cannot be repeated at will."""
    proof = _proof(Stack(reads_back, reads_ahead, connect=in_order))
    assert proof.proved
    assert not proof.every_depth
    assert not _proof(Stack(reads_back, reads_ahead, reads_ahead, connect=in_order)).proved


def test_no_induction_over_layers_with_operators_between_them() -> None:
    proof = _proof(Stack(causal, causal, connect=shifted_between))
    assert proof.proved
    assert not proof.every_depth


def test_no_induction_if_the_output_reads_several_layers() -> None:
    proof = _proof(Stack(causal, causal, connect=summed))
    assert proof.proved
    assert not proof.every_depth


class Masked(nn.Module):
    """Layers of attention, each with the mask that its place gives."""

    def __init__(self, *masks: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Reader() for _ in masks)
        self.masks = masks

    def forward(self, x: Tensor) -> Tensor:
        """The result of the last layer. Layers of one function have one mask."""
        places = torch.arange(x.shape[1])
        masks = {mask: mask(places[:, None], places) for mask in self.masks}
        for layer, mask in zip(self.layers, self.masks, strict=True):
            x = layer(x, masks[mask])
        return x


class Reader(nn.Module):
    """Attention with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x + self.linear(torch.nn.functional.scaled_dot_product_attention(x, x, x, mask))


def _earlier(i: Tensor, j: Tensor) -> Tensor:
    return j <= i


def _window(i: Tensor, j: Tensor) -> Tensor:
    return (j <= i) & (i - j < 3)


def _ending(distance: int) -> Callable[[Tensor, Tensor], Tensor]:
    """No causal mask for a negative distance."""
    return lambda i, j: (i - j >= distance) | (i == j)


@pytest.mark.parametrize(
    ("masks", "every_depth"),
    [
        ((_earlier, _earlier, _earlier), True),
        ((_earlier, _window, _earlier, _window), True),
        ((_earlier, _earlier, _window, _window), False),  # steps of a sequence that may go on
        ((_ending(8), _ending(7), _ending(6), _ending(5)), False),  # which goes on to masks that are not causal
    ],
    ids=["one mask", "alternating", "one after the other", "a sequence"],
)
def test_masks_of_further_layers_are_those_of_recorded_ones(
    masks: tuple[Callable[[Tensor, Tensor], Tensor], ...], every_depth: bool
) -> None:
    proof = _proof(Masked(*masks))
    assert proof.proved
    assert proof.every_depth is every_depth


class Numbered(nn.Module):
    """A layer whose mask has a number that falls from layer to layer, in its code or in a buffer."""

    def __init__(self, number: int, *, in_buffer: bool) -> None:
        super().__init__()
        self.reader = Reader()
        if in_buffer:
            self.register_buffer("number", torch.tensor(number))
        else:
            self.number = number

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        return self.reader(x, (places[:, None] - places >= self.number) | (places[:, None] == places))


class InOrder(nn.Module):
    """Layers one after the other."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        return in_order(self.layers, x)


@pytest.mark.parametrize(("numbers", "every_depth"), [((4, 4, 4), True), ((6, 5, 4), False)])
@pytest.mark.parametrize("in_buffer", [False, True])
def test_numbers_of_further_layers_are_those_of_recorded_ones(
    numbers: tuple[int, ...], every_depth: bool, in_buffer: bool
) -> None:
    proof = _proof(InOrder(*(Numbered(number, in_buffer=in_buffer) for number in numbers)))
    assert proof.proved
    assert proof.every_depth is every_depth
