"""Certificates of theorems about small programs whose tokens are permuted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.auditing.record.length_ranges import length_bounds
from orderproof.laws import find_law
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.certificates.equivariance import moved_recording_record
from orderproof.theorems.certificates.notation import formula_data
from orderproof.theorems.equivariance import map_entries, prove_equivariance
from orderproof.theorems.statement import POSITIONS, TOKEN_INPUT
from orderproof_recheck.certificate_file import KIND, VERSION
from orderproof_recheck.theorem import check_theorem
from tests.recheck.theorems.examples import assumptions
from tests.theorems.moved_programs import CASES
from tests.theorems.programs import WIDTH, Program, attend, lower

Certificate = dict[str, Any]
PROGRAMS = {case.name: case for case in CASES}


class Layers(nn.Module):
    """Two layers of attention, one after the other, with a table of positions in front."""

    def __init__(self, function: Callable[[Program, Tensor], Tensor], *, positions: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Program(function) for _ in range(2))
        self.table = nn.Parameter(torch.randn(64, WIDTH)) if positions else None

    def forward(self, x: Tensor) -> Tensor:
        """The result of the last layer."""
        if self.table is not None:
            x = x + self.table[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return x


@dataclass(frozen=True)
class Map:
    """A module in which order enters at constants only, and whether it does at all."""

    build: Callable[[], nn.Module]
    enters: bool = True


def _causal(m: Program, x: Tensor) -> Tensor:
    return x + attend(m, x, lower(x))


def _fused(m: Program, x: Tensor) -> Tensor:
    return x + nn.functional.scaled_dot_product_attention(m.first(x), m.second(x), m.third(x), is_causal=True)


MAPS = {
    "layers without order": Map(lambda: Layers(lambda m, x: x + attend(m, x, None), positions=False), enters=False),
    "layers after a table": Map(lambda: Layers(lambda m, x: x + attend(m, x, None), positions=True)),
    "causal layers": Map(lambda: Layers(_causal, positions=False)),
    "fused causal layers after a table": Map(lambda: Layers(_fused, positions=True)),
}


def recorded(module: nn.Module, *, positions: bool) -> tuple[list[OpenGraph], tuple[str, ...]]:
    """The recordings of a module, and the roles of its inputs."""
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)]
    if positions:
        inputs.append(OpenInput(POSITIONS, ("batch", "tokens"), torch.int64, fixed=True))
    graphs = record_open(module.eval(), inputs, {"batch": 3, "tokens": 13})
    return graphs, (TOKEN_INPUT, *[POSITIONS] * positions)


def unchecked(graphs: Sequence[OpenGraph], roles: tuple[str, ...], law: str, *, is_map: bool) -> Certificate | None:
    """The certificate as the prover writes it, before the recheck; None if nothing is proved."""
    if is_map:
        results = {name: one.proof for name, one in map_entries(graphs, roles, Solver()).items()}
    else:
        results = prove_equivariance(graphs, roles, Solver())
    (output,) = results
    if not results[output].proved:
        return None
    least, greatest, conditions = length_bounds([c for graph in graphs for c in graph.conditions], Solver())
    return {
        "certificate": VERSION,
        "kind": KIND,
        "law": law,
        "code": find_law(law).code,
        "output": output,
        "subject": "a small program",
        "claim": {},
        "assumptions": assumptions(results[output], graphs),
        "calls": [
            {
                "shared": list(roles[1:]),
                "ranges": [
                    {
                        "least_length": least,
                        "greatest_length": greatest,
                        "conditions": [formula_data(c) for c in conditions],
                        "recordings": [
                            moved_recording_record(graph, roles, output, Solver(), without_order=is_map)
                            for graph in graphs
                        ],
                    }
                ],
            }
        ],
        "digest": "",
    }


def of_program(name: str) -> Certificate | None:
    """The certificate of a program with position ids, before the recheck."""
    torch.manual_seed(0)
    return unchecked(*recorded(Program(PROGRAMS[name].function), positions=True), "position_ids", is_map=False)


def of_map(name: str) -> Certificate | None:
    """The certificate that order enters a module at constants only, before the recheck."""
    torch.manual_seed(0)
    return unchecked(*recorded(MAPS[name].build(), positions=False), "permutation", is_map=True)


_made: dict[str, Certificate] = {}


def example(name: str) -> Certificate:
    """The accepted certificate of a program or of a map, made once."""
    if name not in _made:
        made = of_map(name) if name in MAPS else of_program(name)
        assert made is not None
        check_theorem(made, fill=True)
        _made[name] = made
    return copy.deepcopy(_made[name])
