"""Whether a proof at one length is a proof at every length.

A graph is recorded at one length. Recorded again with the token axis left open, it says for every tensor which of its
sizes are that length. The proof is the same at every length if

- both graphs are the same operators in the same order, with the same sizes at the length of the proof,
- every size is fixed, the length, or a multiple of it,
- every fact says the same whatever the length: along the token axis a tensor does not move, is constant, or moves as
  the tokens do, and depends on the same everywhere, or on nothing, or on the tokens up to its own,
- and no value of a constant as long as the tokens was used: of a table or a mask only those rows were looked at;
  nor was any constant read to record the graph.

Each lemma speaks of any size, so what it concludes of such facts at one length it concludes at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.fx import Node

from orderproof.auditing.attempt import Attempt, ancestors
from orderproof.auditing.examine import Examination
from orderproof.errors import OrderproofError
from orderproof.laws import PermutationLaw
from orderproof.permutations import Permutation
from orderproof.prover.capture import recorded
from orderproof.prover.fact import NEVER, Fact, Levels
from orderproof.prover.move import FREE, STILL, Move, moved

MOST = 1500  # nodes of a graph that is recorded a second time for this
Sizes = tuple[str, ...]  # of each dimension: "fixed", "length", "multiple" or "other"


class _OneInput(nn.Module):
    """A module with exactly one argument, as the exporter wants it named."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, tokens: Tensor) -> Any:
        return self.module(tokens)


def every_length(exam: Examination, done: Attempt, output: str) -> bool:
    """Whether the proof of this output holds at every length the model takes."""
    needed = ancestors(done.captured.outputs[output])
    if exam.subject.cut is not None or exam.whole or done.captured is not exam.captured or len(exam.starts) != 1:
        return False
    if any(n in needed and exam.tokens in _shape(n) for n in done.constants.read):
        return False
    if exam.captured.read or len(exam.captured.graph.nodes) > MOST:
        return False
    if "sizes" not in exam.kept:
        exam.kept["sizes"] = _sizes_of(exam)
    sizes = exam.kept["sizes"]
    return sizes is not None and all(_says_the_same(exam, done, node, sizes[node]) for node in needed if node in sizes)


def _says_the_same(exam: Examination, done: Attempt, node: Node, sizes: list[Sizes]) -> bool:
    if node in done.constants:
        return all("other" not in each for each in sizes)
    facts = done.walk.facts.get(node, ())
    found: tuple[Fact, ...] = facts if isinstance(facts, tuple) else (facts,)
    group = done.law.generators(exam.tokens) if isinstance(done.law, PermutationLaw) else ()
    return all(_uniform(f, each, exam.tokens, group) for f, each in zip(found, sizes, strict=True))


def _uniform(fact: Fact, sizes: Sizes, tokens: int, group: Sequence[Permutation]) -> bool:
    """Whether a fact says the same whatever the length: see the module's text."""
    known = [] if fact.known is None else [fact.known.status, fact.known.value]
    for d, size in enumerate(sizes):
        if size == "fixed":
            continue
        if size == "other" or any(x.shape[d] > 1 for x in known):
            return False
        if fact.moves[d] not in (STILL, FREE, _as_tokens(group, fact.shape[d] // tokens)):
            return False
        if fact.level.shape[d] > 1 and not _own_place(fact.level, d, tokens):
            return False
    return True


def _as_tokens(group: Sequence[Permutation], times: int) -> Move:
    """How a dimension moves in which the tokens stand so many times, one row behind the other."""
    if not group:
        return STILL
    return moved(np.stack([np.concatenate([p + k * len(p) for k in range(times)]) for p in group]))


def _own_place(level: Levels, d: int, tokens: int) -> bool:
    """Whether what is at token i depends on nothing, or on tokens up to i and no fewer."""
    place = (np.arange(level.shape[d]) % tokens).reshape([-1 if k == d else 1 for k in range(level.ndim)])
    return bool(((level == NEVER) | (level == place)).all())


def _sizes_of(exam: Examination) -> dict[Node, list[Sizes]] | None:
    """For each operator of the graph, how its sizes depend on the length; None where that cannot be had."""
    s = exam.subject
    tokens = torch.export.Dim("tokens", min=2, max=s.max_length or 1 << 20)
    inputs = s.sample(exam.length, exam.seed).inputs
    shapes = {"tokens": {s.token_axes[0]: tokens}}
    try:
        program = recorded(_OneInput(s.module), inputs, s.quiet, dynamic_shapes=shapes)
    except OrderproofError:
        return None
    open_nodes = _tensors(program.graph.nodes)
    own = _tensors(exam.captured.graph.nodes)
    if list(map(_call, open_nodes)) != list(map(_call, own)):
        return None
    found = {}
    for node, other in zip(own, open_nodes, strict=True):
        values, opened = _leaves(node), _leaves(other)
        if [tuple(v.shape) for v in values] != [tuple(map(_hint, v.shape)) for v in opened]:
            return None
        found[node] = [tuple(map(_kind, v.shape)) for v in opened]
    return found


def _call(node: Node) -> tuple[Any, ...]:
    """An operator and its literal arguments, at the length of the proof; of an arange only that it is one."""
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


def _kind(size: Any) -> str:
    if isinstance(size, int):
        return "fixed"
    expression = size.node.expr
    if expression.is_Symbol:
        return "length"
    factors = list(expression.args) if expression.is_Mul else []
    return "multiple" if [f.is_Integer or f.is_Symbol for f in factors] == [True, True] else "other"
