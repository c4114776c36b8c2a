"""The windows of convolutions and pooling: the places of the last dimensions that an element of the result reads.

Element o reads the places o s - p + k d, for k from 0 to the width - 1, with stride s, padding p and dilation d. Outside
of the operand it reads zeros.

Machine-checked (proofs/rules/scan_lemma.v): convolution_reads_window.
"""

from __future__ import annotations

from typing import Any

from orderproof.logic.terms import TRUE, Term, as_term, at_most, conjunction, implication, less
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, dims_of, index, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.open_operation import OpenOperation


def windowed(
    call: OpenOperation, fact: OpenFact, width: list[int], stride: list[int], padding: list[int], dilation: list[int],
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


def per_place(value: Any, places: int) -> list[int]:
    values = [value] * places if isinstance(value, int) else list(value) if isinstance(value, list | tuple) else []
    values = values * places if len(values) == 1 else values
    if len(values) != places or not all(isinstance(v, int) for v in values):
        raise NotCovered("the window of a convolution is not known")
    return values
