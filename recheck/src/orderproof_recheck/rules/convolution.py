"""Convolutions: an element reads a window of places of every channel of its group.

A transposed one reads the places of every channel whose window has the element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, at_most, equal, every, implies, less, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer
from orderproof_recheck.operator import Operator, Permuted, operators
from orderproof_recheck.rules.movement import ONE, single, size_of
from orderproof_recheck.steps import Derived, Step


def convolution(step: Step) -> list[Derived]:
    """A convolution [row, channel, place, ...]. With a group for each channel, an element reads its own channel."""
    if step.name.startswith("conv_transpose") or step.argument(6, "transposed", False) is True:
        return _transposed(step)
    fact, weight = step.fact(0), step.fact(1, "weight")
    places = len(weight.axes) - 2
    own = len(fact.axes) - places - 1  # the dimension of the channels
    require(own in (0, 1) and len(step.shape) == len(fact.axes), "a convolution of an input of another rank")
    require(weight.same is TRUE, "weights that differ")
    bias = step.argument(2, "bias")
    require(bias is None or (isinstance(bias, Fact) and bias.same is TRUE), "a bias that differs")
    groups = step.term(step.argument(8 if step.name == "convolution" else 6, "groups", 1))
    apart = size_of(weight, 1) is ONE and all(step.equal(groups, n) for n in (size_of(fact, own), step.shape[own]))
    fits = apart or (groups.is_integer and step.equal(size_of(weight, 1) * groups.constant, size_of(fact, own)))
    require(fits and step.equal(size_of(weight, 0), step.shape[own]), "a convolution of other channels")
    require(all(x is None or x.dtype == fact.dtype for x in (weight, bias)), "a convolution of several dtypes")
    width = [size_of(weight, d + 2) for d in range(places)]
    stride, dilation = (each(step, step.argument(k, n, 1), places) for k, n in ((3, "stride"), (5, "dilation")))
    padding = step.argument(4, "padding", 0)
    if padding == "same":
        require(all(extent.is_integer for extent in width), "the window of a convolution is not known")
        gaps = [(extent.constant - 1) * gap for extent, gap in zip(width, dilation, strict=True)]
        require(not any(gap % 2 for gap in gaps), "padding that differs on both sides")
        padding = [gap // 2 for gap in gaps]
    paddings = each(step, 0 if padding == "valid" else padding, places)
    parameters = (weight,) if bias is None else (weight, bias)
    return windowed(step, fact, width, stride, paddings, dilation, channels=not apart, parameters=parameters)


def _transposed(step: Step) -> list[Derived]:
    fact, others = step.fact(0), [x for x in step.arguments(1) if isinstance(x, Fact)]
    require(all(x.same is TRUE and x.ordinary is TRUE for x in others), "a parameter of it differs")
    weight = step.fact(1, "weight")
    places = len(weight.axes) - 2
    require(len(fact.axes) == len(weight.axes) == len(step.shape), "a convolution without rows")
    stride, padding, dilation = (
        each(step, step.argument(k, n, default), places)
        for k, n, default in (
            (3, "stride", 1), (4, "padding", 0), (5 if step.name == "convolution" else 7, "dilation", 1),
        )
    )  # fmt: skip
    dims, windows = step.all_digits(), list[Formula]()
    dims[1] = step.further(fact.axes[1])
    for k in range(places):
        size = size_of(fact, k + 2)
        at, tap = (_further(step, extent) for extent in (size, size_of(weight, k + 2)))
        windows.append(equal(at * stride[k] - padding[k] + tap * dilation[k], single(step, k + 2)))
        dims[k + 2] = ((size, at),)
    same = implies(every(*windows), read(fact, dims, step.equal).same)
    return [Derived(Predicates(same=same, ordinary=TRUE if fact.ordinary is TRUE else FALSE))]


def _further(step: Step, size: Term) -> Term:
    """An index of a further axis."""
    return integer(0) if size is ONE else step.further((size,))[0][1]


def of_all_places(step: Step, dims: Iterable[int]) -> Predicates:
    """An element that may read every element along some dimensions."""
    fact, places = step.fact(0), step.all_digits()
    require(len(places) == len(fact.axes), "the result has another number of dimensions")
    for d in dims:
        places[d] = step.further(fact.axes[d])
    element = read(fact, places, step.equal)
    return Predicates(same=element.same, ordinary=TRUE if element.ordinary is TRUE else FALSE)


def windowed(
    step: Step, fact: Fact, width: Sequence[Term], stride: list[int], padding: list[int], dilation: list[int],
    *, channels: bool, parameters: Sequence[Fact] = (), rounds_up: bool = False,
) -> list[Derived]:  # fmt: skip
    """An element that reads a window of places of the last dimensions, and each channel before them if `channels`.

    If the number of windows `rounds_up`, the last one may end after the last place.
    """
    first = len(fact.axes) - len(width)
    dims, inside = step.all_digits(), list[Formula]()
    if channels:
        dims[first - 1] = step.further(fact.axes[first - 1])
    taps: list[Digits] = []
    for k, extent in enumerate(width):
        digits = step.further((extent,)) if extent is not ONE else ()
        offset = digits[0][1] if digits else integer(0)
        taps.append(digits)
        size = size_of(fact, first + k)
        at = single(step, first + k) * stride[k] - padding[k] + offset * dilation[k]
        last = size + 2 * padding[k] - (extent - 1) * dilation[k] - 1
        require(stride[k] > 0, "windows go backwards")
        counts = [floor_of(last + more, stride[k]) + 1 for more in ([0, stride[k] - 1] if rounds_up else [0])]
        fits = any(step.equal(count, step.shape[first + k]) for count in counts)
        require(fits, "its result has another shape")
        dims[first + k] = ((size, at),)
        inside += [at_most(0, at), less(at, size)]
    element = read(fact, dims, step.equal)
    within = every(*inside)
    idle = every(_zero_at(step, parameters[0], taps), element.ordinary) if parameters else FALSE
    ordinary = TRUE if all(x.ordinary is TRUE for x in (fact, *parameters)) else FALSE
    return [Derived(Predicates(same=some(implies(within, element.same), idle), ordinary=ordinary)) for _ in step.claims]


def _zero_at(step: Step, weight: Fact, taps: Sequence[Digits]) -> Formula:
    """Where a weight [..., tap, ...] is zero at all channels: those of the element are among them."""
    if weight.zero is FALSE:
        return FALSE
    channels = [step.further(axes) for axes in weight.axes[:2]]
    return read(weight, [*channels, *taps], step.equal).zero


def each(step: Step, value: object, places: int) -> list[int]:
    """An argument that is a number, or one for each dimension of a window."""
    values = list(value) if isinstance(value, list) else [value]
    values = values * places if len(values) == 1 else values
    require(len(values) == places, "the window of a convolution is not known")
    return [step.integer(v) for v in values]


def _after_the_rows(step: Step) -> Iterable[int]:
    return range(len(step.fact(0).axes) - len(step.fact(1, "weight").axes) + 1, len(step.shape))


CONVOLUTION: dict[str, Operator] = operators(
    ("conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    convolution, Permuted(by_index=_after_the_rows, others_are_whole=True),
)  # fmt: skip
