"""Slicewise operators: every slice of the result is one function of the same slice of the operands.

Lemma (dense_dependence). Let C[b, e] = h(A[b, :], B[b, :], ...) with h the same for every b. The dimensions e and ':'
are read by position: a Fourier transform, a write at given positions of a row, the two parts of a complex number.
  1. Operands moved in the same way along b give C moved along b.
  2. C[b, e] depends on what any element of A[b, :], B[b, :] depends on; of an operand that has the dimension e too,
     on its elements at e only.
  3. An operand moved along ':' or e: C is not determined. The transform of [1, 0] is [1, 1], that of [0, 1] is
     [1, -1]; 5 written at position 0 of [1, 2] gives [5, 2], of [2, 1] it gives [5, 1].
Proof. 1: C'[m(b), e] = h(A'[m(b), :], B'[m(b), :]) = h(A[b, :], B[b, :]) = C[b, e]. 2: h reads nothing else.
Arithmetic: any; nothing is rearranged.
Machine-checked (proofs/rules/slicewise_lemma.v): dense_dependence, transform_not_determined.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orderproof.diagnosis.domain.axis_labels import Labels, join, project
from orderproof.diagnosis.domain.fact import Fact, Shape, compress, with_ranges_widened
from orderproof.diagnosis.domain.move import STILL, is_permuted
from orderproof.diagnosis.operands import Operand, common_moves, dependence_under_moves, labelled_operand
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, has_large_literal, rule

LEMMA = "dense_dependence"


def dependence_on_slices(
    call: OperatorCall, operands: Sequence[Operand], output: Labels, shape: Shape, by_position: Collection[str]
) -> Fact:
    """The fact about a result that depends, at its labels, on all elements of the operands with those labels.

    `by_position`: the labels that are read by position.
    """
    for operand in operands:
        for label, move in zip(operand.labels, operand.fact.moves, strict=True):
            if label in by_position and is_permuted(move):
                raise RuleNotApplicable(f"{call.target} reads by position a dimension that moves")
    moves = {x: STILL if x in by_position else m for x, m in common_moves(call, operands).items()}
    dependences = []
    for o in operands:
        unmoved = tuple(STILL if x in by_position else m for x, m in zip(o.labels, o.fact.moves, strict=True))
        operand = Operand(Fact(o.fact.shape, unmoved, o.fact.dependence), o.labels, o.node, o.argument)
        dependences.append(project(dependence_under_moves(call, operand, moves), o.labels, output))
    result = Fact(shape, tuple(moves.get(x, STILL) for x in output), compress(join(dependences)))
    may_mask = has_large_literal(call.node) or any(call.may_mask(n) for n in call.node.all_input_nodes)
    return with_ranges_widened(result) if may_mask else result


def _whole_rows(call: OperatorCall, rank: int, dims: Collection[int], shape: Shape) -> Fact:
    """One operand whose rows along some dimensions are read whole; result positions differ from operand positions."""
    inner = [f"in {d}" if d in dims else str(d) for d in range(rank)]
    outer = tuple(f"out {d}" if d in dims else str(d) for d in range(rank))
    by_position = {*inner, *outer} - {str(d) for d in range(rank)}
    return dependence_on_slices(call, [labelled_operand(call, call.args[0], inner, 0)], outer, shape, by_position)


@rule(
    LEMMA, "_fft_r2c", "_fft_c2c", "_fft_c2r", "fft_fft", "fft_rfft", "fft_hfft", "fft_ihfft",
    "fft_fft2", "fft_ifft2", "fft_rfft2", "fft_irfft2", "fft_fftn", "fft_ifftn", "fft_rfftn", "fft_irfftn",
)  # fmt: skip
def fourier(call: OperatorCall) -> Fact:
    """A discrete Fourier transform: every frequency reads the whole row."""
    return transform_of_whole_rows(call)


def transform_of_whole_rows(call: OperatorCall) -> Fact:
    """The fact about a transform each of whose results reads the whole row."""
    rank = len(call.fact(call.args[0]).shape)
    names = [x.name for x in call.node.target._schema.arguments]  # type: ignore[union-attr]
    default = next(x.default_value for x in call.node.target._schema.arguments if x.name == "dim")  # type: ignore[union-attr]
    dims = call.argument(names.index("dim"), "dim", default)
    sizes = call.argument(names.index("s"), "s") if "s" in names else None
    if dims is None:
        dims = range(rank) if sizes is None else range(rank - len(sizes), rank)
    return _whole_rows(call, rank, {int(d) % rank for d in ([dims] if isinstance(dims, int) else dims)}, call.shape)


@rule(LEMMA, "grid_sampler", "grid_sampler_2d")
def grid_sampler(call: OperatorCall) -> Fact:
    """A map sampled at given coordinates: each sample reads the plane, and its own two coordinates."""
    operands = [
        labelled_operand(call, call.args[0], ["n", "c", "h", "w"], 0),
        labelled_operand(call, call.args[1], ["n", "y", "x", "coordinate"], 1),
    ]
    return dependence_on_slices(call, operands, ("n", "c", "y", "x"), call.shape, {"h", "w", "coordinate"})


@rule(LEMMA, "view_as_complex")
def view_as_complex(call: OperatorCall) -> Fact:
    """Two numbers read as one complex number."""
    labels = [str(d) for d in range(len(call.shape))]
    return dependence_on_slices(
        call, [labelled_operand(call, call.args[0], [*labels, "parts"], 0)], tuple(labels), call.shape, {"parts"}
    )


@rule(LEMMA, "view_as_real")
def view_as_real(call: OperatorCall) -> Fact:
    """A complex number as its two parts."""
    labels = [str(d) for d in range(len(call.shape) - 1)]
    return dependence_on_slices(
        call, [labelled_operand(call, call.args[0], labels, 0)], (*labels, "parts"), call.shape, {"parts"}
    )
