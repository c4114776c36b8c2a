"""Operators that choose elements by integers: the element at the value of the index, or, if that is unknown, at any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orderproof_recheck.facts import Fact, Predicates, axis
from orderproof_recheck.facts import known as known_fact
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.largest_scores import not_chosen
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, at_most, equal, every, if_else, opposite, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term
from orderproof_recheck.operator import Operator, Permuted, operators
from orderproof_recheck.rules.movement import ONE, size_of
from orderproof_recheck.rules.softmax import has_largest
from orderproof_recheck.setting import Obligation
from orderproof_recheck.steps import Derived, Step


def chosen_element(
    step: Step, fact: Fact, dims: Sequence[Digits], indices: Mapping[int, Fact], *, from_start: bool,
    never: Callable[[Digits], Formula] = lambda _: FALSE, of_a_run: Mapping[int, Term | None] | None = None,
) -> Derived:  # fmt: skip
    """The element at these indices, where some are chosen by the elements of other tensors.

    An index that is not known is none at which `never` is true, and has the value of a run, if there is one.
    """
    places = list(dims)
    known, elsewhere = True, FALSE
    for dim, element in indices.items():
        size = size_of(fact, dim)
        if size is ONE:
            places[dim] = ()
        elif isinstance(element.value, Term):
            places[dim] = ((size, _from_start(step, element.value, size, from_start=from_start)),)
        else:
            known = False
            places[dim] = step.further(fact.axes[dim])
            elsewhere = some(elsewhere, never(places[dim]))
            run = (of_a_run or {}).get(dim)
            if run is not None and len(places[dim]) == 1:
                value = _from_start(step, run, size, from_start=from_start)
                elsewhere = some(elsewhere, opposite(equal(value, places[dim][0][1])))
    found = read(fact, places, step.equal)
    same = every(some(found.same, elsewhere), *(element.same for element in indices.values()))
    if known and all(element.value is not None for element in indices.values()):
        return Derived.of_element(found)
    predicates = replace(found.predicates, same=same)
    return Derived(predicates if known else Predicates(same, found.zero, ordinary=found.ordinary))


def _from_start(step: Step, value: Term, size: Term, *, from_start: bool) -> Term:
    """An index counted from the start."""
    if from_start or _is_positive(step, value):
        return value
    return if_else(at_most(0, value), value, value + size)


def value_of_a_run(step: Step, places: Fact, digits: Sequence[Digits]) -> Term | None:
    """The value of an index in one run, if something is known of a function in it."""
    value = places.of_a_run
    if places.value is not None or not isinstance(value, Term) or value.functions.isdisjoint(step.setting.places):
        return None
    found = read(known_fact(places.axes, places.dtype, value), digits, step.equal).value
    return found if isinstance(found, Term) else None


def _is_positive(step: Step, value: Term) -> bool:
    sizes = step.sizes(0)
    return step.setting.discharge(Obligation(sizes, TRUE, at_most(0, value)))


def embedding(step: Step) -> list[Derived]:
    """Rows of a table."""
    table, places = step.fact(0), step.fact(1, "indices")
    require(len(table.axes) == 2 and len(step.shape) == len(places.axes) + 1, "a table of another rank")
    rank = len(places.axes)
    own = [step.digits(d) for d in range(rank)]
    element, runs = read(places, own, step.equal), {0: value_of_a_run(step, places, own)}
    return [chosen_element(step, table, [(), step.digits(rank)], {0: element}, from_start=True, of_a_run=runs)]


def index(step: Step) -> list[Derived]:
    """Elements at indices for some dimensions, which are broadcast to each other."""
    fact, given = step.fact(0), step.argument(1, "indices")
    chosen = {d: x for d, x in enumerate(given) if x is not None}
    require(chosen and all(isinstance(x, Fact) and x.dtype != "bool" for x in chosen.values()), "expected indices")
    dims = sorted(chosen)
    rank = max(len(x.axes) for x in chosen.values())
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    start = dims[0] if adjacent else 0
    require(len(step.shape) == len(fact.axes) - len(chosen) + rank, "the result has another number of dimensions")
    kept = [d for d in range(len(fact.axes)) if d not in chosen]
    before = [d for d in kept if d < start]
    places: list[Digits] = [()] * len(fact.axes)
    for d in kept:
        places[d] = step.digits(before.index(d) if d in before else kept.index(d) + rank)
    elements, runs = {}, {}
    for d, x in chosen.items():
        own = range(rank - len(x.axes), rank)
        digits = [() if size_of(x, k) is ONE else step.digits(start + j) for k, j in enumerate(own)]
        elements[d], runs[d] = read(x, digits, step.equal), value_of_a_run(step, x, digits)
    return [chosen_element(step, fact, places, elements, from_start=False, of_a_run=runs)]


def index_select(step: Step) -> list[Derived]:
    """Elements at the indices of a vector along a dimension."""
    fact, places = step.fact(0), step.fact(2, "index")
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    dims = step.all_digits()
    own = [() if size_of(places, d) is ONE else dims[dim] for d in range(len(places.axes))]
    element, run = read(places, own, step.equal), value_of_a_run(step, places, own)
    dims[dim] = ()
    return [chosen_element(step, fact, dims, {dim: element}, from_start=False, of_a_run={dim: run})]


def gather(step: Step) -> list[Derived]:
    """Elements along a dimension, at an index for each element of the result."""
    fact, places = step.fact(0), step.fact(2, "index")
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    own = step.all_digits()
    dims: list[Digits] = []
    for d in range(len(fact.axes)):
        shorter = d != dim and not step.equal(size_of(fact, d), step.shape[d])
        if shorter:  # the first elements of a longer dimension
            step.need(at_most(step.shape[d], size_of(fact, d)), "gather reads beyond its tensor")
            (place,) = own[d] or ((ONE, ONE - 1),)
            dims.append(((size_of(fact, d), place[1]),))
        else:
            dims.append(own[d])
    element = read(places, own, step.equal)

    def never(at: Digits) -> Formula:
        return not_chosen(step, places, at, lambda one: has_largest(step, one))

    runs = {dim: value_of_a_run(step, places, own)}
    return [chosen_element(step, fact, dims, {dim: element}, from_start=True, never=never, of_a_run=runs)]


def lookup_of_moved(step: Step) -> list[Derived]:
    """Elements chosen by integers, which do not matter along a dimension whose elements are all the same."""
    fact = step.fact(0)
    rank = len(fact.axes)
    if step.name in ("index", "_unsafe_index"):
        chosen = [_any_if_equal(fact, d, x) for d, x in enumerate(step.argument(1, "indices"))]
        step.args = [step.args[0], chosen]
    elif step.name == "embedding":
        step.args = [step.args[0], _any_if_equal(fact, 0, step.args[1]), *step.args[2:]]
    else:
        dim = step.dim(step.argument(1, "dim"), rank)
        step.args = [*step.args[:2], _any_if_equal(fact, dim, step.args[2]), *step.args[3:]]
    return LOOKUP[step.name].rule(step)


def _any_if_equal(fact: Fact, dim: int, places: Any) -> Any:
    """Indices along a dimension, or, if all elements along it are the same, any."""
    first = sum(len(axes) for axes in fact.axes[:dim])
    own = {axis(first + k) for k in range(len(fact.axes[dim]))}
    matter = not isinstance(places, Fact) or not fact.variables.isdisjoint(own)
    return places if matter else Fact(places.axes, places.dtype, Predicates())


_OF_MOVED = Permuted(rule=lookup_of_moved)
LOOKUP: dict[str, Operator] = {
    "embedding": Operator(embedding, _OF_MOVED), "index_select": Operator(index_select, _OF_MOVED),
    **operators(("index", "_unsafe_index"), index, _OF_MOVED),
    **operators(("gather", "take_along_dim"), gather, _OF_MOVED),
}  # fmt: skip
