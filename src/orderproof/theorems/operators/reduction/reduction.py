"""Operators that compute a number from all elements along some dimensions, or from all elements before one.

The result agrees in both runs where all elements that it reads do. A sum also agrees where those that differ are zero
in both runs.

Machine-checked (proofs/symbolic/steps.v): reduction_step, sum_step, whole_count_step.
Machine-checked (proofs/rules/scan_lemma.v): cumulative_sum_reads_prefix.
Machine-checked (proofs/rules/maximum_lemma.v): maximum_of_visible.
Not machine-checked: values by cases; that a sum over the tokens that begin a document is its number, by definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import FALSE, TRUE, Formula, Term, apply, as_term, equal, less
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.integer_values import as_boolean, as_integer
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, axis_variable, index
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.operators.softmax.softmax import MaskedRows
from orderproof.theorems.statement import BATCH, TOKENS
from orderproof.theorems.walks.open_operation import Application, open_rule

FOURIER = (
    "fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_fft2", "fft_ifft2", "fft_fftn", "fft_ifftn", "fft_rfftn",
    "fft_irfftn",
)  # fmt: skip
_SUMS = {"sum", "mean", "linalg_vector_norm", "norm"}


def reduced_dims(call: Application, value: Any) -> list[int]:
    """The dimensions of an argument that is None, a number or a list."""
    rank = len(call.operand.dims)
    if value is None or value == []:
        return list(range(rank))
    return [int(d) % rank for d in ([value] if isinstance(value, int) else value)] if rank else []


@open_rule(
    "sum", "mean", "prod", "amax", "amin", "all", "any", "var", "std", "logsumexp", "linalg_vector_norm", "norm",
    "var_mean", "_is_all_true", "count_nonzero",
)  # fmt: skip
def reduce(call: Application) -> OpenFact | tuple[OpenFact, ...]:
    """A number for each row along some dimensions."""
    by_name = {"linalg_vector_norm": 2, "norm": 2}.get(call.name, 1)
    given = call.argument(by_name, "dim")
    if isinstance(given, bool):
        given = None
    dims = reduced_dims(call, given)
    keep = len(call.shapes[0]) == len(call.operand.dims)
    if call.name == "logsumexp" and len(dims) == 1 and _may_hide(call.operand):
        return _largest(call, dims[0], keep=keep)[0]
    result = reduction(call, call.operand, dims, keep=keep, zeros_vanish=call.name in _SUMS)
    if call.name in ("sum", "all", "_is_all_true") and len(dims) == len(call.operand.dims):
        result = _counted(call, result)
    return (result,) * len(call.shapes) if len(call.shapes) > 1 else result


@open_rule("max", "min", "argmax", "argmin", "median", "mode")
def extreme(call: Application) -> OpenFact | tuple[OpenFact, ...]:
    """The largest or smallest element, and where it is; of two tensors, the larger or smaller element."""
    from orderproof.theorems.operators.pointwise.pointwise import pointwise

    second = call.argument(1, "dim")
    if isinstance(second, torch.fx.Node) or "other" in call.node.kwargs:
        return pointwise(call)
    dims = reduced_dims(call, second)
    keep = len(call.shapes[0]) == len(call.operand.dims) and bool(call.operand.dims)
    if call.name == "max" and len(dims) == 1 and _may_hide(call.operand):
        return _largest(call, dims[0], keep=keep)
    fact = reduction(call, call.operand, dims, keep=keep, zeros_vanish=False)
    if call.name in ("argmax", "argmin"):
        return replace(fact, unbounded=FALSE)
    return (fact, OpenFact(fact.dims, torch.int64, fact.same)) if len(call.shapes) == 2 else fact


def _may_hide(fact: OpenFact) -> bool:
    ranges = fact.ranges()
    return ranges.hidden is not FALSE or ranges.low is not FALSE


def _largest(call: Application, dim: int, *, keep: bool) -> tuple[OpenFact, OpenFact]:
    """The largest element of each row, and where it is: hidden elements do not count next to a visible one."""
    rows = MaskedRows.of(call.context, call.operand, dim)
    dims = (*rows.kept[:dim], (), *rows.kept[dim:]) if keep else rows.kept
    unbounded = ~(rows.bounded & rows.visible)
    low = FALSE if unbounded is FALSE else rows.at_most_ordinary
    largest = OpenFact(dims, call.dtype, rows.agrees, unbounded=unbounded, low=low)
    return largest, OpenFact(dims, torch.int64, rows.agrees)


def reduction(call: Application, fact: OpenFact, dims: Sequence[int], *, keep: bool, zeros_vanish: bool) -> OpenFact:
    """The fact about numbers that are computed from all elements along some dimensions."""
    rank = len(fact.dims)
    kept = [d for d in range(rank) if d not in dims]
    common = frame([(fact, range(rank))], kept)
    placed = common.place(fact, range(rank))
    ranges = placed.ranges()
    first_bound = sum(len(common.axes[d]) for d in kept)
    sizes = placed.sizes
    same = placed.same | ranges.zero if zeros_vanish and call.name != "mean" else placed.same
    same = call.context.for_all(same, sizes, first_bound)
    loose = ranges.hidden | ranges.unbounded
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, sizes, first_bound)
    zero = FALSE
    if zeros_vanish and ranges.zero is not FALSE:
        zero = call.context.for_all(ranges.zero, sizes, first_bound)
    out = tuple(common.axes[d] if d in kept else () for d in range(rank) if keep or d in kept)
    return OpenFact(out, call.dtype, same, None, FALSE, zero, unbounded)


def _counted(call: Application, result: OpenFact) -> OpenFact:
    """A sum of booleans over a whole tensor, which the call may compare with the number of its elements."""
    fact = call.operand
    if not isinstance(fact.value, Formula | Term) or result.same is not TRUE or call.context.loops:
        return result
    if call.name == "sum" and isinstance(fact.value, Term):
        return result
    count = call.context.count(call.node.name, as_boolean(fact.value), fact.sizes)
    return replace(result, value=apply(call.node.name) if call.name == "sum" else count.all_true)


@open_rule("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
def scan(call: Application) -> OpenFact | tuple[OpenFact, ...]:
    """For each index, a number computed from the elements up to it."""
    dim = call.dim(1)
    fact = with_single_axis(call.operand, dim)
    if not fact.dims[dim]:
        return replace(fact, dtype=call.dtype)  # of one element, that element
    same = fact.same | (fact.ranges().zero if call.name == "cumsum" else FALSE)
    sizes = (*fact.sizes, *fact.dims[dim])
    axis, bound = fact.first_axis(dim), len(fact.sizes)
    body = Substitution({axis_variable(axis): index(bound)}).formula(same) | less(index(axis), index(bound))
    agrees = call.context.for_all(body, sizes, bound)
    ranges = fact.ranges()
    loose = ranges.hidden | ranges.unbounded
    result = OpenFact(fact.dims, call.dtype, agrees, unbounded=FALSE if loose is FALSE else TRUE)
    if call.name == "cumprod":  # of ordinary numbers, as many as there are tokens
        result = replace(result, unbounded=TRUE)
    value = fact.value
    if call.name == "cumsum" and isinstance(value, Term) and value.is_constant:
        result = replace(result, value=(index(axis) + 1) * value.constant)
    if call.name == "cumsum" and isinstance(value, Formula):
        if value is TRUE:
            result = replace(result, value=index(axis) + 1)
        elif call.context.proves(~value, fact.sizes):  # as of positions that go on from each token to the next
            result = replace(result, value=as_term(0))
    if call.name == "cumsum" and (total := _known_total(call, fact, dim)) is not None:
        result = replace(result, value=total)
    return (result, replace(result, dtype=torch.int64)) if len(call.shapes) == 2 else result


def _known_total(call: Application, fact: OpenFact, dim: int) -> Term | None:
    """The sum up to each index as a function of the statement, if it counts what is summed."""
    if not isinstance(fact.value, Formula | Term) or fact.dims[dim] != (TOKENS,) or fact.sizes.count(BATCH) != 1:
        return None
    row, token = index(fact.sizes.index(BATCH)), index(fact.first_axis(dim))
    for known in call.context.prefix_sums:
        counted = as_integer(known.counted(row, token))
        if call.context.proves(equal(as_integer(fact.value), counted), fact.sizes):
            return known.total(row, token)
    return None


@open_rule("kthvalue")
def order_statistic(call: Application) -> tuple[OpenFact, OpenFact]:
    """The element of each row that has a rank, and where it is."""
    keep = len(call.shapes[0]) == len(call.operand.dims) and bool(call.operand.dims)
    fact = reduction(call, call.operand, reduced_dims(call, call.argument(2, "dim", -1)), keep=keep, zeros_vanish=False)
    return fact, OpenFact(fact.dims, torch.int64, fact.same)


@open_rule("sort", "topk", "argsort")
def order(call: Application) -> OpenFact | tuple[OpenFact, ...]:
    """Elements along a dimension by size: each result is computed from all of them."""
    position, default = {"sort": (1, -1), "argsort": (1, -1)}.get(call.name, (2, -1))
    dim = call.dim(position, default=default)
    return from_whole_rows(call, call.operand, [dim])


@open_rule(*FOURIER)
def fourier(call: Application) -> OpenFact | tuple[OpenFact, ...]:
    """Fourier transforms: each result is computed from all elements along the transformed dimensions."""
    rank = len(call.operand.dims)
    given = call.argument(2, "dim", [-2, -1] if call.name.endswith("2") else None if call.name.endswith("n") else -1)
    if given is None:
        raise NotCovered("a Fourier transform of dimensions that are not named")
    dims = given if isinstance(given, list | tuple) else [given]
    return from_whole_rows(call, call.operand, [int(d) % rank for d in dims])


def from_whole_rows(call: Application, fact: OpenFact, dims: Sequence[int]) -> OpenFact | tuple[OpenFact, ...]:
    """Results each of which is computed from all elements along some dimensions, which may get another size."""
    fact = reduction(call, fact, dims, keep=True, zeros_vanish=False)
    results = []
    for shape in call.shapes:
        if len(shape) != len(fact.dims):
            raise NotCovered("the result has another number of dimensions")
        own = [
            axes if d not in dims else ((size,) if not _is_one(size) else ())
            for d, (axes, size) in enumerate(zip(fact.dims, shape, strict=True))
        ]
        terms, place = [], 0
        for d, axes in enumerate(fact.dims):
            terms += [index(place + k) for k in range(len(axes))]
            place += len(own[d])
        results.append(fact.at(own, terms))
    if len(results) == 1:
        return results[0]
    values = call.node.meta["val"]
    return tuple(replace(r, dtype=v.dtype) for r, v in zip(results, values, strict=True))


def _is_one(size: Term) -> bool:
    return size.is_constant and size.constant == 1
