"""Convolutions: each element of the result reads a window of places, at all channels of its group.

Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, convolution_reads_window.
Not machine-checked: the windows of transposed and grouped convolutions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Term, as_term, at_most, conjunction, implication, less
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, dims_of, index, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.open_operation import Application, open_rule
from orderproof.theorems.walks.operation import number


@open_rule("conv1d", "conv2d", "conv3d", "convolution")
def convolution(call: Application) -> OpenFact:
    """A convolution with zeros around its input [batch, channel, place, ...]."""
    fact, weight = call.operand, call.fact(call.argument(1, "weight"))
    places = len(weight.dims) - 2
    if len(fact.dims) != len(weight.dims):
        raise NotCovered("a convolution of an input without rows")
    if weight.same is not TRUE or call.argument(6, "transposed", False) is True:
        raise NotCovered("a convolution whose weights depend on tokens, or a transposed one")
    bias = call.argument(2, "bias")
    if isinstance(bias, Node) and call.fact(bias).same is not TRUE:
        raise NotCovered("a convolution whose bias depends on tokens")
    stride, padding, dilation = (
        _per_place(call.argument(k, name, default), places)
        for k, name, default in ((3, "stride", 1), (4, "padding", 0), (5, "dilation", 1))
    )
    found = windowed(call, fact, _sizes(weight, places), stride, padding, dilation, channels=True)
    parameters = [weight.ranges(), *([call.fact(bias).ranges()] if isinstance(bias, Node) else [])]
    large = any(r.hidden is not FALSE or r.unbounded is not FALSE for r in parameters)
    return replace(found, unbounded=TRUE) if large else found


def windowed(
    call: Application, fact: OpenFact, width: list[int], stride: list[int], padding: list[int], dilation: list[int],
    *, channels: bool,
) -> OpenFact:  # fmt: skip
    """Results that read a window of places of the last dimensions; of every channel (dimension 1) if `channels`."""
    places = len(width)
    first = len(fact.dims) - places
    for dim in range(first, len(fact.dims)):
        fact = with_single_axis(fact, dim)
    ranges = fact.ranges()
    out = [*fact.dims[:first], *dims_of(call.shape[first:])]
    if channels:
        out[1] = dims_of(call.shape[1:2])[0]
    count = sum(len(axes) for axes in out)
    bound = [*([fact.dims[1]] if channels and fact.dims[1] else []), *[(as_term(w),) for w in width]]
    sizes = (*(size for axes in out for size in axes), *(size for axes in bound for size in axes))
    window = len(sizes) - places
    terms: list[Term] = []
    inside = []
    place = 0
    for d, axes in enumerate(fact.dims):
        if d >= first:
            k = d - first
            own = index(place) if out[d] else as_term(0)
            at = own * stride[k] - padding[k] + index(window + k) * dilation[k]
            inside += [at_most(0, at), less(at, size_of(axes))]
            terms += [at] if axes else []
        elif d == 1 and channels:
            terms += [index(count + k) for k in range(len(axes))]
        else:
            terms += [index(place + k) for k in range(len(axes))]
        place += len(out[d])
    read = fact.at([*out, *bound], terms)
    within = conjunction(*inside)
    same = call.context.for_all(implication(within, read.same), sizes, count)
    loose = ranges.hidden | ranges.unbounded
    return OpenFact(tuple(out), call.dtype, same, unbounded=loose if loose.variables == frozenset() else TRUE)


@open_rule("avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool3d")
def pool(call: Application) -> OpenFact:
    """The mean or the largest element of a window."""
    places = int(call.name[-2])
    width = _per_place(call.argument(1, "kernel_size"), places)
    stride = _per_place(call.argument(2, "stride", None) or width, places)
    padding = _per_place(call.argument(3, "padding", 0), places)
    dilation = _per_place(call.argument(4, "dilation", 1) if "max" in call.name else 1, places)
    found = windowed(call, call.operand, width, stride, padding, dilation, channels=False)
    # Torch bounds the padding by half of a window without gaps: one with gaps may read padding only, which is -inf.
    padding_only = any(p > 0 and d > 1 for p, d in zip(padding, dilation, strict=True))
    return replace(found, unbounded=TRUE) if padding_only else found


def _per_place(value: Any, places: int) -> list[int]:
    values = [value] * places if isinstance(value, int) else list(value) if isinstance(value, list | tuple) else []
    values = values * places if len(values) == 1 else values
    if len(values) != places or not all(isinstance(v, int) for v in values):
        raise NotCovered("the window of a convolution is not known")
    return values


def _sizes(weight: OpenFact, places: int) -> list[int]:
    sizes = [number(size_of(axes)) for axes in weight.dims[len(weight.dims) - places :]]
    if any(s is None or not s.is_constant for s in sizes):
        raise NotCovered("the window of a convolution is not known")
    return [s.constant for s in sizes if s is not None]
