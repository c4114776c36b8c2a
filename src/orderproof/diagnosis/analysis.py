"""Abstract interpretation of a graph: one fact for each tensor, in one pass.

Strict: after a break nothing is concluded, so a law that follows at the output is proved. With `continue_after_break`
the analysis assumes after each break that the operand moved as required, so that it finds every place where token order
enters and not only the first.

A rule that raises an unexpected exception is an error of this package. The analysis goes on with the fact that
concludes nothing, and records the error in `Analysis.internal_errors`: no law is proved through such a node.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.fx import Graph, Node

from orderproof.diagnosis.domain.constants import Constants, depends_on_memory_layout
from orderproof.diagnosis.domain.fact import (
    ALWAYS,
    NEVER,
    Fact,
    constant_dependence,
    constant_fact,
    unmoved_fact,
    with_ranges_widened,
)
from orderproof.diagnosis.domain.move import STILL, Move, is_permuted
from orderproof.diagnosis.memoization import StepMemo
from orderproof.diagnosis.rule import (
    Facts,
    OperatorCall,
    RelationBreak,
    RuleNotApplicable,
    find_rule,
    has_large_literal,
)
from orderproof.diagnosis.spectra import with_spectrum
from orderproof.errors import first_line
from orderproof.recording.nondeterminism import is_nondeterministic, is_uninitialised

# Lemmas whose results are bounded, or which derive the ranges of results of masked operands themselves.
_LEMMAS_THAT_HANDLE_MASKS = {
    "pointwise_equivariant",
    "movement_equivariant",
    "contraction_equivariant",
    "softmax_equivariant",
    "attention_equivariant",
    "dense_dependence",
    "extreme_of_visible",
    "convolution_theorem",
}
NOT_DETERMINED = (
    "its result is not determined by its arguments (random or uninitialised): audit in evaluation mode, and fill the "
    "memory of `torch.empty` before it is read"
)
_RULE_ERRORS = (IndexError, KeyError, TypeError, ValueError, AttributeError)


@dataclass(slots=True)
class Analysis:
    """The facts about the nodes of a graph, and what they rest on."""

    facts: dict[Node, Facts]
    lemmas: dict[Node, str]
    breaks: list[RelationBreak] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    internal_errors: dict[Node, str] = field(default_factory=dict)  # of rules
    used_names: frozenset[str] = frozenset()  # stored tensors whose values the facts depend on
    shared_facts: dict[Node, Facts] = field(default_factory=dict)  # of steps that later steps may repeat
    first_occurrence: dict[Node, Node] = field(default_factory=dict)  # a step that repeats an earlier one -> that one

    def fact(self, node: Node) -> Fact:
        """The fact about a node that is one tensor."""
        fact = self.facts[node]
        assert isinstance(fact, Fact)
        return fact

    def internal_error(self, nodes: Collection[Node]) -> str | None:
        """The first error of a rule at one of these nodes; None if there is none."""
        return next((text for node, text in self.internal_errors.items() if node in nodes), None)


def analyze(
    graph: Graph,
    constants: Constants,
    inputs: Mapping[Node, Fact],
    *,
    continue_after_break: bool = False,
    transform_fact: Callable[[Node, Fact], Fact] | None = None,
) -> Analysis:
    """Analyze a graph, given facts about its inputs (any nodes: the analysis starts there).

    `transform_fact` may replace the fact about a tensor before its users are analyzed (to find every leak, not only
    the first).
    """
    analysis = Analysis({}, {})
    memo = StepMemo(constants)
    constants.used_names.clear()
    constants.used_nodes.clear()

    def assume(text: str) -> None:
        if text not in analysis.assumptions:
            analysis.assumptions.append(text)

    with np.errstate(all="ignore"):  # values of masks overflow, and their infinities are examined on purpose
        for node in graph.nodes:
            if node in inputs:
                analysis.facts[node], analysis.lemmas[node] = inputs[node], "given"
            elif node.op in ("placeholder", "call_function"):
                facts = _analyze_node(node, analysis, memo, assume, continue_after_break=continue_after_break)
                if transform_fact is not None and isinstance(facts, Fact):
                    facts = transform_fact(node, facts)
                if facts is not None:
                    analysis.facts[node] = facts
    analysis.used_names = frozenset(constants.used_names)
    return analysis


def _analyze_node(
    node: Node, analysis: Analysis, memo: StepMemo, assume: Callable[[str], None], *, continue_after_break: bool
) -> Facts | None:
    value, constants = node.meta.get("val"), memo.constants
    if node.op == "placeholder":
        if node not in constants:
            analysis.lemmas[node] = "given"
            return unmoved_fact(_shape(value), ALWAYS) if isinstance(value, Tensor) else None
        analysis.lemmas[node] = "same_in_both_runs"
        return constant_fact(_shape(value)) if isinstance(value, Tensor) else None
    if not _has_tensor(value):
        return None
    call = OperatorCall(node, analysis.facts, constants, continue_after_break, analysis.breaks, assume)
    if node in constants and not constants.is_opaque(node):
        analysis.lemmas[node] = "same_in_both_runs"
        return with_spectrum(call, _map_tensors(value, constant_fact))
    if node.target is operator.getitem:
        analysis.lemmas[node] = "part_of_a_tuple"
        parts = analysis.facts.get(node.args[0])  # type: ignore[arg-type]
        return parts[node.args[1]] if isinstance(parts, tuple) else parts  # type: ignore[index]
    key = memo.key(node, analysis.facts)
    if key in memo.first_occurrence:
        first = analysis.first_occurrence[node] = memo.first_occurrence[key]
        analysis.lemmas[node] = analysis.lemmas[first]
        return analysis.shared_facts[first]
    break_count = len(analysis.breaks)
    try:
        facts = with_spectrum(call, _without_empty_arrays(_apply(call, analysis)))
    except RuleNotApplicable as refusal:
        return _no_conclusion(call, analysis, str(refusal), break_count)
    except _RULE_ERRORS as error:
        reason = f"internal error, please report it: the rule of {node.target} failed: {first_line(error)}"
        analysis.internal_errors[node] = reason
        return _no_conclusion(call, analysis, reason, break_count)
    if key is not None and len(analysis.breaks) == break_count:
        memo.first_occurrence[key], analysis.shared_facts[node] = node, facts
    return facts


def _apply(call: OperatorCall, analysis: Analysis) -> Facts:
    node = call.node
    if any(n not in analysis.facts for n in node.all_input_nodes):
        raise RuleNotApplicable("it reads a number taken from the data (item)")
    if is_nondeterministic(node):
        raise RuleNotApplicable(NOT_DETERMINED)
    rule = find_rule(node.target)
    if rule is not None:
        analysis.lemmas[node] = rule.lemma
        try:
            facts = rule.apply(call)
        except RuleNotApplicable:
            pure = _pure_function_fact(call, analysis)
            if pure is None:
                raise
            return _widen_if_masking(call, pure, pure=True)
        _check_shapes(node, facts)
        return facts if rule.lemma in _LEMMAS_THAT_HANDLE_MASKS else _widen_if_masking(call, facts)
    pure = _pure_function_fact(call, analysis)
    if pure is None:
        raise RuleNotApplicable(f"operator {node.target} has no rule")
    return _widen_if_masking(call, pure, pure=True)


def _without_empty_arrays(facts: Facts) -> Facts:
    """Every fact holds of a tensor without elements: that it depends on nothing can be computed with."""
    if isinstance(facts, tuple):
        return tuple(map(_fact_of_empty, facts))
    return _fact_of_empty(facts)


def _fact_of_empty(fact: Fact) -> Fact:
    if 0 not in fact.shape:
        return fact
    moves = tuple(move if size else STILL for move, size in zip(fact.moves, fact.shape, strict=True))
    return Fact(fact.shape, moves, constant_dependence(len(fact.shape), NEVER))


def _widen_if_masking(call: OperatorCall, facts: Facts, *, pure: bool = False) -> Facts:
    """Unbounded ranges for the result of masked operands, of a number as large as a mask, or of uninitialised memory.

    An index or a count (an integer that a rule derives from other numbers) is ordinary. A looked-up value is as
    ordinary as its table, however large the index.
    """
    lookup = getattr(find_rule(call.node.target), "lemma", "") == "lookup_equivariant"
    masked = [n for n in (call.args[:1] if lookup else call.node.all_input_nodes) if call.may_mask(n)]
    if not masked and not has_large_literal(call.node) and not is_uninitialised(call.node):
        return facts
    arguments = [*call.node.args, *call.node.kwargs.values()]
    widen_integers = pure or not masked or any(isinstance(x, torch.dtype) for x in arguments)
    widen_integers = widen_integers or any(not _is_floating(n.meta["val"]) for n in masked)
    values = call.node.meta["val"]

    def widen(fact: Fact, value: object) -> Fact:
        return with_ranges_widened(fact) if _is_floating(value) or widen_integers else fact

    if isinstance(facts, tuple):
        return tuple(widen(f, v) for f, v in zip(facts, values, strict=True))
    return widen(facts, values)


def _is_floating(value: object) -> bool:
    return not isinstance(value, Tensor) or value.is_floating_point() or value.is_complex()


def _pure_function_fact(call: OperatorCall, analysis: Analysis) -> Facts | None:
    """A deterministic operator whose operands do not move: its result does not move and depends on all of them."""
    node = call.node
    schema = getattr(node.target, "_schema", None)
    if (
        not str(node.target).startswith("aten.")
        or schema is None
        or schema.is_mutable
        or depends_on_memory_layout(node)
    ):
        return None
    facts = [f for n in node.all_input_nodes for f in _as_list(analysis.facts.get(n))]
    if not all(f.has_no_moves for f in facts):
        return None
    analysis.lemmas[node] = "pure_function_of_unmoved"
    dependence = max((int(f.dependence.max()) for f in facts), default=NEVER)
    return _map_tensors(node.meta["val"], lambda shape: unmoved_fact(shape, dependence))


def _no_conclusion(call: OperatorCall, analysis: Analysis, reason: str, break_count: int) -> Facts:
    """Record that nothing follows at a node, and return the fact to go on with."""
    node = call.node
    value = node.meta["val"]
    del analysis.breaks[break_count:]
    if node in call.constants:  # the same in both runs, for every value
        analysis.lemmas[node] = "same_in_both_runs"
        return _widen_if_masking(call, _map_tensors(value, constant_fact))
    analysis.breaks.append(RelationBreak(node, None, None, (), (), constant=False, reason=reason))
    analysis.lemmas[node] = "nothing_follows"
    if not call.continue_after_break:
        return _widen_if_masking(call, _map_tensors(value, lambda shape: unmoved_fact(shape, ALWAYS)))
    moves: dict[int, Move] = {}
    dependence = NEVER
    for n in node.all_input_nodes:
        for f in _as_list(analysis.facts.get(n)):
            dependence = max(dependence, int(f.dependence.max()))
            for size, move in zip(f.shape, f.moves, strict=True):
                if is_permuted(move):
                    moves.setdefault(size, move)
    return _widen_if_masking(
        call, _map_tensors(value, lambda shape: _assumed_fact_after_break(shape, moves, dependence))
    )


def _assumed_fact_after_break(shape: tuple[int, ...], moves: dict[int, Move], dependence: int) -> Fact:
    """The assumption after a break: the result moves along the dimensions that are as long as a moved one."""
    assigned: set[int] = set()
    result = []
    for size in shape:
        result.append(moves[size] if size in moves and size not in assigned else STILL)
        assigned.add(size)
    return Fact(shape, tuple(result), constant_dependence(len(shape), dependence))


def _check_shapes(node: Node, facts: Facts) -> None:
    values = node.meta["val"]
    expected = [_shape(v) for v in (values if isinstance(values, list | tuple) else [values]) if isinstance(v, Tensor)]
    shapes = [f.shape for f in _as_list(facts)]
    if shapes != expected:
        raise ValueError(f"its facts have the shapes {shapes}, the results {expected}")


def _shape(value: Tensor) -> tuple[int, ...]:
    return tuple(int(s) for s in value.shape)


def _has_tensor(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(isinstance(v, Tensor) for v in value)
    return isinstance(value, Tensor)


def _map_tensors(value: object, make: Callable[[tuple[int, ...]], Fact]) -> Facts:
    if isinstance(value, list | tuple):
        return tuple(make(_shape(v) if isinstance(v, Tensor) else ()) for v in value)
    assert isinstance(value, torch.Tensor)
    return make(_shape(value))


def _as_list(facts: Facts | None) -> list[Fact]:
    if facts is None:
        return []
    return list(facts) if isinstance(facts, tuple) else [facts]
