"""Normalizations: an element reads the whole row from which its mean and its spread are computed.

Where tokens move, the element is also read at its own index, since the elements of its row may come in another order.
"""

from __future__ import annotations

from collections.abc import Iterable

from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.index_maps import read
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, every
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import floor_of, integer
from orderproof_recheck.operator import Operator, Permuted, operators
from orderproof_recheck.rules.movement import ONE, single, size_of
from orderproof_recheck.rules.rows import whole_rows
from orderproof_recheck.steps import Derived, Step


def layer_norm(step: Step) -> list[Derived]:
    """Normalization over the last dimensions."""
    fact, rank = step.fact(0), len(step.fact(0).axes)
    count = len(step.argument(1, "normalized_shape"))
    others = [x for x in step.arguments(1) if isinstance(x, Fact)]
    return whole_rows(step, fact, list(range(rank - count, rank)), others=others)


def layer_norm_of_moved(step: Step) -> list[Derived]:
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
    whole = _same(read(fact, own, step.equal).same, statistics, *weights)
    for shape in step.shapes[1:]:
        require(all(size is ONE for size in shape[first:]), "the statistics have another shape")
    return [whole, *(_same(statistics) for _ in step.claims[1:])]


def group_norm(step: Step) -> list[Derived]:
    """Normalization over groups of channels and all places: an element reads every place of a channel of its group."""
    fact, groups = step.fact(0), step.integer(step.argument(1, "num_groups"))
    others = [x for x in step.arguments(1) if isinstance(x, Fact)]
    channels = size_of(fact, 1)
    require(groups > 0 and channels.is_integer and channels.constant % groups == 0, "the number of channels is open")
    width = channels.constant // groups
    (_, inner), *_ = step.further((integer(width),)) if width > 1 else ((ONE, integer(0)),)
    channel = floor_of(single(step, 1), width) * width + inner
    places = [step.digits(0), ((channels, channel),), *(step.further(axes) for axes in fact.axes[2:])]
    for other in others:
        require(other.same is TRUE and other.hidden is FALSE and other.ordinary is TRUE, "a parameter of it differs")
    element = read(fact, places, step.equal)
    read(fact, step.all_digits(), step.equal)  # checks the shape
    return [Derived(Predicates(same=element.same, ordinary=element.ordinary))]


def group_norm_of_moved(step: Step) -> list[Derived]:
    """An element, the statistics of its group of channels over all places, and weights of its channel."""
    fact, groups, own = step.fact(0), step.integer(step.argument(1, "num_groups")), step.all_digits()
    channels = size_of(fact, 1)
    require(groups > 0 and channels.is_integer and channels.constant % groups == 0, "the number of channels is open")
    width = channels.constant // groups
    inner = step.further((integer(width),))[0][1] if width > 1 else integer(0)
    channel = floor_of(single(step, 1), width) * width + inner
    row = [own[0], ((channels, channel),), *(step.further(axes) for axes in fact.axes[2:])]
    weights = [read(x, [own[1]], step.equal).same for x in step.arguments(2) if isinstance(x, Fact)]
    return [_same(read(fact, own, step.equal).same, read(fact, row, step.equal).same, *weights)]


def batch_norm(step: Step) -> list[Derived]:
    """Normalization with stored statistics, or with those of all elements of a channel."""
    others = [other for other in step.arguments(1) if isinstance(other, Fact)]
    if step.name == "batch_norm" and step.argument(5, "training", False):
        stored = step.argument(3, "running_mean") is not None or step.argument(4, "running_var") is not None
        require(not stored, "batch norm writes its statistics")
        return whole_rows(step, step.fact(0), [d for d in range(len(step.shape)) if d != 1], others=others)
    require(all(other.same is TRUE for other in others), "a parameter of it differs")
    element = read(step.fact(0), step.all_digits(), step.equal)
    rest = [Derived(Predicates()) for _ in step.claims[1:]]
    ordinary = element.ordinary if all(other.ordinary is TRUE for other in others) else FALSE
    return [Derived(Predicates(same=element.same, ordinary=ordinary)), *rest]


def _same(*reads: Formula) -> Derived:
    return Derived(Predicates(same=every(*reads)))


def _channels(step: Step) -> Iterable[int]:
    return (1,) if len(step.shape) > 1 else (0,)


NORMALIZATION: dict[str, Operator] = {
    **operators(
        ("layer_norm", "native_layer_norm", "rms_norm"), layer_norm, Permuted((0, 1, 2), rule=layer_norm_of_moved)
    ),
    **operators(
        ("batch_norm", "_native_batch_norm_legit_no_training"), batch_norm,
        Permuted(by_index=_channels, others_are_whole=True),
    ),
    "group_norm": Operator(group_norm, Permuted((0,), rule=group_norm_of_moved)),
}  # fmt: skip
