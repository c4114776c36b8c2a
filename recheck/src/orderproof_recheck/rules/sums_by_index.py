"""Elements that are written, added, multiplied or compared at indices.

An element of the result agrees where the one that was there does, and each one that comes to its index. Of an index
that is not known, that is each one, and the index has to agree; but what adds zero in both runs does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, at_most, equal, every, if_else, opposite, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term
from orderproof_recheck.operator import Operator
from orderproof_recheck.rules.movement import ONE, single, size_of
from orderproof_recheck.rules.numbers import is_ordinary
from orderproof_recheck.steps import Derived, Step


def index_add(step: Step) -> list[Derived]:
    """A tensor to which elements are added along one dimension."""
    of_each = step.name != "index_add"  # each element has an index of its own
    fact, places, source = step.fact(0), step.fact(2, "index"), step.fact(3, "src" if of_each else "source")
    dim, own = step.dim(step.argument(1, "dim"), len(fact.axes)), step.all_digits()
    rank = len(fact.axes)
    fits = len(places.axes) == (rank if of_each else 1) and len(source.axes) == rank
    require(fits, "elements of another shape are added")
    require(is_ordinary(step.kwargs.get("alpha", 1)), "elements are scaled by a number that is not ordinary")
    sizes = [size_of(fact, d) for d in range(len(own))]
    require(len(own) == len(sizes) and all(map(step.equal, sizes, step.shape)), "the result has another shape")
    others = [source, places] if of_each else [source]
    fits = all(step.equal(size_of(x, d), size) for x in others for d, size in enumerate(sizes) if d != dim)
    along = dim if of_each else 0
    require(fits and step.equal(size_of(source, dim), size_of(places, along)), "elements of another shape are added")
    row = step.further(max(source.axes[dim], places.axes[along], key=len))
    at = [row if d == dim else x for d, x in enumerate(own)]
    place = read(places, at if of_each else [row], step.equal)
    elsewhere = FALSE if not isinstance(place.value, Term) else opposite(equal(place.value, single(step, dim)))
    sums = step.name in ("index_add", "scatter_add")
    if step.name == "scatter_reduce":  # without what was there, a zero counts
        sums = step.argument(4, "reduce") == "sum" and step.argument(5, "include_self", True) is True
    return [_from_all(read(fact, own, step.equal), read(source, at, step.equal), place.same, elsewhere, sums=sums)]


def _from_all(base: Fact, added: Fact, placed: Formula, elsewhere: Formula, *, sums: bool) -> Derived:
    """An element to which another one comes, unless that one is known to come elsewhere."""
    agrees = some(every(placed, added.same), elsewhere, added.zero if sums else FALSE)
    ordinary = every(base.ordinary, some(added.ordinary, elsewhere))
    return Derived(Predicates(same=every(base.same, agrees), ordinary=ordinary))


def _put(step: Step) -> tuple[Fact, Fact, dict[int, Fact]]:
    """The element that was there, one that comes to it, and the indices of this one. Raises `CertificateError`."""
    fact, given, values = step.fact(0), step.argument(1, "indices"), step.fact(2, "values")
    chosen: dict[int, Fact] = {d: x for d, x in enumerate(given) if x is not None}
    require(bool(chosen) and all(x.dtype != "bool" for x in chosen.values()), "expected indices")
    dims, rank = sorted(chosen), max(len(x.axes) for x in chosen.values())
    start = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0
    kept = [d for d in range(len(fact.axes)) if d not in chosen]
    new: list[Digits] = []
    for k in range(rank):
        sizes = [x.axes[k - rank] for x in chosen.values() if len(x.axes) >= rank - k]
        new.append(step.further(next((axes for axes in sizes if axes), ())))
    own = step.all_digits()
    before = [own[d] for d in kept if d < start]
    places = [*before, *new, *(own[d] for d in kept[len(before) :])]
    require(len(values.axes) <= len(places), "the values have another number of dimensions")
    added = read(values, _broadcast(values, places), step.equal)
    indices = {d: read(x, _broadcast(x, new), step.equal) for d, x in chosen.items()}
    return read(fact, own, step.equal), added, indices


def put_at_indices(step: Step) -> Derived:
    """A tensor to which elements come at indices for some dimensions. Raises `CertificateError`."""
    base, added, indices = _put(step)
    placed, elsewhere = TRUE, FALSE
    for d, one in indices.items():
        size = size_of(step.fact(0), d)
        placed = every(placed, one.same)
        if isinstance(one.value, Term):
            value = if_else(at_most(0, one.value), one.value, one.value + size)
            elsewhere = some(elsewhere, opposite(equal(value, single(step, d))))
    return _from_all(base, added, placed, elsewhere, sums=is_added(step))


def is_added(step: Step) -> bool:
    """True if elements are added at indices, and none is overwritten."""
    return step.argument(3, "accumulate", False) is True


def put_of_moved(step: Step) -> list[Derived]:
    """Elements that come to indices, together with these."""
    base, added, indices = _put(step)
    return [Derived(Predicates(every(base.same, added.same, *(one.same for one in indices.values()))))]


def put_along(step: Step) -> list[int]:
    """The dimensions for which indices are given."""
    return [d for d, x in enumerate(step.argument(1, "indices")) if x is not None]


def _broadcast(fact: Fact, places: Sequence[Digits]) -> list[Digits]:
    """The index of an element that is broadcast to these places."""
    own = places[len(places) - len(fact.axes) :]
    return [() if size_of(fact, d) is ONE else digits for d, digits in enumerate(own)]


SUMS_BY_INDEX: dict[str, Operator] = {"index_add": Operator(index_add, may_wrap=True)}
