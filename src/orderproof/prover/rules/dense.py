"""Dense operators: every slice of the result is one function of the same slice of the operands.

Lemma (dense_dependence). Let C[b, e] = h(A[b, :], B[b, :], ...) with h the same for every b, and e, like the dimensions
written ':', read by place: a Fourier transform, a write at given places of a line, the two parts of a complex number.
  1. Operands moved alike along b give C moved along b.
  2. C[b, e] depends on what any element of A[b, :], B[b, :] depends on, of an operand that has the dimension e
     too on those at e only.
  3. An operand moved along ':' or e: nothing follows. The transform of [1, 0] is [1, 1], that of [0, 1] is
     [1, -1]; 5 written at place 0 of [1, 2] gives [5, 2], of [2, 1] it gives [5, 1].
Proof. 1: C'[m(b), e] = h(A'[m(b), :], B'[m(b), :]) = h(A[b, :], B[b, :]) = C[b, e]. 2: h reads nothing else.
Arithmetic: any; nothing is rearranged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from torch.fx import Node

from orderproof.prover.fact import (
    EXACT,
    FLOAT16_LARGE,
    LOW,
    Among,
    Fact,
    Known,
    Levels,
    Shape,
    compress,
    unsure,
    with_known,
)
from orderproof.prover.labelled import Labels, Operand, align, common_moves, highest, settle, with_values
from orderproof.prover.masking import not_high
from orderproof.prover.move import STILL, is_moved
from orderproof.prover.rule import Application, NothingFollows, dtype_of, has_large_number, rule, shape_of
from orderproof.prover.rules.pointwise import pointwise

LEMMA = "dense_dependence"


def depending(
    a: Application, operands: Sequence[Operand], output: Labels, shape: Shape, placed: Collection[str]
) -> Fact:
    """The fact about a result that depends, at its labels, on all of the operands there; `placed` is read by place."""
    for o in operands:
        for label, move in zip(o.labels, o.fact.moves, strict=True):
            if label in placed and is_moved(move):
                raise NothingFollows(f"{a.target} reads by place a dimension that moves")
    moves = {x: STILL if x in placed else m for x, m in common_moves(a, operands).items()}
    levels = []
    for o in operands:
        held = tuple(STILL if x in placed else m for x, m in zip(o.labels, o.fact.moves, strict=True))
        level = settle(a, Operand(Fact(o.fact.shape, held, o.fact.level), o.labels, o.node, o.argument), moves)
        levels.append(_kept(level, o.labels, output))
    made = Fact(shape, tuple(moves.get(x, STILL) for x in output), compress(highest(levels)))
    doubtful = has_large_number(a.node) or any(a.may_mask(n) for n in a.node.all_input_nodes)
    return unsure(made) if doubtful else made


def _kept(level: Levels, labels: Labels, output: Labels) -> Levels:
    gone = tuple(d for d, x in enumerate(labels) if x and x not in output)
    kept = tuple(x for d, x in enumerate(labels) if d not in gone)
    return align(level.max(axis=gone) if gone else level, kept, output)  # type: ignore[return-value]


def _operand(a: Application, node: Node, labels: Sequence[str], place: Any) -> Operand:
    fact = a.fact(node)
    return Operand(fact, tuple(x if s > 1 else "" for x, s in zip(labels, fact.shape, strict=True)), node, place)


def _every(a: Application, rank: int, dims: Collection[int], shape: Shape) -> Fact:
    """One operand, of which the lines along some dimensions are read whole, and the result's places told apart."""
    inner = [f"in {d}" if d in dims else str(d) for d in range(rank)]
    outer = tuple(f"out {d}" if d in dims else str(d) for d in range(rank))
    return depending(
        a, [_operand(a, a.args[0], inner, 0)], outer, shape, {*inner, *outer} - {str(d) for d in range(rank)}
    )


# ---------------------------------------------------------------- writes at places that are given


@rule(LEMMA, "scatter", "scatter_add", "scatter_reduce")
def scatter(a: Application) -> Fact:
    """C = A, and C[.., I[.., j], ..] = B[.., j, ..] (or a number) for every j of each line."""
    fact, index = a.fact(a.args[0]), a.args[2]
    rank, dim, source = len(fact.shape), int(a.args[1]), a.argument(3, "src")
    dim %= max(rank, 1)
    written = [index, *([source] if isinstance(source, Node) else [])]
    if any(shape_of(n)[d] != fact.shape[d] for n in written for d in range(rank) if d != dim):
        raise NothingFollows("a write at indices that do not cover every line has no lemma")
    labels = [str(d) for d in range(rank)]
    line = [x if d != dim else "line" for d, x in enumerate(labels)]
    operands = [_operand(a, a.args[0], labels, 0), _operand(a, index, line, 2)]
    if isinstance(source, Node):
        operands.append(_operand(a, source, [x if d != dim else "source" for d, x in enumerate(labels)], 3))
    made = depending(a, operands, tuple(labels), a.shape, {str(dim), "line", "source"})
    if a.target in ("aten.scatter.value", "aten.scatter.src"):
        made = _one_or_the_other(a, made, source)
    return _written(made, a.fact(index).among, dim, source) if a.target == "aten.scatter.value" else made


def _one_or_the_other(a: Application, made: Fact, source: Node | float) -> Fact:
    """Every element is one of the operands', as it was: it is low where none of them is high."""
    parts = [with_values(a, n).known for n in (a.args[0], source) if isinstance(n, Node)]
    high = not dtype_of(a.node).is_floating_point or (not isinstance(source, Node) and not source < FLOAT16_LARGE)
    for known in (k for k in parts if k is not None):
        high = high or not bool(not_high(known).all())
    if made.known is None or high:
        return made
    one = (1,) * len(made.shape)
    return Fact(made.shape, made.moves, made.level, Known(np.full(one, LOW, dtype=np.uint8), np.zeros(one)))


def _written(made: Fact, among: Among | None, dim: int, number: float) -> Fact:
    """A number is known where it is certain to be written (scan_dependence, case 4)."""
    if among is None or among.dim != dim or among.sure.shape[dim] != made.shape[dim]:  # places of longer lines, or not
        return made
    one = (1,) * len(made.shape)
    known = made.known or Known(np.zeros(one, dtype=np.uint8), np.zeros(one))
    status = np.where(among.sure, EXACT, known.status).astype(np.uint8)
    return with_known(made.shape, made.moves, made.level, Known(status, np.where(among.sure, number, known.value)))


@rule(LEMMA, "index_add", "index_copy", "index_fill")
def at_indices(a: Application) -> Fact:
    """C = A, and C[.., I[j], ..] written over, or added to, for every j."""
    fact, index, source = a.fact(a.args[0]), a.args[2], a.args[3]
    rank, dim = len(fact.shape), int(a.args[1])
    dim %= max(rank, 1)
    labels = [str(d) for d in range(rank)]
    operands = [_operand(a, a.args[0], labels, 0), _operand(a, index, ["line"] * len(shape_of(index)), 2)]
    if isinstance(source, Node):
        same = len(shape_of(source)) == rank
        if not same and shape_of(source):
            raise NothingFollows("a write of a tensor of another rank has no lemma")
        along = [x if d != dim else "source" for d, x in enumerate(labels)] if same else []
        operands.append(_operand(a, source, along, 3))
    return depending(a, operands, tuple(labels), a.shape, {str(dim), "line", "source"})


@rule(LEMMA, "index_put", "_index_put_impl", "_unsafe_index_put")
def index_put(a: Application) -> Fact:
    """C = A, and C[.., I[j], J[j], ..] = B[j, ..] for every j, at indices that may depend on the input."""
    fact, indices, values = a.fact(a.args[0]), list(a.args[1]), a.args[2]
    rank = len(fact.shape)
    labels = [str(d) for d in range(rank)]
    places = [d for d, i in enumerate(indices) if i is not None]
    if any(str(indices[d].meta["val"].dtype) in ("torch.bool", "torch.uint8") for d in places):
        return _masked_put(a, labels, indices, places, values)
    wide = max((len(shape_of(indices[d])) for d in places), default=0)
    first = places[0] if places and places == list(range(places[0], places[0] + len(places))) else 0
    rest = [x for d, x in enumerate(labels) if d not in places]
    line = [f"line {d}" for d in range(wide)]
    whole = [*rest[:first], *line, *rest[first:]]
    operands = [_operand(a, a.args[0], labels, 0)]
    operands += [_operand(a, indices[d], line[wide - len(shape_of(indices[d])) :], (1, d)) for d in places]
    operands.append(_operand(a, values, whole[len(whole) - len(shape_of(values)) :], 2))
    return depending(a, operands, tuple(labels), a.shape, {*line, *(str(d) for d in places)})


def _masked_put(a: Application, labels: list[str], indices: list[Any], places: list[int], values: Node) -> Fact:
    """A number written wherever a mask says so."""
    if len(places) != 1 or any(s != 1 for s in shape_of(values)):
        raise NothingFollows("a boolean index takes a number of elements that depends on the data")
    d, mask = places[0], indices[places[0]]
    operands = [_operand(a, a.args[0], labels, 0), _operand(a, mask, labels[d : d + len(shape_of(mask))], (1, d))]
    operands.append(_operand(a, values, [""] * len(shape_of(values)), 2))
    return depending(a, operands, tuple(labels), a.shape, ())


# ---------------------------------------------------------------- Fourier transforms and complex numbers


@rule(
    LEMMA, "_fft_r2c", "_fft_c2c", "_fft_c2r", "fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_hfft", "fft_ihfft",
    "fft_fft2", "fft_ifft2", "fft_rfft2", "fft_irfft2", "fft_fftn", "fft_ifftn", "fft_rfftn", "fft_irfftn",
)  # fmt: skip
def fourier(a: Application) -> Fact:
    """A discrete Fourier transform: every frequency reads the whole line."""
    rank = len(a.fact(a.args[0]).shape)
    names = [x.name for x in a.node.target._schema.arguments]  # type: ignore[union-attr]
    default = next(x.default_value for x in a.node.target._schema.arguments if x.name == "dim")  # type: ignore[union-attr]
    dims = a.argument(names.index("dim"), "dim", default)
    sizes = a.argument(names.index("s"), "s") if "s" in names else None
    if dims is None:
        dims = range(rank) if sizes is None else range(rank - len(sizes), rank)
    return _every(a, rank, {int(d) % rank for d in ([dims] if isinstance(dims, int) else dims)}, a.shape)


@rule(LEMMA, "grid_sampler", "grid_sampler_2d")
def grid_sampler(a: Application) -> Fact:
    """A map read at given places of its plane: each place reads the plane, and its own two numbers."""
    operands = [_operand(a, a.args[0], ["n", "c", "h", "w"], 0), _operand(a, a.args[1], ["n", "y", "x", "place"], 1)]
    return depending(a, operands, ("n", "c", "y", "x"), a.shape, {"h", "w", "place"})


@rule(LEMMA, "view_as_complex")
def view_as_complex(a: Application) -> Fact:
    """Two numbers read as one complex number."""
    labels = [str(d) for d in range(len(a.shape))]
    return depending(a, [_operand(a, a.args[0], [*labels, "parts"], 0)], tuple(labels), a.shape, {"parts"})


@rule(LEMMA, "view_as_real")
def view_as_real(a: Application) -> Fact:
    """A complex number as its two parts."""
    labels = [str(d) for d in range(len(a.shape) - 1)]
    return depending(a, [_operand(a, a.args[0], labels, 0)], (*labels, "parts"), a.shape, {"parts"})


# Elementwise as any other, but not called so by torch.
rule("pointwise_equivariant", "real", "imag", "conj", "_conj", "resolve_conj", "resolve_neg", "polar", "complex")(
    pointwise
)
