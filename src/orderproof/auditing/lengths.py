"""Proofs that hold at every length.

A graph is exported at one length. Exported again with a dynamic token axis, it shows for each tensor which of its sizes
are that length. The proof is the same at every length if

- both graphs have the same operators in the same order, with the same sizes at the length of the proof,
- every size is fixed, the length, or a multiple of the length,
- every fact is the same for all lengths: along the token axis a tensor does not move, is constant, or moves as the
  tokens do, and its elements depend on the same tokens everywhere, on none, or on the tokens up to their own,
- no value of a constant as long as the tokens was used (of a table or a mask, only those rows were read), and no
  constant was read to export the graph.

Each lemma holds for any size, so its conclusions from such facts at one length hold at every length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.fx import Node

from orderproof.auditing.context import AuditContext
from orderproof.auditing.proof import LawWalk, ancestors
from orderproof.errors import OrderproofError
from orderproof.laws import EquivarianceLaw
from orderproof.permutations import Permutation
from orderproof.prover.domain.fact import NEVER, DependenceArray, Fact
from orderproof.prover.domain.move import FREE, STILL, Move, permuted_axis
from orderproof.prover.export.capture import export_functional

MAX_NODES = 1500  # of a graph that is exported a second time for this
Sizes = tuple[str, ...]  # of each dimension: "fixed", "length", "multiple" or "other"


class _OneInput(nn.Module):
    """A module with exactly one named argument, which the exporter needs."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, tokens: Tensor) -> Any:
        return self.module(tokens)


def holds_at_every_length(context: AuditContext, done: LawWalk, output: str) -> bool:
    """True if the proof for this output holds at every length that the model takes."""
    needed = ancestors(done.captured.outputs[output])
    if (
        context.subject.patch_embedding_path is not None
        or context.whole_rows_only
        or done.captured is not context.captured
        or len(context.input_axes) != 1
    ):
        return False
    if any(n in needed and context.token_count in _shape(n) for n in done.constants.used_nodes):
        return False
    if context.captured.read or len(context.captured.graph.nodes) > MAX_NODES:
        return False
    if "sizes" not in context.memo:
        context.memo["sizes"] = _sizes_of(context)
    sizes = context.memo["sizes"]
    return sizes is not None and all(
        _is_length_independent(context, done, node, sizes[node]) for node in needed if node in sizes
    )


def _is_length_independent(context: AuditContext, done: LawWalk, node: Node, sizes: list[Sizes]) -> bool:
    if node in done.constants:
        return all("other" not in each for each in sizes)
    facts = done.walk.facts.get(node, ())
    found: tuple[Fact, ...] = facts if isinstance(facts, tuple) else (facts,)
    group = done.law.generators(context.token_count) if isinstance(done.law, EquivarianceLaw) else ()
    return all(
        _fact_is_length_independent(f, each, context.token_count, group) for f, each in zip(found, sizes, strict=True)
    )


def _fact_is_length_independent(fact: Fact, sizes: Sizes, tokens: int, group: Sequence[Permutation]) -> bool:
    """True if a fact is the same for all lengths; see the module's docstring."""
    known = [] if fact.ranges is None else [fact.ranges.kind, fact.ranges.value]
    for d, size in enumerate(sizes):
        if size == "fixed":
            continue
        if size == "other" or any(x.shape[d] > 1 for x in known):
            return False
        if fact.moves[d] not in (STILL, FREE, _token_move(group, fact.shape[d] // tokens)):
            return False
        if fact.dependence.shape[d] > 1 and not _depends_on_prefix(fact.dependence, d, tokens):
            return False
    return True


def _token_move(group: Sequence[Permutation], times: int) -> Move:
    """The move of a dimension that holds the tokens this many times, row after row."""
    if not group:
        return STILL
    return permuted_axis(np.stack([np.concatenate([p + k * len(p) for k in range(times)]) for p in group]))


def _depends_on_prefix(level: DependenceArray, d: int, tokens: int) -> bool:
    """True if the element at token i depends on nothing, or on exactly the tokens up to i."""
    place = (np.arange(level.shape[d]) % tokens).reshape([-1 if k == d else 1 for k in range(level.ndim)])
    return bool(((level == NEVER) | (level == place)).all())


def _sizes_of(context: AuditContext) -> dict[Node, list[Sizes]] | None:
    """For each operator, how its sizes depend on the length; None if the graph cannot be exported so."""
    s = context.subject
    tokens = torch.export.Dim("tokens", min=2, max=s.max_length or 1 << 20)
    inputs = s.sample(context.length, context.seed).inputs
    shapes = {"tokens": {s.token_axes[0]: tokens}}
    try:
        program = export_functional(_OneInput(s.module), inputs, s.export_context, dynamic_shapes=shapes)
    except OrderproofError:
        return None
    open_nodes = _tensors(program.graph.nodes)
    own = _tensors(context.captured.graph.nodes)
    if list(map(_operator_signature, open_nodes)) != list(map(_operator_signature, own)):
        return None
    found = {}
    for node, other in zip(own, open_nodes, strict=True):
        values, opened = _leaves(node), _leaves(other)
        if [tuple(v.shape) for v in values] != [tuple(map(_hint, v.shape)) for v in opened]:
            return None
        found[node] = [tuple(map(_size_class, v.shape)) for v in opened]
    return found


def _operator_signature(node: Node) -> tuple[Any, ...]:
    """An operator and its literal arguments at the length of the proof; an arange has its name only."""
    name = str(node.target)
    return ("arange",) if name.startswith("aten.arange") else (name, _literal([*node.args, *node.kwargs.items()]))


def _literal(x: Any) -> Any:
    if isinstance(x, Node):
        value = x.meta.get("val")
        return "tensor" if isinstance(value, Tensor | list | tuple) else _literal(value)
    if isinstance(x, torch.SymInt):
        return _hint(x)
    return tuple(map(_literal, x)) if isinstance(x, list | tuple) else repr(x) if isinstance(x, float) else x


def _tensors(nodes: Iterable[Node]) -> list[Node]:
    return [n for n in nodes if n.op == "call_function" and _leaves(n)]


def _leaves(node: Node) -> list[Tensor]:
    value: Any = node.meta.get("val")
    return [v for v in (value if isinstance(value, list | tuple) else [value]) if isinstance(v, Tensor)]


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(int(x) for v in _leaves(node) for x in v.shape)


def _hint(size: Any) -> int:
    return size if isinstance(size, int) else int(size.node.hint)


def _size_class(size: Any) -> str:
    if isinstance(size, int):
        return "fixed"
    expression = size.node.expr
    if expression.is_Symbol:
        return "length"
    factors = list(expression.args) if expression.is_Mul else []
    return "multiple" if [f.is_Integer or f.is_Symbol for f in factors] == [True, True] else "other"
