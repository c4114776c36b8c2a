"""Numbers that the elements of a row have in common, and that cancel: the largest score, which is subtracted from all.

Lemma. Let m[i] be a finite number for each row i.
  1. softmax_j(s[i, j] - m[i]) = softmax_j(s[i, j]): the exponentials and their sum have the factor exp(-m[i]).
  2. exp(s - m) = exp(s) f with f = exp(-m), which is positive. A product of it, and a sum along j, have the factor
     f[i]. The quotient of two tensors with the same factor is that of the tensors without it.
So where a softmax along j, or such a quotient, agrees for s, it does for s - m, whether m agrees in both runs or not. A
mask passes: `(s - m) + mask` is `(s + mask) - m`, and -inf stays -inf. A finite mask that replaces scores does not move
with m. It is only followed where the scores are ordinary numbers: then its entries have weight zero, or the row has no
others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE
from orderproof.number_limits import masking_threshold
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, as_cases
from orderproof.theorems.operators.pointwise.operands import CONVERTS, KEEPS, operands_of
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation

Rule = Callable[[OpenOperation], OpenFacts]
SOFTMAX = {"softmax", "_softmax", "_safe_softmax"}


@dataclass(frozen=True)
class Common:
    """A tensor without the number that its rows have in common.

    Attributes:
        number: The node of the number, and what was done with it since.
        rest: The fact about the tensor without it.
        along: The dimensions along which the number is the same for every index.
        factor: It is a factor; else it is subtracted.
        filled: A finite mask has replaced scores.

    """

    number: tuple[Any, ...]
    rest: OpenFact
    along: frozenset[int]
    factor: bool = False
    filled: bool = False


def without_common_numbers(call: OpenOperation, rule: Rule, result: OpenFacts) -> OpenFacts:
    """The fact about a result, in which common numbers of its operands may cancel. Others are kept in the context."""
    call.context.common.pop(call.node, None)  # of another walk, with other facts
    if not isinstance(result, OpenFact) or result.value is not None:
        return result
    known = {x: call.context.common[x] for x in call.node.all_input_nodes if x in call.context.common}
    try:
        found = _passed(call, known, rule) if known else _subtracted(call)
        if found is not None:
            call.context.common[call.node] = found
        if known and _cancels(call, known):
            return _either(result, _applied(call, rule, {x: one.rest for x, one in known.items()}))
    except NotCovered:
        pass  # nothing cancels that could be followed: the result without it still holds
    return result


def _applied(call: OpenOperation, rule: Rule, facts: Mapping[Node, OpenFact]) -> OpenFact:
    found = call.checked(rule(replace(call, facts={**call.facts, **facts})))
    if not isinstance(found, OpenFact):
        raise NotCovered("an operator with several results")
    return found


def _either(first: OpenFact, second: OpenFact) -> OpenFact:
    """The fact about a tensor that says what either of two says."""
    if first.dims != second.dims or second.value is not None:
        return first
    return replace(
        first, same=first.same | second.same, zero=first.zero | second.zero,
        unbounded=first.unbounded & second.unbounded,
    )  # fmt: skip


def _subtracted(call: OpenOperation) -> Common | None:
    """The difference, or sum, of a tensor and an ordinary number for each row."""
    arguments = call.node.args
    if call.name not in ("add", "sub") or call.node.kwargs or not all(isinstance(x, Node) for x in arguments):
        return None
    first, second = (call.fact(x) for x in arguments[:2])
    along = frozenset(d for d, (a, b) in enumerate(zip(first.dims, second.dims, strict=False)) if a and not b)
    ranges = second.ranges()
    ordinary = ranges.hidden is FALSE and ranges.unbounded is FALSE
    if len(first.dims) != len(second.dims) or not along or second.same is TRUE or not ordinary:
        return None
    operands = operands_of(call)
    return Common((arguments[1],), operands.fact(arguments[0]), along)


def _passed(call: OpenOperation, known: Mapping[Node, Common], rule: Rule) -> Common | None:
    """The result without the common number of its one operand that has one."""
    ((node, common), *others) = known.items()
    occurs = sum(x is node for x in call.node.args)
    if others or occurs != 1 or len(call.shape) != len(common.rest.dims):
        return None
    passed = _through_factor(call, node, common) if common.factor else _through_difference(call, node, common)
    return None if passed is None else replace(passed, rest=_applied(call, rule, {node: common.rest}))


def _through_difference(call: OpenOperation, node: Node, common: Common) -> Common | None:
    name, arguments = call.name, call.node.args
    if name in KEEPS or (name in CONVERTS and call.dtype.is_floating_point):
        return common
    if name == "exp":
        return replace(common, factor=True, filled=False)
    if common.filled:
        return None
    if name in ("masked_fill", "where") and (fill := _other_choice(call, node)) is not None:
        ranges = common.rest.ranges()
        ordinary = all(part is FALSE for part in (ranges.hidden, ranges.low, ranges.unbounded))
        limit = masking_threshold(call.dtype)
        if all(number == -math.inf for number in fill):
            return common
        return replace(common, filled=True) if ordinary and all(number <= -limit for number in fill) else None
    if name == "add" or (name == "sub" and arguments[0] is node):
        return None if call.node.kwargs else common
    factor = arguments[1] if len(arguments) > 1 else None
    if name in ("mul", "div") and isinstance(factor, int | float) and 0 < factor < math.inf and not call.node.kwargs:
        return replace(common, number=(*common.number, name, factor))
    return None


def _through_factor(call: OpenOperation, node: Node, common: Common) -> Common | None:
    name, arguments = call.name, call.node.args
    if name in KEEPS or (name in CONVERTS and call.dtype.is_floating_point) or name == "mul":
        return common
    if name in ("masked_fill", "where") and (fill := _other_choice(call, node)) is not None:
        return common if all(number == 0 for number in fill) else None
    dims = call.argument(1, "dim")
    rank = len(call.shape)
    if name == "sum" and dims is not None and {d % rank for d in call.dims(dims)} <= common.along:
        return common
    if name == "cumsum" and isinstance(dims, int) and dims % rank in common.along:
        return common
    is_row = arguments[0] is node and rank - 1 in common.along
    same_rank = isinstance(arguments[-1], Node) and call.rank_of(arguments[-1]) == rank
    return common if name in ("matmul", "bmm") and is_row and same_rank else None


def _other_choice(call: OpenOperation, node: Node) -> list[float] | None:
    """The numbers that `where` or `masked_fill` takes in place of a tensor; None if they are not known."""
    if call.name == "masked_fill":
        tensor, _condition, other = call.node.args
    else:
        condition, *choices = call.node.args
        if condition is node or len(choices) != 2:
            return None
        tensor, other = choices if choices[0] is node else choices[::-1]
    if tensor is not node:
        return None
    if isinstance(other, int | float):
        return [float(other)]
    cases = as_cases(call.fact(other).value) if isinstance(other, Node) else None
    return None if cases is None else [float(number) for _, number in cases.pairs]


def _cancels(call: OpenOperation, known: Mapping[Node, Common]) -> bool:
    """True if common numbers of the operands cancel in the result."""
    found = [known.get(x) if isinstance(x, Node) else None for x in call.node.args[:2]]
    first = found[0]
    if first is None:
        return False
    if call.name in SOFTMAX:
        return not first.factor and call.dim(1, default=-1) in first.along
    second = found[1] if len(found) > 1 else None
    return call.name == "div" and second is not None and first.factor and first.number == second.number
