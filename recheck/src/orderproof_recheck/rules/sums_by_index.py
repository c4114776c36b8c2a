"""Elements that are added, multiplied or compared at known indices along a dimension.

An element of the result agrees where the one that was there does, and each one that is added at its index.
"""

from __future__ import annotations

from orderproof_recheck.facts import Predicates
from orderproof_recheck.index_maps import read
from orderproof_recheck.logic.formulas import equal, every, opposite, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term
from orderproof_recheck.operator import Operator
from orderproof_recheck.rules.movement import single, size_of
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
    place = read(places, at if of_each else [row], step.equal).value
    require(isinstance(place, Term), "elements are added at indices that are not known")
    assert isinstance(place, Term)
    elsewhere = opposite(equal(place, single(step, dim)))
    base = read(fact, own, step.equal)
    added = read(source, at, step.equal)
    return [
        Derived(
            Predicates(
                same=every(base.same, some(added.same, elsewhere)),
                ordinary=every(base.ordinary, some(added.ordinary, elsewhere)),
            )
        )
    ]


SUMS_BY_INDEX: dict[str, Operator] = {"index_add": Operator(index_add, may_wrap=True)}
