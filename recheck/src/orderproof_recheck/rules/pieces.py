"""Operators whose result consists of parts: which operand an element comes from is a condition on its index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orderproof_recheck.facts import (
    INTEGER_LIMITS,
    WHOLE,
    Cases,
    Fact,
    Predicates,
    Value,
    cases_of,
    joined_cases,
    known,
    whole_number,
)
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    Formula,
    at_most,
    equal,
    every,
    if_else,
    implies,
    less,
    opposite,
    some,
)
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer, remainder_of
from orderproof_recheck.operator import READS, Operator, operators
from orderproof_recheck.rules.movement import ONE, broadcast_element, single, size_of
from orderproof_recheck.steps import Derived, Step

Part = tuple[Formula, Fact]  # a condition, and the element under it


def parted(step: Step, parts: Sequence[Part]) -> Derived:
    """Elements of several operands. The conditions exclude each other and cover everything."""
    value = _value(parts, step.claim.dtype)
    if value is not None:
        return Derived.of_value(value, step.claim.dtype)
    return Derived(
        Predicates(
            same=every(*(implies(c, f.same) for c, f in parts)),
            zero=some(*(c & f.zero for c, f in parts)),
            hidden=some(*(c & f.hidden for c, f in parts)),
            ordinary=every(*(implies(c, f.ordinary) for c, f in parts)),
            low=every(*(implies(c, f.at_most_ordinary) for c, f in parts)),
        )
    )


def _value(parts: Sequence[Part], dtype: str) -> Value | None:
    values = [f.value for _, f in parts]
    if any(v is None for v in values):
        return None
    if dtype == "bool" and all(isinstance(v, Formula) for v in values):
        return some(*(every(c, v) for (c, _), v in zip(parts, values, strict=True) if isinstance(v, Formula)))
    if any(isinstance(v, Term) and cases_of(v) is None for v in values):
        values = [None if v is None else whole_number(v) for v in values]
    if dtype in WHOLE and all(isinstance(v, Term) for v in values):
        total = values[-1]
        for (c, _), v in zip(reversed(parts[:-1]), reversed(values[:-1]), strict=True):
            assert isinstance(v, Term)
            assert isinstance(total, Term)
            total = if_else(c, v, total)
        return total
    cases = [cases_of(v) for v in values if v is not None]
    if dtype in INTEGER_LIMITS or dtype == "bool" or any(c is None for c in cases):
        return None
    found = [
        (every(c, inner), n) for (c, _), one in zip(parts, cases, strict=True) if one is not None
        for inner, n in one.pairs
    ]  # fmt: skip
    return joined_cases(found)


def number_fact(number: Any, dtype: str) -> Fact:
    """A tensor of one number, without dimensions."""
    require(isinstance(number, int | float), "expected a number")
    if dtype == "bool":
        return known((), dtype, TRUE if number else opposite(TRUE))
    if dtype in INTEGER_LIMITS:
        return known((), dtype, integer(int(number)))
    return known((), dtype, Cases(((TRUE, float(number)),)))


def joined(step: Step, facts: Sequence[Fact], dim: int) -> list[Derived]:
    """Tensors one after the other along a dimension."""
    at, start, total = None, integer(0), integer(0)
    for fact in facts:
        total = total + size_of(fact, dim)
    require(step.equal(total, step.shape[dim]), "the parts of a dimension do not make it up")
    if len(facts) == 1:
        return [Derived.of_element(read(facts[0], step.all_digits(), step.equal))]
    parts: list[Part] = []
    for fact in facts:
        size = size_of(fact, dim)
        dims: list[Digits] = step.all_digits()
        at = single(step, dim) if at is None else at
        dims[dim] = ((size, at - start),)
        condition = every(at_most(start, at), less(at, start + size))
        parts.append((condition, read(fact, dims, step.equal)))
        start = start + size
    first = parts[0][1]
    if all((f.predicates, f.value) == (first.predicates, first.value) for _, f in parts):
        return [Derived.of_element(first)]
    return [parted(step, _adjoining(parts))]


def _adjoining(parts: Sequence[Part]) -> list[Part]:
    """The parts with the conditions of a row of pieces: the first has no beginning, the last no end."""
    found: list[Part] = []
    before: list[Formula] = []
    for k, (condition, fact) in enumerate(parts):
        last = k == len(parts) - 1
        found.append((every(*map(opposite, before)) if last else condition, fact))
        before.append(condition)
    return found


def _is_empty(step: Step, fact: Fact) -> bool:
    """True of an empty tensor of one dimension, which torch skips."""
    return len(fact.axes) == 1 and step.equal(size_of(fact, 0), integer(0))


def cat(step: Step) -> list[Derived]:
    """Tensors one after the other."""
    rank = len(step.shape)
    facts = [f for f in step.argument(0, "tensors") if isinstance(f, Fact) and not _is_empty(step, f)]
    require(all(len(f.axes) == rank for f in facts), "a tensor is put together with another rank")
    require(bool(facts), "nothing is put together")
    return joined(step, facts, step.dim(step.argument(1, "dim", 0), rank))


def stack(step: Step) -> list[Derived]:
    """Tensors side by side along a new dimension."""
    dim = step.dim(step.argument(1, "dim", 0), len(step.shape))
    facts = [replace(f, axes=(*f.axes[:dim], (), *f.axes[dim:])) for f in step.argument(0, "tensors")]
    return joined(step, facts, dim)


def _of_mode(mode: str, at: Term, size: Term) -> Term:
    """The index of the element that is at an index, which may be outside, after padding with elements."""
    if mode == "replicate":
        before, after = integer(0), size - 1
    elif mode == "reflect":
        before, after = at * -1, size * 2 - 2 - at
    else:
        require(mode == "circular", "padding of another mode")
        before, after = at + size, at - size
    return if_else(less(at, 0), before, if_else(at_most(size, at), after, at))


def pad(step: Step) -> list[Derived]:
    """A tensor with a number around it, or with elements of its own."""
    named = step.name == "pad"
    mode = (step.argument(2, "mode", "constant") if named else None) or "constant"
    number = (step.argument(3, "value", None) if named else step.argument(2, "value", 0)) or 0
    fact, widths, dims = step.fact(0), step.argument(1, "pad"), step.all_digits()
    conditions: list[Formula] = []
    for k in range(len(widths) // 2):
        before, after = step.term(widths[2 * k]), step.term(widths[2 * k + 1])
        dim = len(fact.axes) - 1 - k
        size = size_of(fact, dim)
        require(step.equal(before + size + after, step.shape[dim]), "padding gives another shape")
        if before is integer(0) and after is integer(0):
            continue
        at = single(step, dim) - before
        if mode == "constant":
            conditions += [at_most(0, at), less(at, size)]
        else:
            step.need(every(at_most(0, before), at_most(0, after)), "a tensor is cut by padding")
            at = _of_mode(str(mode), at, size)
        dims[dim] = ((size, at),)
    if mode != "constant":
        return [Derived.of_element(read(fact, dims, step.equal))]
    inside = every(*conditions)
    return [parted(step, [(inside, read(fact, dims, step.equal)), (opposite(inside), number_fact(number, fact.dtype))])]


def triangle(step: Step) -> list[Derived]:
    """A matrix with zeros on one side of a diagonal."""
    fact, rank = step.fact(0), len(step.shape)
    offset = single(step, rank - 1) - single(step, rank - 2)
    diagonal = step.term(step.argument(1, "diagonal", 0))
    kept = at_most(offset, diagonal) if step.name == "tril" else at_most(diagonal, offset)
    element = read(fact, step.all_digits(), step.equal)
    return [parted(step, [(kept, element), (opposite(kept), number_fact(0, fact.dtype))])]


def masked_scatter(step: Step) -> list[Derived]:
    """Elements of another tensor where a mask is true, which says how many were written before each."""
    fact, mask, source = step.fact(0), step.fact(1, "mask"), step.fact(2, "source")
    rank = len(fact.axes)
    fits = rank >= len(mask.axes) and all(step.equal(size_of(fact, d), step.shape[d]) for d in range(rank))
    require(fits and len(step.shape) == rank, "the result has another shape")
    here = broadcast_element(step, mask).value
    require(isinstance(here, Formula), "how many elements are written before each is not known")
    assert isinstance(here, Formula)
    one = read(source, [step.further(axes) for axes in source.axes], step.equal).predicates
    any_of = Fact((), source.dtype, Predicates(one.same, ordinary=TRUE if source.ordinary is TRUE else FALSE))
    return [parted(step, [(here, any_of), (opposite(here), read(fact, step.all_digits(), step.equal))])]


def scatter_part(step: Step) -> list[Derived]:
    """A tensor with a range of a dimension replaced."""
    fact, source = step.fact(0), step.fact(1, "src")
    dim = step.dim(step.argument(2, "dim", 0), len(fact.axes))
    size, stride = size_of(fact, dim), 1
    if step.name == "select_scatter":
        start, extent = step.term(step.argument(3, "index")), ONE
        source = Fact((*source.axes[:dim], (), *source.axes[dim:]), source.dtype, source.predicates, source.value)
    else:
        given = step.argument(3, "start")
        start, extent = step.term(0 if given is None else given), size_of(source, dim)
        stride = step.integer(step.argument(5, "step", 1))
    require(stride > 0, "a part goes backwards")
    if start.is_integer and start.constant < 0:
        start = start + size
    inside_tensor = every(at_most(0, start), less(start + (extent - 1) * stride, size))
    step.need(inside_tensor, "a replaced part may leave its tensor")
    at, dims = single(step, dim) - start, step.all_digits()
    element = read(fact, dims, step.equal)
    dims[dim] = ((extent, floor_of(at, stride)),)
    inside = every(at_most(0, at), less(at, extent * stride), equal(remainder_of(at, stride), 0))
    return [parted(step, [(inside, read(source, dims, step.equal)), (opposite(inside), element)])]


PIECES: dict[str, Operator] = {
    **operators(("cat", "concat", "concatenate"), cat, READS),
    **operators(("pad", "constant_pad_nd"), pad, READS),
    **operators(("tril", "triu"), triangle, READS),
    **operators(("slice_scatter", "select_scatter"), scatter_part, READS),
    "masked_scatter": Operator(masked_scatter),
    "stack": Operator(stack, READS),
}  # fmt: skip
