"""Rules of operators whose result also depends on the element of its own index in a row.

The rules of `theorems/rules` for these operators list the elements of a whole row, among which is that of the own
index. Here it is read at its own index too, since the elements of a row may come in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orderproof_recheck.facts import Fact, Predicates, axis
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import Formula, every, less, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer
from orderproof_recheck.rules.lookup import LOOKUP
from orderproof_recheck.rules.movement import ONE, single, size_of
from orderproof_recheck.steps import Derived, Step


def _derived(*reads: Formula) -> Derived:
    return Derived(Predicates(same=every(*reads)))


def lookup(step: Step) -> list[Derived]:
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
    return LOOKUP[step.name](step)


def _any_if_equal(fact: Fact, dim: int, places: Any) -> Any:
    """Indices along a dimension, or, if all elements along it are the same, any."""
    first = sum(len(axes) for axes in fact.axes[:dim])
    own = {axis(first + k) for k in range(len(fact.axes[dim]))}
    matter = not isinstance(places, Fact) or not fact.variables.isdisjoint(own)
    return places if matter else Fact(places.axes, places.dtype, Predicates())


def softmax(step: Step) -> list[Derived]:
    """An element, and the sum of its row."""
    fact, own = step.fact(0), step.all_digits()
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    row = list(own)
    row[dim] = step.further(fact.axes[dim])
    return [_derived(read(fact, own, step.equal).same, read(fact, row, step.equal).same)]


def layer_norm(step: Step) -> list[Derived]:
    """An element, the statistics of its last dimensions, and weights of its place there."""
    fact, rank, own = step.fact(0), len(step.fact(0).axes), step.all_digits()
    normalized = step.argument(1, "normalized_shape")
    first = rank - len(normalized)
    sizes = [step.term(size) for size in normalized]
    require(
        all(step.equal(size_of(fact, first + k), n) for k, n in enumerate(sizes)), "other dimensions are normalized"
    )
    row = [*own[:first], *(step.further(fact.axes[d]) for d in range(first, rank))]
    statistics = read(fact, row, step.equal).same
    weights = [read(x, own[first:], step.equal).same for x in step.arguments(1) if isinstance(x, Fact)]
    whole = _derived(read(fact, own, step.equal).same, statistics, *weights)
    for shape in step.shapes[1:]:
        require(all(size is ONE for size in shape[first:]), "the statistics have another shape")
    return [whole, *(_derived(statistics) for _ in step.claims[1:])]


def group_norm(step: Step) -> list[Derived]:
    """An element, the statistics of its group of channels over all places, and weights of its channel."""
    fact, groups, own = step.fact(0), step.integer(step.argument(1, "num_groups")), step.all_digits()
    channels = size_of(fact, 1)
    require(groups > 0 and channels.is_integer and channels.constant % groups == 0, "the number of channels is open")
    width = channels.constant // groups
    inner = step.further((integer(width),))[0][1] if width > 1 else integer(0)
    channel = floor_of(single(step, 1), width) * width + inner
    row = [own[0], ((channels, channel),), *(step.further(axes) for axes in fact.axes[2:])]
    weights = [read(x, [own[1]], step.equal).same for x in step.arguments(2) if isinstance(x, Fact)]
    return [_derived(read(fact, own, step.equal).same, read(fact, row, step.equal).same, *weights)]


def attention(step: Step) -> list[Derived]:
    """For every column the score of the query and the key, and the value there."""
    query, key, value = (step.fact(k) for k in range(3))
    rank, mask = len(query.axes), step.argument(3, "attn_mask")
    require(step.argument(4, "dropout_p", 0.0) == 0.0, "attention with dropout")
    require(len(key.axes) == len(value.axes) == rank == len(step.shape) >= 2, "attention of different ranks")
    own = step.all_digits()
    outer, row = own[: rank - 2], own[rank - 2]
    for d in range(rank - 2):
        sizes = [size_of(fact, d) for fact in (query, key, value)]
        require(any(step.equal(size, step.shape[d]) for size in sizes), "its result has another shape")
    width, column = step.further(query.axes[rank - 1]), step.further(key.axes[rank - 2])
    repeats = bool(step.kwargs.get("enable_gqa"))
    places = [
        (query, [*_fitting(step, query, outer, repeats=False), row, width]),
        (key, [*_fitting(step, key, outer, repeats=repeats), column, width]),
        (value, [*_fitting(step, value, outer, repeats=repeats), column, own[rank - 1]]),
    ]
    if mask is not None:
        require(isinstance(mask, Fact) and len(mask.axes) <= rank, "expected a tensor as the mask")
        dims = [*outer, row, column][rank - len(mask.axes) :]
        places.append((mask, [() if size_of(mask, d) is ONE else digits for d, digits in enumerate(dims)]))
    reads = every(*(read(fact, dims, step.equal).same for fact, dims in places))
    if step.argument(5, "is_causal", False):
        reads = some(reads, less(_one_term(row), _one_term(column)))
    return [_derived(reads)]


def _fitting(step: Step, fact: Fact, outer: Sequence[Digits], *, repeats: bool) -> list[Digits]:
    """The outer dimensions of an operand: broadcast, or heads that several queries share."""
    dims: list[Digits] = []
    for d, digits in enumerate(outer):
        size, whole = size_of(fact, d), step.shape[d]
        if size is ONE:
            dims.append(())
        elif repeats and d == len(outer) - 1 and size is not whole:
            require(size.is_integer and whole.is_integer, "the number of heads is open")
            count, uneven = divmod(whole.constant, size.constant)
            require(not uneven, "the heads of keys do not divide those of queries")
            dims.append(((size, floor_of(single(step, d), count)),))
        else:
            dims.append(digits)
    return dims


def _one_term(digits: Digits) -> Term:
    require(len(digits) <= 1, "the rows of a causal attention are merged")
    return digits[0][1] if digits else integer(0)
