"""The places of the last dimensions that an element of the result reads: a window of them, or all.

Element o reads the places o s - p + k d for each tap k of its window, with stride s, padding p and dilation d.
Outside of the operand it reads zeros. In a transposed convolution the two change places: o reads the places j with
o = j s - p + k d, of which floor((o + p) / s) is the last.

Machine-checked (proofs/rules/scan_lemma.v): convolution_reads_window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Formula,
    Term,
    as_term,
    at_most,
    conjunction,
    equal,
    floor_division,
    implication,
    less,
)
from orderproof.theorems.facts.moved_fact import Motion, MovedFact, still, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, axis_variable, dims_of, index, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation


@dataclass(frozen=True)
class Window:
    """The window of one dimension."""

    width: int | Term
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    def place(self, own: Term, tap: Term) -> Term:
        """The place that an element reads at one tap of its window."""
        return own * self.stride - self.padding + tap * self.dilation


def windows(width: Any, stride: Any, padding: Any, dilation: Any, places: int) -> list[Window]:
    """The windows of the last dimensions; each argument is a number, or one for each of them. Raises `NotCovered`.

    A width may be an open size.
    """
    each = []
    for value, known in ((width, int | Term), (stride, int), (padding, int), (dilation, int)):
        values = list(value) if isinstance(value, list | tuple) else [value]
        values = values * places if len(values) == 1 else values
        if len(values) != places or not all(isinstance(v, known) for v in values):
            raise NotCovered("the window of a convolution is not known")
        each.append(values)
    return [Window(*found) for found in zip(*each, strict=True)]


def windowed(
    call: OpenOperation, fact: OpenFact, taken: Sequence[Window], *, channels: bool, weight: OpenFact | None = None,
    transposed: bool = False,
) -> OpenFact:  # fmt: skip
    """Results that read a window of places of the last dimensions; with every channel before them, if `channels`.

    What a `weight` of zero at a tap is multiplied with does not count, if it is ordinary. If `transposed`, a place is
    read where its window has the result.
    """
    first = len(fact.dims) - len(taken)
    for dim in range(first, len(fact.dims)):
        fact = with_single_axis(fact, dim)
    shape = dims_of(call.shapes[0])
    out = [*fact.dims[:first], *shape[first:]]
    if channels:
        out[first - 1] = shape[first - 1]
    count = sum(map(len, out))
    bound = [fact.dims[first - 1] if channels else (), *[(as_term(w.width),) for w in taken]]
    if transposed:
        bound[1:1] = [(size_of(axes),) for axes in fact.dims[first:]]
    sizes = tuple(size for axes in (*out, *bound) for size in axes)
    terms: list[Term] = []
    inside: list[Formula] = []
    last: list[Term] = []
    place = 0
    for d, axes in enumerate(fact.dims):
        if d >= first:
            own, window = index(place) if out[d] else as_term(0), taken[d - first]
            tap = index(len(sizes) - len(taken) + d - first)
            at = index(len(sizes) - 2 * len(taken) + d - first) if transposed else window.place(own, tap)
            inside += [equal(window.place(at, tap), own)] if transposed else [at_most(0, at), less(at, size_of(axes))]
            last += [floor_division(own + window.padding, window.stride)] if transposed else []
            terms += [at] if axes else []
        else:
            start = count if channels and d == first - 1 else place
            terms += [index(start + k) for k in range(len(axes))]
        place += len(out[d])
    read = fact.at([*out, *bound], terms)
    ranges = fact.ranges()
    loose = ranges.hidden | ranges.unbounded
    if weight is not None and loose is FALSE:
        inside.append(~_zero_at_taps(weight, len(taken), len(sizes)))
    body = implication(conjunction(*inside), read.same)
    same = call.context.for_all(body, sizes, count)
    if transposed:
        latest = Substitution({axis_variable(len(sizes) - 2 * len(taken) + k): at for k, at in enumerate(last)})
        found = latest.formula(read.same)
        if found.variables.isdisjoint(axis_variable(k) for k in range(count, len(sizes))):
            same = same | found if call.context.proves(body, sizes, found) else same
    return OpenFact(tuple(out), call.dtype, same, unbounded=FALSE if loose is FALSE else TRUE)


def _zero_at_taps(weight: OpenFact, taps: int, end: int) -> Formula:
    """Where a weight [..., tap, ...] is zero, whatever the channels; its taps are the last indices before `end`."""
    for dim in range(len(weight.dims) - taps, len(weight.dims)):
        weight = with_single_axis(weight, dim)
    terms = [index(k) for k in range(len(weight.sizes))]
    first = weight.first_axis(len(weight.dims) - taps)
    zero = weight.ranges().zero
    if any(term.variables & zero.variables for term in terms[:first]):
        return FALSE
    places = [index(end - taps + d) for d, axes in enumerate(weight.dims[len(weight.dims) - taps :]) if axes]
    at_taps = weight.at((), [*terms[:first], *places])
    return at_taps.ranges().zero


def for_each_result(call: OpenOperation, fact: OpenFact) -> OpenFacts:
    """The fact for each of several results, the values and their places, which are indices."""
    if len(call.shapes) == 1:
        return fact
    return fact, OpenFact(fact.dims, call.node.meta["val"][1].dtype, fact.same)


def moved_rows(call: MovedOperation, fact: MovedFact, first: int) -> MovedFact:
    """A result whose dimensions from `first` on are computed from those of the operand by their index."""
    for dim in fact.dims[first:]:
        still(dim, "tokens are reached by their distance")
    return MovedFact((*fact.dims[:first], *uniform(call.shapes[0][first:], Motion.STILL).dims))
