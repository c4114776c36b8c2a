"""Numbers that the elements of a row have in common, and that cancel in a softmax, or in a quotient.

Let m[i] be an ordinary number for each row i; where it may be another one, let it be zero, and nothing is known of the
row. The softmax of s - m along the row is that of s. And exp(s - m) is exp(s)
times exp(-m[i]), which is positive: of two tensors with that factor the quotient is the one of the tensors without it.
So where such a result is the same in both runs for s, it is for s - m, although m need not be. Nor does m count in the
difference of s - m and t - m, or where integers of these are compared for equality. It moves as s does; and the product
of a matrix with K - n 1^T is that with K, less a number of each row. The sum from an index to the end of a row is its
number, the sum of the row, less the sum of the elements before the index. The weight of an ordinary score, in a row
of which no score may be infinite, is its exponential times one over the sum of those of the row. The logarithm of the
softmax of ordinary scores is each of them less a number of the row. A power of a tensor with a factor has a power of it
as a factor. Two tensors with the same factor have a sum with it, and a larger one, since it is positive; and -m is zero
less m.

A mask of -inf, or one that is added, leaves the difference a difference. A finite number in place of scores does not;
it is followed up to the softmax, or the exponential, where the scores are ordinary: next to one of them its weight is
zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import FLOATS, Cases, Common, Fact, Predicates, axis
from orderproof_recheck.logic.formulas import FALSE, TRUE, at_most, every, some
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Atom, Term, integer
from orderproof_recheck.mask_sizes import mask_limit
from orderproof_recheck.rules.movement import NO_END, ONE, broadcast_element, size_of
from orderproof_recheck.rules.numbers import CONVERSIONS, COPIES
from orderproof_recheck.rules.running import up_to
from orderproof_recheck.steps import Derived, Step

Rule = Callable[[Step], list[Derived]]
Known = Mapping[int, Common]  # by the place of the argument
SOFTMAX = frozenset({"softmax", "_softmax", "_safe_softmax"})
LOG_SOFTMAX = frozenset({"log_softmax", "_log_softmax"})
POWERS = {"square": 2.0, "sqrt": 0.5}
VIEWS = frozenset({"view", "reshape", "_unsafe_view", "unflatten"})
MOVES = VIEWS | {"transpose", "mT", "permute", "unsqueeze", "squeeze", "expand", "slice", "select"}
WHOLE = ((), (0,), (0, NO_END), (0, NO_END, 1))  # starts and ends of a slice that leaves nothing out


def without_common_numbers(step: Step, rule: Rule, derived: list[Derived]) -> list[Derived]:
    """The facts derived about a result in which common numbers of the operands may cancel."""
    known = {place: x.common for place, x in enumerate(_operands(step)) if isinstance(x, Fact) and x.common is not None}
    known = {place: one for place, one in known.items() if not one.weak} or known
    if len(derived) != 1 or derived[0].value is not None:
        return derived
    done = len(step.obligations)
    try:
        if known:
            step.common = _passed(step, known, rule)
        else:
            step.common = (
                _from_the_end(step) or _normalised(step, derived[0]) or _negated(step) or _subtracted(step, rule)
            )
        if known and _cancels(step, known):
            return [_either(derived[0].predicates, _applied(step, rule, known).predicates)]
    except CertificateError:  # the rule says nothing of what is left
        del step.obligations[done:]
    return derived


def _operands(step: Step) -> Sequence[Any]:
    return step.args[1] if step.name == "einsum" and isinstance(step.args[-1], list) else step.args


def _applied(step: Step, rule: Rule, known: Known) -> Fact:
    """The fact about the result of these operands without their common numbers."""
    before = step.args
    opened = [_opened(step, known[place]) if place in known else x for place, x in enumerate(_operands(step))]
    step.args = opened if _operands(step) is before else [before[0], opened]
    try:
        (found,) = rule(step)
        own, sizes = found.predicates, len(step.claim.sizes)
        own = replace(own, same=some(own.same, own.zero))
        further = own.zero.variables & {axis(sizes + k) for k in range(len(step.bound))}
        zeros_known = step.need_not_vanish(own.zero) if further else TRUE
        if further and zeros_known is not FALSE:
            own = replace(own, zero=FALSE)
        if own.ordinary is TRUE and own.hidden is FALSE:
            own = replace(own, low=FALSE)
        return Fact(step.claim.axes, step.claim.dtype, own, zeros_known=zeros_known, share=step.remaining_share)
    finally:
        step.args = before


def _opened(step: Step, common: Common) -> Fact:
    """The rest of an operand, whose further indices are further ones of this step."""
    own, count = len(common.rest.sizes), max(len(claim.sizes) for claim in step.claims)
    step.bound += [integer(1)] * (own - count - len(step.bound))  # no further index is one of the operand
    places: dict[Atom, Term] = {axis(own + k): place for k, (_, place) in enumerate(step.further(common.further))}
    moved = [Replacement(places).formula(formula) for _, formula in common.rest.predicates.items()]
    return replace(common.rest, predicates=Predicates(*moved))


def _either(first: Predicates, second: Predicates) -> Derived:
    same, zero = some(first.same, second.same), some(first.zero, second.zero)
    return Derived(replace(first, same=same, zero=zero, ordinary=some(first.ordinary, second.ordinary)))


def _subtracted(step: Step, rule: Rule) -> Common | None:
    """The difference, or sum, of a tensor and an ordinary number for each row."""
    if step.name not in ("add", "sub") or step.kwargs or len(step.args) != 2:
        return None
    first, second = step.args
    if not isinstance(first, Fact) or not isinstance(second, Fact):
        return None
    rank = len(step.shape)
    for place, number, tensor in ((1, second, first), (0, first, second)):
        own, others = (((),) * (rank - len(x.axes)) + tuple(x.axes) for x in (tensor, number))
        pairs = enumerate(zip(own, others, strict=True))
        labels = tuple(None if a and not b else d for d, (a, b) in pairs)
        ordinary = broadcast_element(step, number).ordinary
        if None not in labels or number.same is TRUE or ordinary is FALSE or tensor.dtype != step.claim.dtype:
            continue
        if place == 1:
            rest = replace(broadcast_element(step, first), axes=step.claim.axes)
        else:  # of any number that both runs have
            any_number = Fact(number.axes, number.dtype, Predicates(), zeros_known=FALSE)
            rest = _applied(step, rule, {0: Common((), any_number, (), ())})
        if ordinary is not TRUE:  # elsewhere nothing is said of what is left
            parts = (every(formula, ordinary) for _, formula in rest.predicates.items())
            rest = replace(rest, predicates=Predicates(*parts), value=None, zeros_known=FALSE)
        sign = step.name if place == 1 else "add"
        return Common((number, sign), rest, tuple(step.bound), labels)
    return None


def _negated(step: Step) -> Common | None:
    """Zero less an ordinary number for each row."""
    number = step.args[0] if step.name == "neg" and not step.kwargs else None
    if not isinstance(number, Fact) or number.dtype not in FLOATS or number.dtype != step.claim.dtype:
        return None
    labels = tuple(d if size else None for d, size in enumerate(number.axes))
    ordinary = broadcast_element(step, number).ordinary
    if number.same is TRUE or None not in labels or ordinary is FALSE or number.axes != step.claim.axes:
        return None
    zero = Predicates(same=ordinary, zero=ordinary, ordinary=ordinary)
    rest = Fact(step.claim.axes, step.claim.dtype, zero, zeros_known=FALSE)
    return Common((number, "sub"), rest, tuple(step.bound), labels)


def _is_ordinary(fact: Fact) -> bool:
    """True if every element is an ordinary number."""
    return fact.hidden is FALSE and fact.predicates.low is FALSE and fact.ordinary is TRUE


def _normalised(step: Step, derived: Derived) -> Common | None:
    """The weights of a softmax; those of a row that may have an infinite score have the factor one. Or logarithms."""
    scores = step.args[0] if step.name in SOFTMAX | LOG_SOFTMAX and step.args else None
    if not isinstance(scores, Fact) or scores.axes != step.claim.axes:
        return None
    dim, weights = step.dim(step.argument(1, "dim"), len(scores.axes)), derived.predicates
    labels = tuple(None if d == dim else d for d in range(len(scores.axes)))
    if step.name in LOG_SOFTMAX:
        if not _is_ordinary(scores) or scores.dtype != step.claim.dtype:
            return None
        return Common((step.node,), broadcast_element(step, scores), tuple(step.bound), labels)
    same = some(every(scores.same, scores.ordinary, weights.ordinary), weights.zero)
    rest = Fact(scores.axes, step.claim.dtype, replace(weights, same=same), zeros_known=FALSE)
    return Common((step.node,), rest, tuple(step.bound), labels, factor=True, weak=True)


def _from_the_end(step: Step) -> Common | None:
    """The sums from each index to the end of a row, of elements that are flipped, summed and flipped."""
    sums = step.flip_of
    flipped = None if sums is None else sums[0].sum_of
    own = None if flipped is None else flipped[0].flip_of
    if sums is None or flipped is None or own is None or not sums[1] == flipped[1] == own[1]:
        return None
    fact, dim = own
    dtype = step.claim.dtype
    fits = dtype == "int64" or (dtype in FLOATS and dtype == fact.dtype)
    if not fits or not _is_ordinary(fact) or fact.axes != step.claim.axes or size_of(fact, dim) is ONE:
        return None
    before = Fact(step.claim.axes, dtype, up_to(step, fact, dim, at_most).predicates, zeros_known=FALSE)
    labels = tuple(None if d == dim else d for d in range(len(fact.axes)))
    return Common((step.node,), before, tuple(step.bound), labels)


def _passed(step: Step, known: Known, rule: Rule) -> Common | None:
    """The result without the common number of its one operand that has one, or of both."""
    ((place, common), *others) = known.items()
    if others and _both_keep(step, known):
        return replace(common, rest=_applied(step, rule, known), further=tuple(step.bound))
    if others:
        return None
    if step.name == "einsum":
        labels = _of_a_product(step, place, common)
        rest = common.rest if labels is None else _applied(step, rule, known)
        return None if labels is None else replace(common, rest=rest, further=tuple(step.bound), labels=labels)
    passed = _moved(step, common) if place == 0 else None
    if passed is None and len(step.shape) == len(common.rest.axes):
        passed = _through_factor(step, place, common) if common.factor else _through_difference(step, place, common)
    if passed is None:
        return None
    rest = _applied(step, rule, {place: common})
    return replace(passed, rest=rest, further=tuple(step.bound))


def _both_keep(step: Step, known: Known) -> bool:
    """True for the sum, or the larger, of two tensors with the same factor."""
    if step.name not in ("add", "maximum") or step.kwargs or set(known) != {0, 1} or len(step.args) != 2:
        return False
    first, second = known[0], known[1]
    fits = first.labels == second.labels and first.rest.axes == second.rest.axes and _same_number(first, second)
    return fits and first.factor and second.factor and first.weak == second.weak


def _of_a_product(step: Step, place: int, common: Common) -> tuple[int | None, ...] | None:
    """The labels of a factor in a sum of products, if it is the same for all that are summed."""
    left, arrow, right = step.args[0].replace(" ", "").partition("->")
    own = left.split(",")[place]
    if not arrow or "." in own or len(own) != len(common.labels) or not common.factor or common.weak:
        return None
    if len(set(own)) < len(own) or any(c not in right and d not in common.along for d, c in enumerate(own)):
        return None
    label_of = dict(zip(own, common.labels, strict=True))
    return tuple(label_of.get(letter) for letter in right)


def _same_number(first: Common, second: Common) -> bool:
    return first.number[0] is second.number[0] and first.number[1:] == second.number[1:]


def _moved(step: Step, common: Common) -> Common | None:
    """Elements at other places, with the numbers that these have in common; None for another operator."""
    labels, rank = common.labels, len(common.labels)
    if step.name not in MOVES or step.claim.dtype != common.rest.dtype:
        return None
    if step.name in VIEWS:
        return _cut_otherwise(step, common)
    if step.name not in ("slice", "select"):
        return replace(common, labels=tuple(_rearranged(step, common)))
    dim = step.dim(step.argument(1, "dim", 0), rank)
    whole = step.name == "slice" and tuple(step.args[2:]) in WHOLE and not step.kwargs
    another = labels[dim] is not None and not whole  # another part of the numbers
    number = (*common.number, step.node) if another else common.number
    return replace(common, number=number, labels=labels if step.name == "slice" else labels[:dim] + labels[dim + 1 :])


def _rearranged(step: Step, common: Common) -> list[int | None]:
    """The labels of dimensions in another order, of new ones, and without some of size one."""
    found, rank = list(common.labels), len(common.labels)
    ones = [size_of(common.rest, d) is ONE for d in range(rank)]
    if step.name == "permute":
        return [found[step.dim(d, rank)] for d in step.argument(1, "dims")]
    if step.name == "unsqueeze":
        found.insert(step.dim(step.argument(1, "dim"), rank + 1), None)
        return found
    if step.name == "squeeze":
        given = step.argument(1, "dim", list(range(rank)))
        chosen = {step.dim(d, rank) for d in (given if isinstance(given, list) else [given])}
        return [label for d, label in enumerate(found) if d not in chosen or not ones[d]]
    if step.name == "expand":
        new: list[int | None] = [None] * (len(step.shape) - rank)
        return [*new, *(None if one else label for label, one in zip(found, ones, strict=True))]
    first, second = (step.dim(step.argument(k, f"dim{k - 1}", k - 3), rank) for k in (1, 2))
    found[first], found[second] = found[second], found[first]
    return found


def _cut_otherwise(step: Step, common: Common) -> Common | None:
    """Rows that stay, while what each of them holds is cut in another way."""
    sizes = (size_of(common.rest, d) for d in range(len(common.labels)))
    pairs = zip(sizes, step.shape, strict=False)
    kept = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
    if None in common.labels[kept:]:
        return None
    labels = tuple(None if d < kept and common.labels[d] is None else d for d in range(len(step.shape)))
    return replace(common, number=(*common.number, step.node), labels=labels)


def _is_copy(step: Step) -> bool:
    return step.name in COPIES or (step.name in CONVERSIONS and step.claim.dtype in FLOATS)


def _through_difference(step: Step, place: int, common: Common) -> Common | None:
    if _is_copy(step):
        return common
    if step.name in ("exp", "exp2"):
        number = common.number if step.name == "exp" else (*common.number, step.name)
        return replace(common, number=number, factor=True, filled=False)
    if common.filled:
        return None
    if (fill := _other_choice(step, place)) is not None:
        known, limit = common.rest.predicates, mask_limit(step.claim.dtype)
        ordinary = known.ordinary is TRUE and known.hidden is FALSE and known.low is FALSE
        if all(number == -math.inf for number in fill):
            return common
        return replace(common, filled=True) if ordinary and all(number <= -limit for number in fill) else None
    if step.name == "add" or (step.name == "sub" and place == 0):
        return None if step.kwargs else common
    factor = step.args[1] if len(step.args) > 1 else None
    if step.name in ("mul", "div") and isinstance(factor, int | float) and 0 < factor < math.inf and not step.kwargs:
        return replace(common, number=(*common.number, step.name, factor))
    return _through_product(step, place, common) if step.name in ("matmul", "bmm", "linear") else None


def _through_product(step: Step, place: int, common: Common) -> Common | None:
    """The product of a matrix whose rows, or columns, have a number in common, and of one of ordinary numbers."""
    rank, other = len(step.shape), step.args[1 - place] if place < 2 else None
    if not isinstance(other, Fact) or not _is_ordinary(other):
        return None
    kept = rank - 1 if place else rank - 2
    fits = place == 0 if step.name == "linear" else len(other.axes) == rank
    if not fits or kept not in common.along:
        return None
    return replace(common, number=(step.node,), labels=tuple(None if d == kept else d for d in range(rank)))


def _through_factor(step: Step, place: int, common: Common) -> Common | None:
    rank = len(step.shape)
    if _is_copy(step) or step.name in ("mul", "tril", "triu"):
        return common
    if step.name == "add" and place == 0 and not isinstance(step.args[1], Fact) and step.args[1] == 0:
        return common
    if (fill := _other_choice(step, place)) is not None:
        return common if all(number == 0 for number in fill) else None
    power = step.args[1] if step.name == "pow" and len(step.args) == 2 else POWERS.get(step.name)
    if place == 0 and isinstance(power, int | float) and 0 < power < math.inf:
        return replace(common, number=(*common.number, "pow", float(power)))
    if step.name == "sum" and (given := step.argument(1, "dim")) is not None:
        dims = {step.dim(d, rank) for d in (given if isinstance(given, list) else [given])}
        return common if dims and dims <= common.along else None
    if step.name == "cumsum":
        return common if step.dim(step.argument(1, "dim"), rank) in common.along else None
    if step.name not in ("matmul", "bmm") or common.weak or any(len(step.fact(k).axes) != rank for k in (0, 1)):
        return None
    return common if (rank - 1 if place == 0 else rank - 2) in common.along else None


def _other_choice(step: Step, place: int) -> list[float] | None:
    """The numbers that `where` or `masked_fill` takes in place of a tensor; None if they are not known."""
    places = {"masked_fill": {0: 2}, "where": {1: 2, 2: 1}}.get(step.name, {})
    other: Any = step.args[places[place]] if place in places and len(step.args) == 3 else None
    if isinstance(other, int | float):
        return [float(other)]
    if isinstance(other, Fact) and isinstance(other.value, Cases):
        return [float(number) for _, number in other.value.pairs]
    return None


def _cancels(step: Step, known: Known) -> bool:
    """True if common numbers of the operands cancel in the result."""
    first, second = known.get(0), known.get(1)
    if step.name == "scaled_dot_product_attention":  # keys, whose scores have a number of each query in common
        queries = step.args[0]
        ordinary = isinstance(queries, Fact) and _is_ordinary(queries)
        plain = second is not None and not second.factor and not second.filled
        return (
            plain and ordinary and set(known) == {1} and second is not None and len(second.labels) - 2 in second.along
        )
    if first is None:
        return False
    if step.name in SOFTMAX:
        return not first.factor and step.dim(step.argument(1, "dim"), len(step.shape)) in first.along
    if second is None or step.kwargs or first.labels != second.labels:
        return False
    if not _same_number(first, second):
        return False
    if step.name == "div":
        return first.factor and second.factor
    subtracted = not (first.factor or first.filled or second.factor or second.filled)
    whole = first.rest.dtype == second.rest.dtype == "int64" and step.name in ("eq", "ne")
    return subtracted and (step.name == "sub" or whole)
