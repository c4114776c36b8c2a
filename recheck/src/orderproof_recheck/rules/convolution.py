"""Convolutions: an element reads a window of places of every channel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.index_maps import read
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, at_most, every, implies, less
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, floor_of, integer
from orderproof_recheck.operator import Operator, Permuted, operators
from orderproof_recheck.rules.movement import ONE, single, size_of
from orderproof_recheck.steps import Derived, Step


def convolution(step: Step) -> list[Derived]:
    """A convolution [row, channel, place, ...]: an element reads a window of places of every channel."""
    fact, weight = step.fact(0), step.fact(1, "weight")
    require(len(fact.axes) == len(weight.axes), "a convolution without rows")
    require(weight.same is TRUE and step.argument(6, "transposed", False) is not True, "a convolution of another kind")
    bias = step.argument(2, "bias")
    require(bias is None or (isinstance(bias, Fact) and bias.same is TRUE), "a bias that differs")
    places = len(weight.axes) - 2
    groups = step.integer(step.argument(8 if step.name == "convolution" else 6, "groups", 1))
    channels = size_of(weight, 1) * groups
    require(groups > 0 and step.equal(channels, size_of(fact, 1)), "a convolution of other channels")
    require(step.equal(size_of(weight, 0), step.shape[1]), "a convolution of other channels")
    require(all(x is None or x.dtype == fact.dtype for x in (weight, bias)), "a convolution of several dtypes")
    width = [size_of(weight, d + 2) for d in range(places)]
    options = [_each(step, step.argument(k, n, v), places) for k, n, v in
               ((3, "stride", 1), (4, "padding", 0), (5, "dilation", 1))]  # fmt: skip
    parameters = (weight,) if bias is None else (weight, bias)
    return _windowed(step, fact, width, *options, channels=True, parameters=parameters)


def _windowed(
    step: Step, fact: Fact, width: Sequence[Term], stride: list[int], padding: list[int], dilation: list[int],
    *, channels: bool, parameters: Sequence[Fact] = (),
) -> list[Derived]:  # fmt: skip
    first = len(fact.axes) - len(width)
    dims, inside = step.all_digits(), list[Formula]()
    if channels:
        dims[1] = step.further(fact.axes[1])
    for k, extent in enumerate(width):
        digits = step.further((extent,)) if extent is not ONE else ()
        offset = digits[0][1] if digits else integer(0)
        size = size_of(fact, first + k)
        at = single(step, first + k) * stride[k] - padding[k] + offset * dilation[k]
        last = size + 2 * padding[k] - (extent - 1) * dilation[k] - 1
        fits = step.equal(floor_of(last, stride[k]) + 1, step.shape[first + k])
        require(stride[k] > 0 and fits, "its result has another shape")
        dims[first + k] = ((size, at),)
        inside += [at_most(0, at), less(at, size)]
    element = read(fact, dims, step.equal)
    within = every(*inside)
    ordinary = TRUE if all(x.ordinary is TRUE for x in (fact, *parameters)) else FALSE
    return [Derived(Predicates(same=implies(within, element.same), ordinary=ordinary)) for _ in step.claims]


def _each(step: Step, value: object, places: int) -> list[int]:
    values = list(value) if isinstance(value, list) else [value]
    values = values * places if len(values) == 1 else values
    require(len(values) == places, "the window of a convolution is not known")
    return [step.integer(v) for v in values]


def _after_the_first(step: Step) -> Iterable[int]:
    return range(1, len(step.shape))


CONVOLUTION: dict[str, Operator] = operators(
    ("conv1d", "conv2d", "conv3d", "convolution"), convolution,
    Permuted(by_index=_after_the_first, others_are_whole=True),
)  # fmt: skip
