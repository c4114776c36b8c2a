"""Operators that create tensors, copy into them, or write into them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import FLOATS, INTEGER_LIMITS, WHOLE, Cases, Fact, Predicates, index, is_whole
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.largest_scores import are_values_at
from orderproof_recheck.logic.formulas import FALSE, TRUE, at_most, every, less, opposite, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of
from orderproof_recheck.mask_sizes import ordinary_limit
from orderproof_recheck.operator import READS, Operator, Permuted, along, operators
from orderproof_recheck.rules.movement import (
    ONE,
    broadcast_element,
    has_sizes,
    single,
    size_of,
)
from orderproof_recheck.rules.numbers import is_ordinary, rounded
from orderproof_recheck.rules.pieces import parted
from orderproof_recheck.rules.sums_by_index import index_add, is_added, put_along, put_at_indices, put_of_moved
from orderproof_recheck.setting import Obligation
from orderproof_recheck.steps import Derived, Step


def arange(step: Step) -> list[Derived]:
    """Start + step * index."""
    args = step.arguments()
    require(1 <= len(args) <= 3 and len(step.shape) == 1, "expected one, two or three numbers")
    args = [int(x) if is_whole(x) else x for x in args]
    start, end = (args[0], args[1]) if len(args) > 1 else (0, args[0])
    stride = args[2] if len(args) > 2 else 1
    if not isinstance(start, Term | int) or type(stride) is not int or step.claim.dtype not in WHOLE:
        return [Derived(Predicates(ordinary=TRUE if all(map(is_ordinary, args)) else FALSE))]
    require(stride != 0, "a range without a step")
    first = step.term(start)
    if not isinstance(end, Term | int):  # a float, which says how many numbers there are
        require(step.claim.dtype not in INTEGER_LIMITS, "a range of integers ends at another number")
        return [Derived.of_value(first + single(step, 0) * stride, step.claim.dtype)]
    last = step.term(end)
    sign = 1 if stride > 0 else -1
    count = floor_of((last - first) * sign + (abs(stride) - 1), abs(stride))
    require(step.equal(count, step.shape[0]), "a range has another size")
    return [Derived.of_value(first + single(step, 0) * stride, step.claim.dtype)]


def _has_shape_of(step: Step, fact: Fact) -> None:
    sizes = [size_of(fact, d) for d in range(len(fact.axes))]
    fits = len(sizes) == len(step.shape) and all(map(step.equal, sizes, step.shape))
    require(fits, "its result has another shape")


def full(step: Step) -> list[Derived]:
    """One number."""
    name = step.name
    if name in ("full", "zeros", "ones"):
        has_sizes(step, step.argument(0, "size"))
    elif name in ("new_full", "new_zeros", "new_ones"):
        has_sizes(step, step.argument(1, "size"))
        step.fact(0)
    elif name != "scalar_tensor":
        _has_shape_of(step, step.fact(0))
    number = 0 if "zeros" in name else 1 if "ones" in name else step.args[0 if name == "scalar_tensor" else -1]
    dtype = step.claim.dtype
    if dtype == "bool":
        require(isinstance(number, int), "a tensor is filled with a number that is not known")
        return [Derived.of_value(TRUE if number else FALSE, dtype)]
    if dtype in INTEGER_LIMITS:
        require(isinstance(number, int | Term), "a tensor is filled with a number that is not known")
        return [Derived.of_value(step.term(int(number) if isinstance(number, bool) else number), dtype)]
    if not isinstance(number, int | float):  # one that is computed from sizes
        return [Derived(Predicates(ordinary=TRUE if isinstance(number, Term) else FALSE))]
    if dtype.startswith("complex"):
        return [
            Derived(Predicates(zero=TRUE if number == 0 else FALSE, ordinary=TRUE if is_ordinary(number) else FALSE))
        ]
    return [Derived.of_value(Cases(((TRUE, rounded(float(number), dtype)),)), dtype)]


def copy(step: Step) -> list[Derived]:
    """The elements of another tensor, broadcast to this shape."""
    fact, source = step.fact(0), step.fact(1)
    _has_shape_of(step, fact)
    element = broadcast_element(step, source)
    if source.dtype == fact.dtype:
        return [Derived(element.predicates, element.value)]
    return [Derived(_in_dtype(element.predicates, fact.dtype))]


def _in_dtype(own: Predicates, dtype: str) -> Predicates:
    """The predicates of a number that is converted: one that is as low as a mask may become any integer."""
    if dtype in INTEGER_LIMITS or dtype == "bool":
        return Predicates(same=own.same, zero=own.zero, ordinary=own.ordinary)
    return own


def empty(step: Step) -> list[Derived]:
    """Memory that was not written: anything."""
    if step.name in ("empty", "empty_strided", "empty_permuted"):
        has_sizes(step, step.argument(0, "size"))
    elif step.name in ("new_empty", "new_empty_strided"):
        has_sizes(step, step.argument(1, "size"))
        step.fact(0)
    else:
        _has_shape_of(step, step.fact(0))
    return [Derived(Predicates(same=FALSE, ordinary=FALSE)) for _ in step.claims]


def fill(step: Step) -> list[Derived]:
    """One number at every place of a tensor."""
    _has_shape_of(step, step.fact(0))
    number = step.argument(1, "value")
    if isinstance(number, Fact):
        require(not number.axes, "a tensor is filled with several numbers")
        if number.dtype == step.claim.dtype:
            return [Derived(number.predicates, number.value)]
        return [Derived(_in_dtype(number.predicates, step.claim.dtype))]
    return full(step)


def of_indices(step: Step) -> list[Derived]:
    """Numbers that follow from the indices alone."""
    args = [x for x in step.arguments() if not isinstance(x, Fact)]
    require(len(args) == len(step.arguments()), "expected no tensor")
    has_sizes(step, [step.argument(2, "steps")] if step.name == "linspace" else [args[0], args[-1]])
    return [Derived(Predicates())]


def written(step: Step, anywhere: Sequence[int], others: Sequence[Fact], *, aligned: bool) -> list[Derived]:
    """A tensor into which others are written, anywhere along some dimensions (or everywhere)."""
    fact = step.fact(0)
    own = read(fact, step.all_digits(), step.equal)
    parts = [own]
    for other in others:
        dims: list[Digits] = []
        for d, axes in enumerate(other.axes):
            fits = aligned and len(other.axes) == len(fact.axes) and d not in anywhere
            fits = fits and step.equal(size_of(other, d), step.shape[d])
            dims.append(step.digits(d) if fits else step.further(axes))
        parts.append(read(other, dims, step.equal))
    ordinary = every(*(p.ordinary for p in parts))
    return [Derived(Predicates(every(*(p.same for p in parts)), ordinary=TRUE if ordinary is TRUE else FALSE))]


def scatter(step: Step) -> list[Derived]:
    """Elements written along one dimension."""
    dim = step.dim(step.argument(1, "dim"), len(step.fact(0).axes))
    given = [*step.arguments(2), *(step.argument(3, name) for name in ("src", "value")), step.kwargs.get("alpha")]
    others = [x for x in given if isinstance(x, Fact)]
    found = written(step, [dim], others, aligned=True)
    numbers = [x for x in given if not isinstance(x, Fact)]
    copied = [step.fact(0), *(x for x in given[1:] if isinstance(x, Fact))]
    low = step.name == "scatter" and "reduce" not in step.kwargs and len(step.args) < 5  # nothing is multiplied
    low = low and all(x.at_most_ordinary is TRUE for x in copied) and all(_is_at_most_ordinary(x) for x in numbers)
    known = replace(found[0].predicates, low=TRUE if low else FALSE)
    places, source = given[0], given[1]
    if step.name == "scatter" and len(step.args) == 4 and isinstance(source, Fact) and isinstance(places, Fact):
        known = _of_scores(step, known, places, source)
        if not step.kwargs and _is_in_pairs(step):
            (at_places,) = index_add(step)  # of the elements that come to an index, one is there
            own = at_places.predicates
            known = replace(known, same=some(known.same, own.same), ordinary=some(known.ordinary, own.ordinary))
    return [Derived(known if all(map(is_ordinary, numbers)) else replace(known, ordinary=FALSE))]


def _of_scores(step: Step, known: Predicates, places: Fact, source: Fact) -> Predicates:
    """The largest scores of each row, written to their own places: an element is the score there, or what was there."""
    one = places.largest
    if one is None or not are_values_at(source, one) or one.dims != tuple(range(len(step.shape))):
        return known
    if step.dim(step.argument(1, "dim"), len(step.shape)) != one.dim:
        return known
    pair = [read(x, step.all_digits(), step.equal) for x in (step.fact(0), one.scores)]
    return Predicates(
        known.same, hidden=every(*(x.hidden for x in pair)), ordinary=every(*(x.ordinary for x in pair)),
        low=every(*(x.at_most_ordinary for x in pair)),
    )  # fmt: skip


def reduced_at_indices(step: Step) -> list[Derived]:
    """Elements at one index added, multiplied or compared."""
    return index_add(step) if step.claim.dtype in FLOATS and _is_reduced_in_pairs(step) else scatter(step)


def reduced_writes(step: Step) -> list[Derived]:
    """Elements at one index added, multiplied or compared: they may come in any order, together with their indices."""
    if not _is_reduced_in_pairs(step):
        return scatter(step)
    fact, places, source = step.fact(0), step.fact(2, "index"), step.fact(3, "src")
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    row = step.further(max(places.axes[dim], source.axes[dim], key=len))
    own = step.all_digits()
    pair = [read(x, [row if d == dim else own[d] for d in range(len(own))], step.equal) for x in (places, source)]
    return [Derived(Predicates(every(read(fact, own, step.equal).same, *(x.same for x in pair))))]


def _is_reduced_in_pairs(step: Step) -> bool:
    """True if each index has one element that is written, and those at one index are put together in any order."""
    return step.name in ("scatter_add", "scatter_reduce") and _is_in_pairs(step)


def _is_in_pairs(step: Step) -> bool:
    """True if each index has one element that is written."""
    given = [step.argument(k, name) for k, name in ((0, "self"), (2, "index"), (3, "src"))]
    if not all(isinstance(x, Fact) for x in given):
        return False
    fact, places, source = given
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    pairs = [(size_of(places, d), size_of(source, d)) for d in range(len(fact.axes))]
    whole = all(step.equal(a, size_of(fact, d)) for d, (a, _) in enumerate(pairs) if d != dim)
    return whole and all(step.equal(a, b) for a, b in pairs)


def _is_at_most_ordinary(argument: object) -> bool:
    return not isinstance(argument, int | float) or argument < ordinary_limit()


def index_put(step: Step) -> list[Derived]:
    """Elements written anywhere, or at one index after the other."""
    given = step.argument(1, "indices")
    chosen = [d for d, x in enumerate(given) if x is not None]
    if len(chosen) == 1 and step.argument(3, "accumulate", False) is False:
        found = _written_in_a_row(step, chosen[0], given[chosen[0]], step.fact(2, "values"))
        if found is not None:
            return [found]
    try:
        return [put_at_indices(step)]
    except CertificateError:  # a mask, or parts of a dimension
        indices = [x for x in given if x is not None]
        return written(step, [], [*indices, step.fact(2, "values")], aligned=False)


def index_copy(step: Step) -> list[Derived]:
    """Elements written at the indices of a vector along a dimension, if these go on by one."""
    dim = step.dim(step.argument(1, "dim"), len(step.fact(0).axes))
    found = _written_in_a_row(step, dim, step.fact(2, "index"), step.fact(3, "source"))
    require(found is not None, "elements are written at indices that are not known")
    assert found is not None
    return [found]


def _written_in_a_row(step: Step, dim: int, places: object, source: Fact) -> Derived | None:
    """A tensor into which elements are written at one index after the other; None at other indices."""
    fact = step.fact(0)
    if len(source.axes) > len(fact.axes):
        return None
    if not isinstance(places, Fact) or len(places.axes) != 1 or len(places.axes[0]) != 1:
        return None
    if not isinstance(places.value, Term):
        return None
    (count,), start = places.axes[0], places.value - index(0)
    inside = at_most(0, start)  # torch refuses a place after the last one, and counts a negative one from the end
    if start.variables & index(0).variables or not step.setting.discharge(Obligation((), TRUE, inside)):
        return None
    at, dims = single(step, dim), step.all_digits()
    element = read(fact, dims, step.equal)
    dims[dim] = ((count, at - start),)
    new = len(fact.axes) - len(source.axes)
    own = [() if size_of(source, d) is ONE else dims[d + new] for d in range(len(source.axes))]
    here = every(at_most(start, at), less(at, start + count))
    return parted(step, [(here, read(source, own, step.equal)), (opposite(here), element)])


def _written(step: Step) -> Iterable[int]:
    """Elements are written by their index along a dimension, and along those that are not written as a whole."""
    own = step.fact(0)
    others = [x for x in (*step.arguments(2), step.argument(3, "src")) if isinstance(x, Fact)]
    parts = {d for x in others for d in range(len(x.axes)) if not step.equal(size_of(x, d), size_of(own, d))}
    return parts | set(along(1, "dim")(step))


CREATION: dict[str, Operator] = {
    **operators(
        ("full", "full_like", "new_full", "scalar_tensor", "zeros", "zeros_like", "new_zeros", "ones", "ones_like",
         "new_ones"), full, READS,
    ),
    **operators(
        ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"), empty, READS
    ),
    "scatter": Operator(scatter, Permuted(by_index=_written)),
    **operators(
        ("scatter_add", "scatter_reduce"), reduced_at_indices,
        Permuted((0,), _written, rule=reduced_writes, is_in_any_order=_is_reduced_in_pairs),
    ),
    **operators(
        ("index_put", "_unsafe_index_put", "index_put_"), index_put,
        Permuted((0,), put_along, rule=put_of_moved, is_in_any_order=is_added),
    ),
    **operators(("linspace", "eye"), of_indices),
    **operators(("copy", "copy_"), copy, READS),
    "index_copy": Operator(index_copy), "arange": Operator(arange), "fill": Operator(fill, READS),
}  # fmt: skip
