"""Facts about parameters, buffers and constants of an open graph.

All are the same in both runs. A constant whose elements follow a pattern has a known value at every index: one number,
the lower triangle of a mask, a count 0, 1, 2, ..., or one of two floats in a small tensor, as in the mask of a
convolution; other integers are an arbitrary function of their indices.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Formula,
    Term,
    as_term,
    at_most,
    conditional,
    conjunction,
    disjunction,
    equal,
    negation,
)
from orderproof.number_limits import largest_ordinary
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.facts.numbers import INTEGERS, with_function
from orderproof.theorems.facts.open_fact import Cases, OpenFact, Value, dims_of, index, merged_cases

MOST_PLACES = 64  # of a tensor of two numbers
FEW = 8  # integers of which each is known


def constant_fact(graph: OpenGraph, node: Node) -> OpenFact:
    """The fact about a placeholder that is no input."""
    tensor: Tensor = node.meta["val"]
    name = graph.state[node.name]
    fact = OpenFact(dims_of(graph.shape(node)), tensor.dtype)
    if name in graph.parameters:
        return fact
    if name not in graph.values:
        return OpenFact(fact.dims, fact.dtype, unbounded=TRUE)
    return _with_value(fact, graph.values[name], node.name)


def same_values(first: Tensor, second: Tensor) -> Tensor:
    """True for elements that are equal. 0 and -0 are not: their reciprocals differ."""
    if first.is_complex():
        parts = [torch.view_as_real(x.resolve_conj().resolve_neg()) for x in (first, second)]
        return same_values(*parts).all(-1)
    if first.is_floating_point() and first.dtype.itemsize == 1:  # of which torch reads no signs
        first, second = first.float(), second.float()
    return (first == second) & (first.signbit() == second.signbit())


def _with_value(fact: OpenFact, tensor: Tensor, name: str) -> OpenFact:
    value = _pattern(tensor)
    if value is not None:
        return OpenFact(fact.dims, fact.dtype, value=value)
    if fact.dtype is torch.bool:
        return with_function(fact, name)
    integers = fact.dtype in INTEGERS
    has_sizes = tensor.is_complex() or (tensor.is_floating_point() and tensor.dtype.itemsize > 1)  # `abs` of torch
    ordinary = bool(((tensor if has_sizes else tensor.double()).abs() < largest_ordinary()).all())
    if integers and ordinary:
        return with_function(fact, name)
    return OpenFact(fact.dims, fact.dtype, unbounded=FALSE if ordinary else TRUE)


def _pattern(tensor: Tensor) -> Value | None:
    """The value of a constant as a function of its indices, if it is one of a few."""
    if tensor.numel() == 0 or tensor.is_complex():
        return None
    first = tensor.flatten()[0]
    if tensor.numel() == 1 or bool(same_values(tensor, first).all()):
        return _choice([(TRUE, first)], tensor.dtype)
    long = [d for d in range(tensor.ndim) if tensor.shape[d] > 1]
    flat = tensor.squeeze()
    if len(long) == 1 and tensor.dtype in INTEGERS:
        steps = flat.long().diff()  # those of uint8 are not negative
        step, last = int(flat[1]) - int(first), int(flat[-1])
        if bool((steps == steps[0]).all()) and step * (len(flat) - 1) == last - int(first):  # it does not wrap around
            return index(0) * step + int(first)
        if len(flat) <= FEW and bool((flat.long().abs() < largest_ordinary()).all()):
            return _each_of(flat.tolist())
    band = _band(flat, tensor.dtype) if len(long) == 2 else None
    return band if band is not None or not tensor.is_floating_point() else _of_two(flat, tensor.dtype)


def _each_of(numbers: list[int]) -> Term:
    """A few numbers, each at its place."""
    found = as_term(numbers[-1])
    for place, number in reversed(list(enumerate(numbers[:-1]))):
        found = conditional(equal(index(0), place), as_term(number), found)
    return found


def _of_two(tensor: Tensor, dtype: torch.dtype) -> Value | None:
    """The value of a tensor of two numbers that are at few places, whatever the indices along which all is the same."""
    dims = [d for d in range(tensor.ndim) if not bool(same_values(tensor, tensor.narrow(d, 0, 1)).all())]
    part = tensor[tuple(slice(None) if d in dims else slice(1) for d in range(tensor.ndim))]
    first = part.flatten()[0]
    others = ~same_values(part, first)
    if part.numel() > MOST_PLACES or not bool(same_values(part[others], part[others][0]).all()):
        return None
    places = [conjunction(*(equal(index(d), place[d]) for d in dims)) for place in others.nonzero().tolist()]
    second = disjunction(*places)
    return _choice([(second, part[others][0]), (negation(second), first)], dtype)


def _band(matrix: Tensor, dtype: torch.dtype) -> Value | None:
    """The value of a matrix of two numbers, one of them on a band of diagonals: a causal mask, a window."""
    rows, columns = matrix.shape
    if not bool(same_values(matrix[1:, 1:], matrix[:-1, :-1]).all()):
        return None
    diagonals = torch.cat([matrix[:, 0].flip(0), matrix[0, 1:]])  # by column - row, from 1 - rows on
    first = diagonals[0]
    others = (~same_values(diagonals, first)).nonzero().flatten()
    start, end = int(others[0]), int(others[-1])
    second = diagonals[start]
    if not bool(same_values(diagonals[start : end + 1], second).all()):
        return None
    offset = index(1) - index(0)
    inside = TRUE if start == 0 else at_most(start + 1 - rows, offset)
    inside = inside if end == rows + columns - 2 else inside & at_most(offset, end + 1 - rows)
    return _choice([(inside, second), (negation(inside), first)], dtype)


def _choice(pairs: list[tuple[Formula, Tensor]], dtype: torch.dtype) -> Value | None:
    if dtype is torch.bool:
        if len(pairs) == 1:
            return TRUE if bool(pairs[0][1]) else FALSE
        return pairs[0][0] if bool(pairs[0][1]) else pairs[1][0]
    if dtype in INTEGERS:
        term = as_term(int(pairs[-1][1]))
        return term if len(pairs) == 1 else conditional(pairs[0][0], as_term(int(pairs[0][1])), term)
    found: Cases | None = merged_cases([(condition, float(number)) for condition, number in pairs])
    return found
