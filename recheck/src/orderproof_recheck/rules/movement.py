"""Operators whose result consists of elements of the operand: each rule is a map of indices.

`copied(step, dims)` says at which index along each dimension of the operand an element of the result is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from orderproof_recheck.facts import Fact, Predicates, product_of
from orderproof_recheck.index_maps import Digits, NoMap, read, read_flat, shifted
from orderproof_recheck.logic.formulas import TRUE, Formula, equal
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer, remainder_of
from orderproof_recheck.operator import READS, Operator, Permuted, operators
from orderproof_recheck.steps import Derived, Step

ONE = integer(1)
NO_END = (1 << 63) - 1
NOWHERE: Digits = ()  # the index along a dimension of size one


def copied(step: Step, fact: Fact, dims: Sequence[Digits]) -> Derived:
    """The element of an operand at these indices."""
    return Derived.of_element(read(fact, dims, step.equal))


def size_of(fact: Fact, dim: int) -> Term:
    """The size of a dimension."""
    return product_of(fact.axes[dim])


def single(step: Step, dim: int, result: int = 0) -> Term:
    """The index of a result along a dimension, as one term. Raises if it is not linear."""
    value, total = integer(0), integer(1)
    for size, place in reversed(step.digits(dim, result)):
        require(total.is_integer, "the index of a merged dimension is not linear")
        value, total = value + place * total.constant, total.times(size)
    return value


def same_elements(step: Step) -> list[Derived]:
    """The operand itself, or a copy."""
    return [copied(step, step.fact(0), step.all_digits())]


def transpose(step: Step) -> list[Derived]:
    """Two dimensions exchanged; the last two by default."""
    rank = len(step.fact(0).axes)
    require(step.name in ("t", "mT", "adjoint") or len(step.args) == 3, "expected two dimensions")
    order = list(range(rank))
    if rank > 1:
        first, second = (step.dim(step.argument(k, f"dim{k - 1}", k - 3), rank) for k in (1, 2))
        order[first], order[second] = order[second], order[first]
    return _permuted(step, order)


def permute(step: Step) -> list[Derived]:
    """Result dimension d is operand dimension dims[d]."""
    rank = len(step.fact(0).axes)
    return _permuted(step, [step.dim(d, rank) for d in step.argument(1, "dims")])


def numpy_transpose(step: Step) -> list[Derived]:
    """All dimensions in reverse."""
    return _permuted(step, list(range(len(step.fact(0).axes)))[::-1])


def movedim(step: Step) -> list[Derived]:
    """Some dimensions at other places; the others keep their order."""
    rank = len(step.fact(0).axes)
    pairs = []
    for place, name in ((1, "source"), (2, "destination")):
        given = step.argument(place, name)
        pairs.append([step.dim(d, rank) for d in (given if isinstance(given, list) else [given])])
    target = dict(zip(pairs[1], pairs[0], strict=True))
    rest = iter(d for d in range(rank) if d not in pairs[0])
    return _permuted(step, [target[d] if d in target else next(rest) for d in range(rank)])


def _permuted(step: Step, order: Sequence[int]) -> list[Derived]:
    require(sorted(order) == list(range(len(step.fact(0).axes))), "the dimensions are no permutation")
    return [copied(step, step.fact(0), [step.digits(order.index(d)) for d in range(len(order))])]


def unsqueeze(step: Step) -> list[Derived]:
    """A new dimension of size one."""
    fact = step.fact(0)
    new = step.dim(step.argument(1, "dim"), len(fact.axes) + 1)
    require(len(step.shape) == len(fact.axes) + 1 and step.shape[new] is ONE, "its result has another shape")
    return [copied(step, fact, [step.digits(d + (d >= new)) for d in range(len(fact.axes))])]


def squeeze(step: Step) -> list[Derived]:
    """Without dimensions of size one."""
    fact, rank = step.fact(0), len(step.fact(0).axes)
    given = step.argument(1, "dim", list(range(rank)))
    chosen = {step.dim(d, rank) for d in (given if isinstance(given, list) else [given])}
    dims: list[Digits] = []
    place = 0
    for d in range(rank):
        gone = d in chosen and size_of(fact, d) is ONE
        dims.append(NOWHERE if gone else step.digits(place))
        place += not gone
    return [copied(step, fact, dims)]


def expand(step: Step) -> list[Derived]:
    """Dimensions of size one repeated; the dimensions of the operand are the last ones."""
    if step.name != "expand_as":
        has_sizes(step, step.argument(1, "size"))
    return [broadcast(step, step.fact(0))]


def has_sizes(step: Step, sizes: Any) -> None:
    """Require that the result has these sizes; -1 is any."""
    require(isinstance(sizes, list) and len(sizes) == len(step.shape), "its result has another shape")
    for given, size in zip(sizes, step.shape, strict=True):
        if given != -1:
            require(step.equal(step.term(given), size), "its result has another shape")


def broadcast(step: Step, fact: Fact) -> Derived:
    """The element of an operand that is broadcast to the result."""
    return Derived.of_element(broadcast_element(step, fact))


def broadcast_element(step: Step, fact: Fact) -> Fact:
    """The fact about the element of an operand that is broadcast to the result."""
    new = len(step.claim.axes) - len(fact.axes)
    require(new >= 0, "an operand has more dimensions than the result")
    dims = [NOWHERE if size_of(fact, d) is ONE else step.digits(d + new) for d in range(len(fact.axes))]
    return read(fact, dims, step.equal)


def viewed(step: Step) -> list[Derived]:
    """The same elements in the order of memory."""
    fact = step.fact(0)
    require(fact.dtype == step.claim.dtype, "the bits of a tensor are read as another dtype")
    if step.name in ("view", "reshape", "_unsafe_view"):
        has_sizes(step, step.argument(1, "size", step.argument(1, "shape")))
    elif step.name in ("flatten", "unflatten", "ravel"):
        _check_merged(step, fact)
    elif step.name in ("view_as", "reshape_as"):
        other = step.fact(1)
        has_sizes(step, [size_of(other, d) for d in range(len(other.axes))])
    step.need(_same_count(step, fact), "it has another number of elements")
    digits = tuple(digit for dim in step.all_digits() for digit in dim)
    try:
        return [Derived.of_element(read_flat(fact, digits, step.equal))]
    except NoMap:
        places = shifted(fact.sizes, digits, step.equal, partial(step.holds, sizes=step.claim.sizes))
        if places is not None:
            return [Derived.of_element(fact.at(places))]
        raise


def view(step: Step) -> list[Derived]:
    """The same elements in the order of memory; of axes that do not fit, somewhere in the same row."""
    try:
        return viewed(step)
    except NoMap:
        fact = step.fact(0)
        if not (fact.axes and step.shape) or len(fact.axes[0]) != 1 or not step.equal(fact.axes[0][0], step.shape[0]):
            raise
        row = [
            step.digits(0),
            *(step.further(axes) for axes in fact.axes[1:]),
        ]  # somewhere in the row of the same index
        element = read(fact, row, step.equal)
        return [Derived(Predicates(same=element.same, ordinary=element.ordinary))]


def _check_merged(step: Step, fact: Fact) -> None:
    """Some dimensions become one, or one becomes several."""
    sizes, rank = [size_of(fact, d) for d in range(len(fact.axes))], len(fact.axes)
    if step.name == "unflatten":
        dim, parts = step.dim(step.argument(1, "dim"), rank), step.argument(2, "sizes")
        has_sizes(step, [*sizes[:dim], *parts, *sizes[dim + 1 :]])
        return
    first = 0 if step.name == "ravel" else step.dim(step.argument(1, "start_dim", 0), rank)
    last = rank - 1 if step.name == "ravel" else step.dim(step.argument(2, "end_dim", -1), rank)
    require(first <= last, "a dimension is flattened backwards")
    has_sizes(step, [*sizes[:first], product_of(sizes[first : last + 1]), *sizes[last + 1 :]])


def _same_count(step: Step, fact: Fact) -> Formula:
    mine, own = product_of(step.claim.sizes), product_of(fact.sizes)
    return TRUE if mine is own else equal(mine, own)


def repeat(step: Step) -> list[Derived]:
    """The tensor several times along each dimension: the index is one of the copy and one inside it."""
    fact = step.fact(0)
    counts = step.argument(1, "repeats", step.argument(1, "dims"))
    counts = [1] * (len(step.claim.axes) - len(counts)) + list(counts)
    new = len(step.claim.axes) - len(fact.axes)
    dims = []
    for d in range(len(fact.axes)):
        digits, count = step.digits(d + new), step.term(counts[d + new])
        inner = _last_digits(step, digits, size_of(fact, d))
        require(step.equal(count.times(size_of(fact, d)), step.shape[d + new]), "a dimension is repeated otherwise")
        dims.append(inner)
    return [copied(step, fact, dims)]


def _last_digits(step: Step, digits: Digits, size: Term) -> Digits:
    """The last digits, which count up to a size; of one digit the remainder."""
    total, found = integer(1), []
    for extent, place in reversed(digits):
        if step.equal(total, size):
            break
        grown = total.times(extent)
        if grown.is_integer and size.is_integer and grown.constant > size.constant:
            needed, uneven = divmod(size.constant, total.constant)
            require(not uneven and extent.constant % needed == 0, "the copies of a dimension do not fit its axes")
            found.append((integer(needed), remainder_of(place, needed)))
            total = size
            break
        found.append((extent, place))
        total = grown
    require(step.equal(total, size), "the copies of a dimension do not fit its axes")
    return tuple(reversed(found))


def repeat_interleave(step: Step) -> list[Derived]:
    """Each element several times: the index divided by the number of times."""
    fact = step.fact(0)
    given = step.argument(2, "dim")
    dim = step.dim(0 if given is None and len(fact.axes) == 1 else given, len(fact.axes))
    count, dims = step.term(step.argument(1, "repeats")), step.all_digits()
    step_size = size_of(fact, dim)
    require(step.equal(step_size.times(count), step.shape[dim]), "a dimension is repeated otherwise")
    copies = _last_digits(step, dims[dim], count)
    if len(copies) <= len(dims[dim]) and dims[dim][len(dims[dim]) - len(copies) :] == copies:
        dims[dim] = dims[dim][: len(dims[dim]) - len(copies)]
    else:
        require(count.is_integer, "a dimension is repeated an open number of times")
        dims[dim] = ((step_size, floor_of(single(step, dim), count.constant)),)
    return [copied(step, fact, dims)]


def complex_view(step: Step) -> list[Derived]:
    """Pairs of real numbers along a last dimension as complex ones, or the reverse."""
    fact, rank = step.fact(0), len(step.fact(0).axes)
    if step.name == "view_as_real":
        require(
            len(step.shape) == rank + 1 and step.equal(step.shape[rank], integer(2)), "its result has another shape"
        )
        return [copied(step, fact, [step.digits(d) for d in range(rank)])]
    require(
        rank == len(step.shape) + 1 and step.equal(size_of(fact, rank - 1), integer(2)), "expected pairs of numbers"
    )
    return [copied(step, fact, [*step.all_digits(), step.further(fact.axes[rank - 1])])]


MOVEMENT: dict[str, Operator] = {
    **operators(("transpose", "swapaxes", "swapdims", "t", "mT", "adjoint"), transpose, READS),
    **operators(("expand", "broadcast_to", "expand_as"), expand, READS),
    **operators(
        ("view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "ravel", "_reshape_alias"),
        view, Permuted(rule=viewed),
    ),
    **operators(("repeat", "tile"), repeat, READS),
    **operators(("movedim", "moveaxis"), movedim, READS),
    **operators(("clone", "contiguous", "detach", "alias", "lift_fresh", "lift_fresh_copy"), same_elements, READS),
    **operators(("view_as_complex", "view_as_real"), complex_view, READS),
    "permute": Operator(permute, READS), "numpy_T": Operator(numpy_transpose, READS),
    "unsqueeze": Operator(unsqueeze, READS), "squeeze": Operator(squeeze, READS),
    "repeat_interleave": Operator(repeat_interleave, READS),
}  # fmt: skip
