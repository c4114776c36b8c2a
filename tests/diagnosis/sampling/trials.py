"""Interpret a graph of one operator on drawn operands, and run the operator twice on values that fit them."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Graph, Node

from orderproof.diagnosis.analysis import Analysis, analyze
from orderproof.diagnosis.domain.constants import Constants
from orderproof.diagnosis.domain.fact import Fact
from orderproof.diagnosis.domain.move import Move
from tests.diagnosis.sampling.operands import (
    SCALES,
    Array,
    Given,
    In,
    Relation,
    Sample,
    Scale,
    draw_numbers,
    draw_role,
    draw_values,
    filled,
    read,
)


def placed(array: Array, moves: tuple[Move, ...], generator: int) -> Array:
    """The array that holds array[e] at move(e)."""
    result = np.empty_like(array)
    result[np.ix_(*[m.indices(generator, s) for m, s in zip(moves, array.shape, strict=True)])] = array
    return result


def two_runs(
    rng: np.random.Generator, roles: list[Given], generator: int, case: int, scale: Scale, first: list[Array]
) -> list[Array]:
    """The operands of the second run, given those of the first."""
    second = []
    for given, x in zip(roles, first, strict=True):
        if given.fact is None:
            second.append(x)
            continue
        fresh = draw_values(rng, given, scale)
        kept = np.broadcast_to(given.fact.dependence < case, x.shape)
        second.append(placed(np.where(kept, x, read(fresh, given.fact.moves, generator)), given.fact.moves, generator))
    return second


def first_run(rng: np.random.Generator, roles: list[Given], scale: Scale) -> list[Array]:
    made = []
    for given in roles:
        if given.fact is not None:
            made.append(draw_values(rng, given, scale))
        elif given.buffer is not None:
            made.append(given.buffer)
        else:
            made.append(draw_numbers(rng, given.operand, given.operand.shape, scale))
    return made


@dataclass
class Trial:
    """One operator on operands in their roles: what the walk says of each result, and pairs of runs."""

    sample: Sample
    relation: Relation
    roles: list[Given]
    walk: Analysis
    node: Node
    constants: Constants

    def facts(self) -> list[Fact]:
        found = self.walk.facts[self.node]
        return list(found) if isinstance(found, tuple) else [found]

    def kind(self) -> str:
        """The source of imprecision: `known` elements and masks, `cut`, `whole` numbers, or none (`ordinary`)."""
        value = self.node.meta["val"]
        results = value if isinstance(value, list | tuple) else [value]
        if any(g.wild or (g.fact is not None and g.fact.ranges is not None) for g in self.roles):
            return "known"
        if self.relation.family == "influence":
            return "cut"
        real = all(g.operand.kind not in ("bool", "int", "index") for g in self.roles)
        return "ordinary" if real and all(v.is_floating_point() for v in results) else "whole"

    def describe(self) -> str:
        lines = [f"{self.sample.operator}{self.sample.args}{self.sample.kwargs or ''} {self.relation}"]
        for k, given in enumerate(self.roles):
            f = given.fact
            if f is None:
                lines.append(f"  {k}: {'parameter' if given.buffer is None else given.buffer.tolist()}")
            else:
                kinds = [m.kind for m in f.moves]
                lines.append(f"  {k}: {kinds} level {f.dependence.tolist()}")
                if f.ranges is not None:
                    lines.append(f"     low {f.ranges.low.tolist()} high {f.ranges.high.tolist()}")
        for f in self.facts():
            lines.append(f"  -> {[m.kind for m in f.moves]} level {f.dependence.tolist()}")
            if f.ranges is not None:
                lines.append(f"     low {f.ranges.low.tolist()} high {f.ranges.high.tolist()}")
        lines += [f"  broke: {b.reason}" for b in self.walk.breaks]
        return "\n".join(lines)


def trial(sample: Sample, relation: Relation, roles: list[Given]) -> Trial:
    """Walk a graph of one operator."""
    graph = Graph()
    values, state, facts, parameters = {}, {}, {}, []
    nodes = []
    for k, given in enumerate(roles):
        node = graph.placeholder(f"x{k}")
        node.meta["val"] = torch.empty(given.operand.shape, dtype=_dtype(given.operand), device="meta")
        nodes.append(node)
        if given.fact is not None:
            facts[node] = given.fact
            continue
        state[node.name] = f"state{k}"
        if given.buffer is not None:
            values[f"state{k}"] = torch.from_numpy(given.buffer).to(_dtype(given.operand))
        else:
            parameters.append(f"state{k}")
            values[f"state{k}"] = torch.full(given.operand.shape, torch.nan, dtype=_dtype(given.operand))
    supply = iter(nodes)
    target = sample.target
    node = graph.call_function(target, filled(sample.args, supply), filled(sample.kwargs, supply))
    made = apply(sample, first_run(np.random.default_rng(0), roles, 1.0))
    node.meta["val"] = [torch.empty_like(x, device="meta") for x in made] if len(made) > 1 else made[0].to("meta")
    if _returns_list(target) and len(made) == 1:
        node.meta["val"] = [made[0].to("meta")]
    for k in sample.reads:
        graph.call_function(operator.getitem, (node, k)).meta["val"] = made[k].to("meta")
    constants = Constants(graph, state, values, parameters=parameters)
    return Trial(sample, relation, roles, analyze(graph, constants, facts), node, constants)


def _returns_list(target: Any) -> bool:
    returns = target._schema.returns
    return len(returns) == 1 and "Tensor[]" in str(returns[0].type).replace("List[Tensor]", "Tensor[]")


def _dtype(operand: In) -> torch.dtype:
    if operand.kind == "bool":
        return torch.bool
    return torch.int64 if operand.kind in ("int", "index") else operand.dtype


def apply(sample: Sample, arrays: list[Array]) -> list[Tensor]:
    """The operator itself, on numbers."""
    tensors = iter(
        [
            torch.from_numpy(np.ascontiguousarray(a)).to(_dtype(o))
            for a, o in zip(arrays, sample.operands(), strict=True)
        ]
    )
    args, kwargs = filled(sample.args, tensors), filled(sample.kwargs, tensors)
    with torch.no_grad():
        made = sample.target(*args, **kwargs)
    results = made if isinstance(made, list | tuple) else [made]
    return [x.resolve_conj() for x in results if isinstance(x, Tensor)]


@dataclass
class Runs:
    """Pairs of results of one trial: for each pair the generator, the case, whether ordinary, and both results."""

    pairs: list[tuple[int, int, float, list[Array], list[Array]]]


def runs_of(tried: Trial, rng: np.random.Generator) -> Runs:
    pairs = []
    cases = tried.relation.cases()
    for scale in SCALES[: 2 if len(cases) > 6 else 3 if len(cases) > 2 else 4]:
        first = first_run(rng, tried.roles, scale)
        one = [np.asarray(x) for x in apply(tried.sample, first)]
        for generator, case in cases:
            second = two_runs(rng, tried.roles, generator, case, scale, first)
            two = [np.asarray(x) for x in apply(tried.sample, second)]
            pairs.append((generator, case, scale, one, two))
    return Runs(pairs)


def trials(sample: Sample, count: int, seed: int) -> Iterator[tuple[Trial, np.random.Generator]]:
    """Trials of one sample, each with the generator to draw its runs from."""
    operands = sample.operands()
    sizes = sorted({s for o in operands for s in o.shape if 1 < s <= 4})
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        family = "influence" if k % 3 == 2 else "turn" if k % 6 == 4 else "permutation"
        relation = Relation(family, int(rng.choice(sizes or [2])))
        known = sample.known and rng.random() < 0.6
        fixed = int(rng.integers(len(operands))) if len(operands) > 1 and rng.random() < 0.5 else -1
        roles = [draw_role(rng, o, relation, constant=i == fixed, known=known) for i, o in enumerate(operands)]
        if all(g.fact is None for g in roles):
            continue
        yield trial(sample, relation, roles), rng
