"""Node check: test every fact at every node on two real runs.

It runs the graph on X and on X', in float64, and compares each tensor with its fact. It is a permanent test of the
rules. On the facts of an analysis that continues after breaks, it finds the first node at which a model violates a law.
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

from orderproof.diagnosis.domain.fact import Fact, pull_back
from orderproof.diagnosis.domain.move import FREE
from orderproof.diagnosis.rule import Facts
from orderproof.diagnosis.tolerances import NODE_CHECK, NODE_CHECK_ORDINARY
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import execute_nodes


@dataclass(frozen=True, slots=True)
class Violation:
    """A fact that two runs contradict, and by how much (a relative difference)."""

    node: Node
    claim: str
    deviation: float


def check_nodes(
    captured: CapturedGraph,
    facts: Mapping[Node, Facts],
    first: tuple[Tensor, ...],
    second: tuple[Tensor, ...],
    *,
    generator: int = 0,
    case: int = 0,
    starts: tuple[Tensor | None, Tensor | None] = (None, None),
    state: Mapping[str, Tensor] | None = None,
    tolerance: float = NODE_CHECK,
) -> Iterator[Violation]:
    """Every contradiction, in graph order.

    `second` is `first` with the change of the law, by this generator or for this case (cut j). `starts` are the values
    of the cut node in the two runs, if the graph is cut.
    """
    runs = [
        execute_nodes(captured, inputs, float64=True, start=start, state=state)
        for inputs, start in ((first, starts[0]), (second, starts[1]))
    ]
    with torch.no_grad():
        for (node, value), (_, other) in zip(*runs, strict=True):
            found = facts.get(node)
            if found is None or node.name in captured.state:
                continue  # a parameter or buffer: one tensor for both runs
            pairs = zip(found, value, other, strict=False) if isinstance(found, tuple) else [(found, value, other)]
            for fact, a, b in pairs:
                if isinstance(a, Tensor):
                    yield from _violations(node, fact, _array(a), _array(b), generator, case, tolerance)


def _array(value: Tensor) -> NDArray[Any]:
    return value.detach().clone().numpy() if value.dtype is not torch.bfloat16 else value.float().numpy()


def _violations(
    node: Node, fact: Fact, a: NDArray[Any], b: NDArray[Any], generator: int, case: int, tolerance: float
) -> Iterator[Violation]:
    image = pull_back(b, fact.moves, fact.shape, generator)
    gap = _relative_difference(a, image, np.broadcast_to(fact.dependence < case, a.shape))
    if gap > tolerance:
        yield Violation(node, fact.describe(), gap)
    for d, move in enumerate(fact.moves):
        if move is FREE and a.shape[d] > 1:
            for x in (a, b):
                free = _relative_difference(
                    x, np.broadcast_to(np.take(x, [0], axis=d), x.shape), np.ones(x.shape, dtype=bool)
                )
                if free > tolerance:
                    yield Violation(node, f"constant along dimension {d}", free)
    if fact.ranges is not None:
        exact = np.broadcast_to(fact.ranges.exact, a.shape)
        value = np.broadcast_to(fact.ranges.low, a.shape)
        for x in (a, b):
            wrong = _relative_difference(x, value, exact)
            if wrong > tolerance:
                yield Violation(node, "known values", wrong)


def _relative_difference(a: NDArray[Any], b: NDArray[Any], where: NDArray[Any]) -> float:
    """The largest difference at the marked elements, relative to the largest ordinary value."""
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
    # A mask of -1e38 would hide every other difference.
    ordinary = finite[finite < NODE_CHECK_ORDINARY]
    scale = float(ordinary.max()) if ordinary.size else float(finite.max()) if finite.size else 1.0
    relative = np.where(np.abs(a) < NODE_CHECK_ORDINARY, gap / (scale or 1.0), gap / np.maximum(np.abs(a), 1.0))
    return float(relative.max())
