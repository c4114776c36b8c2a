"""Which programs are proved for every number of layers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof.laws import find_law
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenInput, record_open
from orderproof.theorems.agreement import prove_agreement
from orderproof.theorems.output_proof import OutputProof
from orderproof.theorems.statement import TOKEN_INPUT
from tests.pairs import one_in
from tests.theorems.programs import WIDTH, Program, attend, lower
from tests.theorems.stacks import STACKS


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
    return prove_agreement(graphs, [TOKEN_INPUT], statement, Solver())["output"]


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


@pytest.mark.parametrize("name", one_in(3, STACKS))
def test_further_layers_are_those_that_the_recorded_ones_show(name: str) -> None:
    make, every_depth = STACKS[name]
    proof = _proof(make())
    assert proof.proved
    assert proof.every_depth is every_depth
