"""Numbers that the elements of a row have in common, and that cancel: the largest score, which is subtracted from all.

Lemma. Let m[i] be an ordinary number for each row i; where it may be another one, let it be zero, and nothing is known
of the row.
  1. softmax_j(s[i, j] - m[i]) = softmax_j(s[i, j]): the exponentials and their sum have the factor exp(-m[i]).
  2. exp(s - m) = exp(s) f with f = exp(-m), which is positive. A product of it, and a sum along j, have the factor
     f[i]. The quotient of two tensors with the same factor is that of the tensors without it.
  3. Q (K - n 1^T) = Q K - (Q n) 1^T: keys less a number of each feature give scores less a number of each query.
  4. (a - m) - (b - m) = a - b, and integers a - m and b - m are equal where a and b are.
  5. The sum from an index to the end is that of all elements less the sum before the index.
  6. softmax_j(s[i, j]) = exp(s[i, j]) f[i] at an ordinary score in a row without any that may be infinite, where f is
     one over the sum of the exponentials of the row. In other rows let f be one. The logarithm of the softmax of
     ordinary scores is s less the logarithm of that sum.
  7. Powers, products with another tensor and sums over other dimensions keep a factor: (x f)^p = x^p f^p. Of two
     tensors with the same factor, so do the sum and the larger, since f is positive. And exp(-m) is exp(0) f.
So where a softmax along j, or such a quotient, difference or comparison agrees for s, it does for s - m, whether m
agrees in both runs or not. A mask passes: `(s - m) + mask` is `(s + mask) - m`, and -inf stays -inf. A finite mask that
replaces scores does not move with m. It is only followed where the scores are ordinary numbers: then its entries have
weight zero, or the row has no others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import FALSE, TRUE, Formula, at_most
from orderproof.number_limits import masking_threshold
from orderproof.theorems.facts.open_fact import Cases, NotCovered, OpenFact, as_cases, axis_variable, index
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.operators.contraction.products import einsum
from orderproof.theorems.operators.movement.rearrangement import PLANS
from orderproof.theorems.operators.pointwise.operands import CONVERTS, KEEPS, operands_of
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.operation import operator_of

Rule = Callable[[OpenOperation], OpenFacts]
SOFTMAX = {"softmax", "_softmax", "_safe_softmax"}
LOG_SOFTMAX = {"log_softmax", "_log_softmax"}
POWERS = {"square": 2.0, "sqrt": 0.5}
ATTENTION = {"scaled_dot_product_attention"}
REARRANGED = {"transpose", "mT", "permute", "unsqueeze", "squeeze", "expand"}
VIEWS = {"view", "reshape", "_unsafe_view", "unflatten"}
WHOLE = ((), (0,), (0, sys.maxsize), (0, sys.maxsize, 1))  # starts and ends of a slice that leaves nothing out


@dataclass(frozen=True)
class Common:
    """A tensor without the number that its rows have in common.

    Attributes:
        number: The node of the number, if it is added or subtracted, and what was done with it since.
        rest: The fact about the tensor without it.
        labels: For each dimension that of the number; None where the number is the same for every index.
        factor: It is a factor; else it is subtracted.
        filled: A finite mask has replaced scores.
        weak: It is that of weights of a softmax: next to one of another tensor it is left in its tensor.

    """

    number: tuple[Any, ...]
    rest: OpenFact
    labels: tuple[int | None, ...]
    factor: bool = False
    filled: bool = False
    weak: bool = False

    @property
    def along(self) -> frozenset[int]:
        """The dimensions along which the number is the same for every index."""
        return frozenset(d for d, label in enumerate(self.labels) if label is None)


def without_common_numbers(call: OpenOperation, rule: Rule, result: OpenFacts) -> OpenFacts:
    """The fact about a result, in which common numbers of its operands may cancel. Others are kept in the context."""
    call.context.common.pop(call.node, None)  # of another walk, with other facts
    if not isinstance(result, OpenFact) or result.value is not None:
        return result
    known = {x: call.context.common[x] for x in call.node.all_input_nodes if x in call.context.common}
    known = {x: one for x, one in known.items() if not one.weak} or known
    try:
        if known:
            found = _passed(call, known, rule)
        else:
            found = _from_the_end(call) or _normalised(call, result) or _negated(call) or _subtracted(call, rule)
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


def _subtracted(call: OpenOperation, rule: Rule) -> Common | None:
    """The difference, or sum, of a tensor and an ordinary number for each row."""
    arguments = call.node.args
    if call.name not in ("add", "sub") or call.node.kwargs or not all(isinstance(x, Node) for x in arguments):
        return None
    rank = len(call.shape)
    dims = [((),) * (rank - len(own)) + own for own in (call.fact(x).dims for x in arguments)]
    for number, tensor in ((1, 0), (0, 1)):
        labels = tuple(
            None if a and not b else d for d, (a, b) in enumerate(zip(dims[tensor], dims[number], strict=True))
        )
        fact = call.fact(arguments[number])
        loose = ~operands_of(call).fact(arguments[number]).ranges().finite
        if None in labels and fact.same is not TRUE and loose is not TRUE:
            if number == 1:
                rest = _except(operands_of(call).fact(arguments[0]), loose)
                return Common((arguments[1], call.name), rest, labels)
            zeros = {arguments[0]: OpenFact(fact.dims, fact.dtype)}  # any number that both runs have
            return Common((arguments[0], "add"), _except(_applied(call, rule, zeros), loose), labels)  # type: ignore[arg-type]
    return None


def _negated(call: OpenOperation) -> Common | None:
    """Zero less an ordinary number for each row."""
    if call.name != "neg" or not call.dtype.is_floating_point or call.operand.same is TRUE:
        return None
    fact, labels = call.operand, tuple(d if axes else None for d, axes in enumerate(call.operand.dims))
    loose = ~fact.ranges().finite
    if None not in labels or loose is TRUE:
        return None
    zeros = OpenFact(fact.dims, fact.dtype, value=Cases(((TRUE, 0.0),)))
    return Common((call.node.args[0], "sub"), _except(zeros, loose), labels)


def _except(fact: OpenFact, loose: Formula) -> OpenFact:
    """The fact that says nothing of the elements of some rows."""
    if loose is FALSE:
        return fact
    if fact.value is not None:
        fact = fact.without_value()
    kept = ~loose
    return replace(
        fact, same=fact.same & kept, zero=fact.zero & kept, hidden=fact.hidden & kept,
        unbounded=fact.unbounded | loose, low=fact.low & kept,
    )  # fmt: skip


def is_ordinary(fact: OpenFact) -> bool:
    """True if every element is an ordinary number."""
    ranges = fact.ranges()
    return ranges.hidden is FALSE and ranges.unbounded is FALSE


def _normalised(call: OpenOperation, result: OpenFact) -> Common | None:
    """The weights of a softmax: exponentials with one over the sum of their row as a factor; or their logarithms."""
    scores = call.operand if call.name in SOFTMAX | LOG_SOFTMAX else None
    if scores is None or scores.dims != result.dims:
        return None
    labels = tuple(None if d == call.dim(1, default=-1) else d for d in range(call.rank))
    if call.name in LOG_SOFTMAX:
        return Common((call.node,), scores, labels) if is_ordinary(scores) and scores.dtype is call.dtype else None
    same = (scores.same & scores.ranges().finite & ~result.unbounded) | result.zero
    rest = OpenFact(result.dims, call.dtype, same, zero=result.zero, unbounded=result.unbounded)
    return Common((call.node,), rest, labels, factor=True, weak=True)


def _from_the_end(call: OpenOperation) -> Common | None:
    """The sums from each index to the end, `x.flip(d).cumsum(d).flip(d)`: a sum of all elements less those before."""
    node: Any = call.node
    dims: list[set[int]] = []
    for name in ("flip", "cumsum", "flip"):
        if not isinstance(node, Node) or operator_of(node) != name or len(node.args) != 2 or node.kwargs:
            return None
        given: Any = node.args[1]
        dims.append({d % call.rank for d in ([given] if isinstance(given, int) else given)})
        node = node.args[0]
    if len(dims[0]) != 1 or not dims[0] == dims[1] == dims[2]:
        return None
    (dim,) = dims[0]
    fact = with_single_axis(call.fact(node), dim)
    if call.dtype is not torch.int64 and not (call.dtype.is_floating_point and call.dtype is fact.dtype):
        return None
    if not fact.dims[dim] or not is_ordinary(fact) or fact.dims != call.operand.dims:
        return None
    return Common((call.node,), _before(call, fact, dim), tuple(None if d == dim else d for d in range(call.rank)))


def _before(call: OpenOperation, fact: OpenFact, dim: int) -> OpenFact:
    """The fact about the sums of the elements before each index."""
    axis, bound = fact.first_axis(dim), len(fact.sizes)
    body = Substitution({axis_variable(axis): index(bound)}).formula(fact.same) | at_most(index(axis), index(bound))
    return OpenFact(fact.dims, call.dtype, call.context.for_all(body, (*fact.sizes, *fact.dims[dim]), bound))


def _passed(call: OpenOperation, known: Mapping[Node, Common], rule: Rule) -> Common | None:
    """The result without the common number of its one operand that has one, or of both."""
    ((node, common), *others) = known.items()
    occurs = sum(x is node for x in call.node.args)
    if others and _both_keep(call, known):
        return replace(common, rest=_applied(call, rule, {x: one.rest for x, one in known.items()}))
    if call.name == "einsum" and not others:
        labels = _of_a_product(call, node, common)
        rest = common.rest if labels is None else _applied(call, rule, {node: common.rest})
        return None if labels is None else replace(common, labels=labels, rest=rest)
    if others or occurs != 1:
        return None
    moved = _moved(call, common) if call.node.args[0] is node else None
    if moved is not None:
        return replace(moved, rest=_applied(call, rule, {node: common.rest}))
    if len(call.shape) != len(common.rest.dims):
        return None
    passed = _through_factor(call, node, common) if common.factor else _through_difference(call, node, common)
    return None if passed is None else replace(passed, rest=_applied(call, rule, {node: common.rest}))


def _both_keep(call: OpenOperation, known: Mapping[Node, Common]) -> bool:
    """True for the sum, or the larger, of two tensors with the same factor."""
    if call.name not in ("add", "maximum") or call.node.kwargs or list(call.node.args) != list(known):
        return False
    first, second = known.values()
    fits = (first.number, first.labels, first.rest.dims) == (second.number, second.labels, second.rest.dims)
    return first.factor and second.factor and first.weak == second.weak and fits


def _of_a_product(call: OpenOperation, node: Node, common: Common) -> tuple[int | None, ...] | None:
    """The labels of a factor in a sum of products, if it is the same for all that are summed."""
    found = einsum(call)
    own = [list(labels) for x, labels in found.operands if x is node]
    if len(own) != 1 or not common.factor or common.weak:
        return None
    summed = {d for d, label in enumerate(own[0]) if label not in found.result}
    label_of = dict(zip(own[0], common.labels, strict=True))
    return tuple(label_of.get(label) for label in found.result) if summed <= common.along else None


def _moved(call: OpenOperation, common: Common) -> Common | None:
    """Elements at other places, with the numbers that these have in common; None for another operator."""
    labels, name = common.labels, call.name
    if call.dtype is not common.rest.dtype:
        return None
    if name in REARRANGED:
        return replace(common, labels=tuple(None if d is None else labels[d] for d in PLANS[name](call)))
    if name in VIEWS:  # rows stay, and what each of them holds is cut in another way
        pairs = zip(call.operand.shape, call.shape, strict=False)
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
        cut = tuple(None if d < kept and labels[d] is None else d for d in range(len(call.shape)))
        return None if None in labels[kept:] else replace(common, number=(*common.number, call.node), labels=cut)
    if name not in ("slice", "select"):
        return None
    dim = call.dim(1, default=0)
    whole = labels[dim] is None or (name == "slice" and tuple(call.node.args[2:]) in WHOLE and not call.node.kwargs)
    number = common.number if whole else (*common.number, call.node)
    left = labels if name == "slice" else labels[:dim] + labels[dim + 1 :]
    return replace(common, number=number, labels=left)


def _through_difference(call: OpenOperation, node: Node, common: Common) -> Common | None:
    name, arguments = call.name, call.node.args
    if name in KEEPS or (name in CONVERTS and call.dtype.is_floating_point):
        return common
    if name in ("exp", "exp2"):
        number = common.number if name == "exp" else (*common.number, name)
        return replace(common, number=number, factor=True, filled=False)
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
    return _through_product(call, node, common) if name in ("matmul", "bmm", "linear") else None


def _through_product(call: OpenOperation, node: Node, common: Common) -> Common | None:
    """The product of a matrix whose rows, or columns, have a number in common, and of one of ordinary numbers."""
    first, second = call.node.args[:2]
    rank, is_left = len(call.shape), node is first
    other = call.fact(second if is_left else first)
    kept = rank - 2 if is_left else rank - 1
    fits = is_left if call.name == "linear" else len(other.dims) == rank
    if kept not in common.along or not fits or not is_ordinary(other):
        return None
    return replace(common, number=(call.node,), labels=tuple(None if d == kept else d for d in range(rank)))


def _through_factor(call: OpenOperation, node: Node, common: Common) -> Common | None:
    name, arguments = call.name, call.node.args
    if name in KEEPS or (name in CONVERTS and call.dtype.is_floating_point) or name in ("mul", "tril", "triu"):
        return common
    if name == "add" and arguments[0] is node and arguments[1] == 0:
        return common
    if name in ("masked_fill", "where") and (fill := _other_choice(call, node)) is not None:
        return common if all(number == 0 for number in fill) else None
    power = POWERS.get(name, arguments[1] if name == "pow" and len(arguments) == 2 else None)
    if arguments[0] is node and isinstance(power, int | float) and 0 < power < math.inf:
        return replace(common, number=(*common.number, "pow", float(power)))
    dims = call.argument(1, "dim")
    rank = len(call.shape)
    if name == "sum" and dims is not None and {d % rank for d in call.dims(dims)} <= common.along:
        return common
    if name == "cumsum" and isinstance(dims, int) and dims % rank in common.along:
        return common
    if name not in ("matmul", "bmm") or common.weak or any(call.rank_of(x) != rank for x in arguments):
        return None
    return common if (rank - 1 if arguments[0] is node else rank - 2) in common.along else None


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
    first, second = (*found, None)[:2]
    if call.name in ATTENTION and second is not None and first is None and len(known) == 1:
        keys = len(second.labels) - 2
        return (
            sum(x is call.node.args[1] for x in call.node.args) == 1  # values or queries would lose their number too
            and not second.factor
            and not second.filled
            and keys in second.along
            and is_ordinary(call.fact(call.node.args[0]))
        )
    if first is None:
        return False
    if call.name in SOFTMAX:
        return not first.factor and call.dim(1, default=-1) in first.along
    if second is None or call.node.kwargs or (first.number, first.labels) != (second.number, second.labels):
        return False
    if call.name == "div":
        return first.factor and second.factor
    subtracted = not (first.factor or first.filled or second.factor or second.filled)
    whole = all(call.fact(x).dtype is torch.int64 for x in call.node.args[:2])
    return subtracted and (call.name == "sub" or (whole and call.name in ("eq", "ne")))
