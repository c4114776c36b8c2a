"""The node check: every fact at every node, held against two real runs.

It needs no labels and no oracle: run the graph on X and on X', in float64, and compare each tensor with what
its fact says. It is a permanent test of the rules, and it also finds the first place where a model breaks a
law, when the facts of a repairing walk are checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.fx import Node

from orderproof.prover.capture import Captured
from orderproof.prover.fact import EXACT, Fact, carry
from orderproof.prover.move import FREE
from orderproof.prover.rule import Facts
from orderproof.prover.run import steps

TOLERANCE = 1e-7  # relative to the tensor's largest value, in float64


@dataclass(frozen=True, slots=True)
class Violation:
    """A fact that two runs contradict."""

    node: Node
    claim: str
    deviation: float


def check_nodes(
    captured: Captured,
    facts: Mapping[Node, Facts],
    first: tuple[Tensor, ...],
    second: tuple[Tensor, ...],
    *,
    generator: int = 0,
    case: int = 0,
    starts: tuple[Tensor | None, Tensor | None] = (None, None),
    state: Mapping[str, Tensor] | None = None,
    tolerance: float = TOLERANCE,
) -> Iterator[Violation]:
    """Every contradiction, in graph order.

    `second` is `first` changed as the law says, by this generator or for this case (cut).
    """
    runs = [
        steps(captured, inputs, float64=True, start=start, state=state)
        for inputs, start in ((first, starts[0]), (second, starts[1]))
    ]
    with torch.no_grad():
        for (node, value), (_, other) in zip(*runs, strict=True):
            found = facts.get(node)
            if found is None or node.name in captured.state:
                continue  # a parameter or buffer is the same tensor in both runs
            pairs = zip(found, value, other, strict=False) if isinstance(found, tuple) else [(found, value, other)]
            for fact, a, b in pairs:
                if isinstance(a, Tensor):
                    yield from _contradictions(node, fact, _array(a), _array(b), generator, case, tolerance)


def _array(value: Tensor) -> NDArray[Any]:
    return value.detach().numpy() if value.dtype is not torch.bfloat16 else value.float().numpy()


def _contradictions(
    node: Node, fact: Fact, a: NDArray[Any], b: NDArray[Any], generator: int, case: int, tolerance: float
) -> Iterator[Violation]:
    image = carry(b, fact.moves, fact.shape, generator)
    gap = _gap(a, image, np.broadcast_to(fact.level < case, a.shape))
    if gap > tolerance:
        yield Violation(node, fact.describe(), gap)
    for d, move in enumerate(fact.moves):
        if move is FREE and a.shape[d] > 1:
            for x in (a, b):
                free = _gap(x, np.broadcast_to(np.take(x, [0], axis=d), x.shape), np.ones(x.shape, dtype=bool))
                if free > tolerance:
                    yield Violation(node, f"constant along dimension {d}", free)
    if fact.known is not None:
        exact = np.broadcast_to(fact.known.where(EXACT), a.shape)
        value = np.broadcast_to(fact.known.value, a.shape)
        for x in (a, b):
            wrong = _gap(x, value, exact)
            if wrong > tolerance:
                yield Violation(node, "known values", wrong)


def _gap(a: NDArray[Any], b: NDArray[Any], where: NDArray[Any]) -> float:
    """The largest difference at the marked elements, relative to the largest finite value."""
    if not where.any():
        return 0.0
    if a.dtype.kind in "biu":
        return 1.0 if bool((a != b)[where].any()) else 0.0
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | ~where
        gap = np.where(same, 0.0, np.abs(a - b))
    if not np.isfinite(gap).all():
        return float("inf")
    finite = np.abs(a[np.isfinite(a)])
    # Masks of -1e38 would hide everything beside them: scale by what is ordinary.
    ordinary = finite[finite < 1e6]
    scale = float(ordinary.max()) if ordinary.size else float(finite.max()) if finite.size else 1.0
    relative = np.where(np.abs(a) < 1e6, gap / (scale or 1.0), gap / np.maximum(np.abs(a), 1.0))
    return float(relative.max())
