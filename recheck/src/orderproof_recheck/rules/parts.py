"""Operators that take parts of a tensor, or shift its elements along a dimension."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.index_maps import Digits
from orderproof_recheck.logic.formulas import TRUE, at_most, every, if_else, less
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer, remainder_of
from orderproof_recheck.operator import READS, Operator, Permuted, operators
from orderproof_recheck.rules.movement import copied, single, size_of
from orderproof_recheck.setting import Obligation
from orderproof_recheck.steps import Derived, Step

NO_END = (1 << 63) - 1


def select(step: Step) -> list[Derived]:
    """One index of a dimension; a negative one counts from the end."""
    fact = step.fact(0)
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    return [_selected(step, fact, dim, step.term(step.argument(2, "index")), 0)]


def _selected(step: Step, fact: Fact, dim: int, place: Term, result: int) -> Derived:
    size = size_of(fact, dim)
    if place.is_integer and place.constant < 0:
        place = place + size
    step.need(every(at_most(0, place), less(place, size)), "an index may leave the tensor")
    rest = [step.digits(d, result) for d in range(len(fact.axes) - 1)]
    return copied(step, fact, [*rest[:dim], ((size, place),), *rest[dim:]])


def slice_(step: Step) -> list[Derived]:
    """Every step-th index of a dimension from a start on, up to an end."""
    fact = step.fact(0)
    dim = step.dim(step.argument(1, "dim", 0), len(fact.axes))
    stride = 1 if step.name == "narrow" else step.integer(step.argument(4, "step", 1))
    given, size = step.argument(2, "start"), size_of(fact, dim)
    start = step.term(0 if given is None else given)
    if step.setting.discharge(Obligation((), TRUE, less(start, 0))):  # it counts from the end
        start = start + size
        if step.setting.discharge(Obligation((), TRUE, at_most(start, 0))):
            start = integer(0)  # torch moves a start before the first element
    if step.name == "narrow":
        taken = step.term(step.argument(3, "length"))
    else:
        taken = _taken(step, start, step.argument(3, "end"), stride, size)
    require(step.equal(taken, step.shape[dim]), "a slice has another size")
    return [_sliced(step, fact, dim, start, stride, 0)]


def _taken(step: Step, start: Term, end: Any, stride: int, size: Term) -> Term:
    """The number of elements of a slice."""
    last = size if end is None or end == NO_END else step.term(end)
    if last.is_integer and last.constant < 0:
        last = last + size
    if step.setting.discharge(Obligation((), TRUE, at_most(size, last))):
        last = size
    else:
        step.need(at_most(last, size), "the end of a slice is not known")
    return floor_of(last - start + (stride - 1), stride)


def _sliced(step: Step, fact: Fact, dim: int, start: Term, stride: int, result: int) -> Derived:
    """The element start + stride * index of a dimension."""
    size, taken = size_of(fact, dim), step.shapes[result][dim]
    require(stride > 0, "a slice goes backwards")
    dims = step.all_digits(result)
    if start.is_integer and start.constant == 0 and stride == 1 and taken is size:
        return copied(step, fact, dims)
    inside = every(at_most(0, start), at_most(start + (taken - 1) * stride, size - 1))
    step.need(inside, "a slice may leave its tensor")
    dims[dim] = ((size, start + single(step, dim, result) * stride),)
    return copied(step, fact, dims)


def split(step: Step) -> list[Derived]:
    """Parts of a dimension, one after the other."""
    fact = step.fact(0)
    dim = step.dim(step.argument(2, "dim", 0), len(fact.axes))
    found, start = [], integer(0)
    for k, shape in enumerate(step.shapes):
        found.append(_sliced(step, fact, dim, start, 1, k))
        start = start + shape[dim]
    require(step.equal(start, size_of(fact, dim)), "the parts of a dimension do not make it up")
    return found


def unbind(step: Step) -> list[Derived]:
    """Every index of a dimension."""
    fact = step.fact(0)
    dim = step.dim(step.argument(1, "dim", 0), len(fact.axes))
    return [_selected(step, fact, dim, integer(k), k) for k in range(len(step.shapes))]


def flip(step: Step) -> list[Derived]:
    """Dimensions in reverse."""
    fact, dims = step.fact(0), step.all_digits()
    chosen = [step.dim(one, len(fact.axes)) for one in step.argument(1, "dims")]
    if len(chosen) == 1:
        step.flip_of = fact, chosen[0]
    for dim in chosen:
        size = size_of(fact, dim)
        dims[dim] = ((size, size - 1 - single(step, dim)),)
    return [copied(step, fact, dims)]


def roll(step: Step) -> list[Derived]:
    """The element `shift` places before, around the end."""
    fact, dims = step.fact(0), step.all_digits()
    shifts = step.argument(1, "shifts")
    shifts = shifts if isinstance(shifts, list) else [shifts]
    chosen = list(_rolled(step))
    require(bool(chosen) and len(set(chosen)) == len(chosen), "a roll without its dimensions, or with one twice")
    is_known = True
    for shift, dim in zip(shifts, chosen, strict=True):
        size, at = size_of(fact, dim), single(step, dim) - step.integer(shift)
        if size.is_integer:
            dims[dim] = ((size, remainder_of(at, size.constant)),)
            continue
        if not step.setting.discharge(Obligation((), TRUE, at_most(abs(shift), size))):
            dims[dim] = step.further((size,))  # it may go around several times: any element
            is_known = False
            continue
        around = at + (size if shift > 0 else size * -1)
        outside = less(at, 0) if shift > 0 else at_most(size, at)
        dims[dim] = ((size, if_else(outside, around, at)),)
    found = copied(step, fact, dims)
    anywhere = Predicates(found.predicates.same, ordinary=found.predicates.ordinary)
    return [found if is_known else Derived(anywhere)]


def unfold(step: Step) -> list[Derived]:
    """Windows of a dimension, as a new last dimension."""
    fact = step.fact(0)
    dim = step.dim(step.argument(1, "dimension"), len(fact.axes))
    width, stride = step.term(step.argument(2, "size")), step.integer(step.argument(3, "step"))
    size, rank = size_of(fact, dim), len(fact.axes)
    require(len(step.shape) == rank + 1 and step.equal(step.shape[rank], width), "its result has another shape")
    step.need(at_most((step.shape[dim] - 1) * stride + width, size), "a window may leave its tensor")
    dims = [step.digits(d) for d in range(rank)]
    dims[dim] = ((size, single(step, dim) * stride + single(step, rank)),)
    return [copied(step, fact, dims)]


def diagonal(step: Step) -> list[Derived]:
    """The diagonal of two dimensions, as the last dimension."""
    fact, rank = step.fact(0), len(step.fact(0).axes)
    offset = step.integer(step.argument(1, "offset", 0))
    first, second = (step.dim(step.argument(k, f"dim{k - 1}", k - 2), rank) for k in (2, 3))
    require(first != second and len(step.shape) == rank - 1, "a diagonal of another kind")
    at, kept = single(step, rank - 2), [d for d in range(rank) if d not in (first, second)]
    dims: list[Digits] = [()] * rank
    for place, d in enumerate(kept):
        dims[d] = step.digits(place)
    for d, start in ((first, max(0, -offset)), (second, max(0, offset))):
        step.need(at_most(step.shape[rank - 2] + start, size_of(fact, d)), "a diagonal leaves its tensor")
        dims[d] = ((size_of(fact, d), at + start),)
    return [copied(step, fact, dims)]


def _rolled(step: Step) -> Iterable[int]:
    """The dimensions of a roll: the one of a tensor that has one, if none is named."""
    rank = len(step.fact(0).axes)
    given = step.argument(2, "dims", []) or ([0] if rank == 1 else [])
    return [step.dim(d, rank) for d in (given if isinstance(given, list) else [given])]


PARTS: dict[str, Operator] = {
    **operators(
        ("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk"), split, READS
    ),
    **operators(("slice", "narrow"), slice_, READS),
    "select": Operator(select, READS), "unbind": Operator(unbind, READS), "flip": Operator(flip, READS),
    "roll": Operator(roll, Permuted(by_index=_rolled)), "unfold": Operator(unfold, READS),
    "diagonal": Operator(diagonal, READS),
}  # fmt: skip
