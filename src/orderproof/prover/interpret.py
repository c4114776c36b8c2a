"""Walk a graph once, carrying one fact for each tensor.

Strict: after a break nothing follows, and what is proved is proved. Repairing: after a break the walk goes
on as if the value were repaired, so that every place where order enters is found and not only the first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.fx import Graph, Node

from orderproof.prover.constants import Constants, is_arbitrary, is_uninitialised, reads_memory
from orderproof.prover.fact import ALWAYS, NEVER, Fact, constant, still, uniform, unsure
from orderproof.prover.move import STILL, Move, is_moved
from orderproof.prover.rule import Application, Break, Facts, NothingFollows, find, has_large_number
from orderproof.prover.sharing import Sharing

# Lemmas whose results are bounded, or which say themselves what becomes of masked entries.
_CAREFUL = {
    "pointwise_equivariant",
    "movement_equivariant",
    "contraction_equivariant",
    "softmax_equivariant",
    "attention_equivariant",
    "dense_dependence",
    "extreme_of_visible",
}
_INTERNAL = (IndexError, KeyError, TypeError, ValueError, AttributeError)


@dataclass(slots=True)
class Walk:
    """What one walk found."""

    facts: dict[Node, Facts]
    lemmas: dict[Node, str]
    breaks: list[Break] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    consulted: frozenset[str] = frozenset()
    made: dict[Node, Facts] = field(default_factory=dict)  # what was concluded of the steps that are shared
    same: dict[Node, Node] = field(default_factory=dict)  # a step that repeats an earlier one, and that one

    def fact(self, node: Node) -> Fact:
        """The fact about a node that is one tensor."""
        found = self.facts[node]
        assert isinstance(found, Fact)
        return found


def interpret(
    graph: Graph,
    constants: Constants,
    inputs: Mapping[Node, Fact],
    *,
    repairing: bool = False,
    mend: Callable[[Node, Fact], Fact] | None = None,
) -> Walk:
    """Walk the graph with these facts about its inputs (any node may be given: the walk starts there).

    `mend` may replace the fact about a tensor before the walk goes on (to find every leak, not only the first).
    """
    walk = Walk({}, {})
    sharing = Sharing(constants)
    constants.consulted.clear()
    constants.read.clear()

    def assume(text: str) -> None:
        if text not in walk.assumptions:
            walk.assumptions.append(text)

    with np.errstate(all="ignore"):  # values of masks overflow, and their infinities are looked at on purpose
        for node in graph.nodes:
            if node in inputs:
                walk.facts[node], walk.lemmas[node] = inputs[node], "given"
            elif node.op in ("placeholder", "call_function"):
                made = _visit(node, walk, sharing, repairing=repairing, assume=assume)
                if made is not None:
                    walk.facts[node] = mend(node, made) if mend is not None and isinstance(made, Fact) else made
    walk.consulted = frozenset(constants.consulted)
    return walk


def _visit(node: Node, walk: Walk, sharing: Sharing, *, repairing: bool, assume: object) -> Facts | None:
    value, constants = node.meta.get("val"), sharing.constants
    if node.op == "placeholder":
        if node not in constants:
            walk.lemmas[node] = "given"
            return still(_shape(value), ALWAYS) if isinstance(value, Tensor) else None
        walk.lemmas[node] = "same_in_both_runs"
        return constant(_shape(value)) if isinstance(value, Tensor) else None
    if not _tensors(value):
        return None
    if node in constants and not constants.opaque(node):
        walk.lemmas[node] = "same_in_both_runs"
        return _each(value, constant)
    if node.target is operator.getitem:
        walk.lemmas[node] = "part_of_a_tuple"
        found = walk.facts.get(node.args[0])  # type: ignore[arg-type]
        return found[node.args[1]] if isinstance(found, tuple) else found  # type: ignore[index]
    key = sharing.key(node, walk.facts)
    if key in sharing.first:
        first = walk.same[node] = sharing.first[key]
        walk.lemmas[node] = walk.lemmas[first]
        return walk.made[first]
    a = Application(node, walk.facts, constants, repairing, walk.breaks, assume)  # type: ignore[arg-type]
    before = len(walk.breaks)
    try:
        made = _apply(a, walk)
        if key is not None and len(walk.breaks) == before:
            sharing.first[key], walk.made[node] = node, made
        return made
    except NothingFollows as reason:
        return _nothing(a, walk, str(reason), before)
    except _INTERNAL as error:
        return _nothing(a, walk, f"internal: the rule of {node.target} failed: {type(error).__name__}: {error}", before)


def _apply(a: Application, walk: Walk) -> Facts:
    node = a.node
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        raise NothingFollows(f"{node.target} runs a graph of its own, and the walk does not go into it")
    if any(n not in walk.facts for n in node.all_input_nodes):
        raise NothingFollows("it reads a number taken from the data (item)")
    if is_arbitrary(node):
        raise NothingFollows("its result is not determined by its arguments (random or uninitialised)")
    rule = find(node.target)
    if rule is not None:
        walk.lemmas[node] = rule.lemma
        try:
            made = rule.apply(a)
        except NothingFollows:
            pure = _by_purity(a, walk)
            if pure is None:
                raise
            return _tainted(a, pure, pure=True)
        _check_shapes(node, made)
        return made if rule.lemma in _CAREFUL else _tainted(a, made)
    pure = _by_purity(a, walk)
    if pure is None:
        raise NothingFollows(f"operator {node.target} has no rule")
    return _tainted(a, pure, pure=True)


def _tainted(a: Application, made: Facts, *, pure: bool = False) -> Facts:
    """What is computed from masked entries, or with a number as large, or not at all, must not pass for ordinary.

    A place or a count (an integer made of other numbers by a rule) is as ordinary as ever; what is looked up is
    as ordinary as its table, however large the index.
    """
    lookup = getattr(find(a.node.target), "lemma", "") == "lookup_equivariant"
    masked = [n for n in (a.args[:1] if lookup else a.node.all_input_nodes) if a.may_mask(n)]
    if not masked and not has_large_number(a.node) and not is_uninitialised(a.node):
        return made
    given = [*a.node.args, *a.node.kwargs.values()]
    integers = pure or not masked or any(isinstance(x, torch.dtype) for x in given)
    integers = integers or any(not _floating(n.meta["val"]) for n in masked)
    values = a.node.meta["val"]

    def mark(fact: Fact, value: object) -> Fact:
        return unsure(fact) if _floating(value) or integers else fact

    if isinstance(made, tuple):
        return tuple(mark(f, v) for f, v in zip(made, values, strict=True))
    return mark(made, values)


def _floating(value: object) -> bool:
    return not isinstance(value, Tensor) or value.is_floating_point() or value.is_complex()


def _by_purity(a: Application, walk: Walk) -> Facts | None:
    """Any deterministic operator: what reads nothing that moves does not move, and depends on what it reads."""
    node = a.node
    schema = getattr(node.target, "_schema", None)
    if not str(node.target).startswith("aten.") or schema is None or schema.is_mutable or reads_memory(node):
        return None
    facts = [f for n in node.all_input_nodes for f in _flat(walk.facts.get(n))]
    if not all(f.unmoved for f in facts):
        return None
    walk.lemmas[node] = "pure_function_of_unmoved"
    level = max((int(f.level.max()) for f in facts), default=NEVER)
    return _each(node.meta["val"], lambda shape: still(shape, level))


def _nothing(a: Application, walk: Walk, reason: str, before: int) -> Facts:
    """Nothing follows: note it, and give the fact the walk goes on with."""
    node = a.node
    if node in a.constants:  # the same in both runs, whatever it is
        del walk.breaks[before:]
        walk.lemmas[node] = "same_in_both_runs"
        return _tainted(a, _each(node.meta["val"], constant))
    del walk.breaks[before:]
    a.report(Break(node, None, None, (), (), constant=False, reason=reason))
    walk.lemmas[node] = "nothing_follows"
    if not a.repairing:
        return _tainted(a, _each(node.meta["val"], lambda shape: still(shape, ALWAYS)))
    moves: dict[int, Move] = {}
    levels = [NEVER]
    for n in node.all_input_nodes:
        for f in _flat(walk.facts.get(n)):
            levels.append(int(f.level.max()))
            for size, move in zip(f.shape, f.moves, strict=True):
                if is_moved(move):
                    moves.setdefault(size, move)
    return _tainted(a, _each(node.meta["val"], lambda shape: _guess(shape, moves, max(levels))))


def _guess(shape: tuple[int, ...], moves: dict[int, Move], level: int) -> Fact:
    """Past an operator that broke the relation: as if its result moved along the dimension of that length."""
    used: set[int] = set()
    result = []
    for size in shape:
        result.append(moves[size] if size in moves and size not in used else STILL)
        used.add(size)
    return Fact(shape, tuple(result), uniform(len(shape), level))


def _check_shapes(node: Node, made: Facts) -> None:
    values = node.meta["val"]
    expected = [_shape(v) for v in (values if isinstance(values, list | tuple) else [values]) if isinstance(v, Tensor)]
    found = [f.shape for f in _flat(made)]
    if found != expected:
        raise NothingFollows(f"internal: the rule of {node.target} gave {found} where the graph has {expected}")


def _shape(value: Tensor) -> tuple[int, ...]:
    return tuple(int(s) for s in value.shape)


def _tensors(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(isinstance(v, Tensor) for v in value)
    return isinstance(value, Tensor)


def _each(value: object, make: object) -> Facts:
    if isinstance(value, list | tuple):
        return tuple(make(_shape(v) if isinstance(v, Tensor) else ()) for v in value)  # type: ignore[operator]
    assert isinstance(value, torch.Tensor)
    result: Fact = make(_shape(value))  # type: ignore[operator]
    return result


def _flat(facts: Facts | None) -> list[Fact]:
    if facts is None:
        return []
    return list(facts) if isinstance(facts, tuple) else [facts]
