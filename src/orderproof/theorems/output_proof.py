"""The result of a proof for each output of a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from torch.fx import Node


@dataclass(frozen=True)
class OutputProof:
    """The result for one output.

    Attributes:
        proved: The statement is proved, for every branch of the call.
        every_depth: It is proved for every number of the recorded layers.
        assumptions: What the proof assumes.
        reason: Why it is not proved.
        node: The first node that has no rule, if that is why.
        least_mask: The size from which numbers mask, if the proof states it.

    """

    proved: bool
    every_depth: bool = False
    assumptions: tuple[str, ...] = ()
    reason: str = ""
    node: Node | None = None
    least_mask: float | None = None


def in_every_branch(branches: Iterable[dict[str, OutputProof]]) -> dict[str, OutputProof]:
    """The result for each output of a call with several branches: proved if it is proved in each of them."""
    results: dict[str, OutputProof] = {}
    for branch in branches:
        for name, result in branch.items():
            before = results.get(name)
            if before is None or (before.proved and not result.proved):
                results[name] = result
            elif before.proved:
                assumptions = tuple(dict.fromkeys([*before.assumptions, *result.assumptions]))
                every_depth = before.every_depth and result.every_depth
                results[name] = replace(before, assumptions=assumptions, every_depth=every_depth)
    return results


def failures_before(node: Node, facts: Mapping[Node, object], failures: Mapping[Node, str]) -> Iterator[Node]:
    """The nodes without a rule on which a node without a fact depends."""
    seen, queue = set(), [node]
    while queue:
        one = queue.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in failures:
            yield one
        queue += [n for n in one.all_input_nodes if n not in facts]
