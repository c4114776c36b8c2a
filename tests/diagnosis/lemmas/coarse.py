"""Why a rule makes no statement although one is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orderproof.diagnosis.value_transfer import MULTIPLY, OPERATORS_WITH_ABSORBING_VALUES
from tests.diagnosis.lemmas.trial_conditions import (
    ATTENTION,
    EXTREMES,
    LINES,
    PRODUCT,
    SCATTERS,
    SOFTMAX,
    TRANSFORMS,
    at_the_border,
    beyond_the_ordinary,
    channels_by_themselves,
    channels_move,
    constant_zeros,
    decides_in_vain,
    equal_coefficients,
    frequencies_without_a_part,
    known_and_moved,
    known_there,
    lemma,
    level_line,
    masks_alone,
    may_be_no_number,
    one_visible,
    packet,
    places_known,
    places_reordered,
    source_longer,
    values_known,
    zero_times_masked,
)
from tests.diagnosis.sampling.claims import Claim
from tests.diagnosis.sampling.operands import Array
from tests.diagnosis.sampling.trials import Trial

KINDS = ("ordinary", "whole", "known", "cut")  # of a trial: see Trial.kind


@dataclass(frozen=True)
class Coarse:
    """Why something true is not said, and where: in trials of these kinds and operators, at the elements of `where`."""

    reason: str
    kinds: tuple[str, ...]
    operators: tuple[str, ...] = ()  # all of them
    where: Callable[[Trial, Claim], Array | bool] = lambda tried, claim: True

    def covers(self, tried: Trial, claim: Claim) -> Array | bool:
        """The elements of a claim that this reason excuses."""
        named = not self.operators or tried.sample.operator in self.operators
        return self.where(tried, claim) if named and tried.kind() in self.kinds else False


MATRIX_FUNCTIONS = (
    "linalg_qr", "_linalg_svd", "_linalg_eigh", "linalg_cholesky_ex", "linalg_inv_ex", "linalg_matrix_exp",
    "cholesky_solve", "_linalg_det", "_linalg_slogdet", "linalg_lu_factor_ex", "_linalg_solve_ex",
)  # fmt: skip
SWALLOWED = Coarse(  # the one that is read off the runs
    "over the reals: what an infinite or huge number swallows by rounding is kept as a dependence",
    ("known",),
    where=lambda tried, claim: claim.large,
)


# What is true of the runs and not said, and why.
COARSE = [
    # Limits that were chosen: at any operator.
    SWALLOWED,
    Coarse(
        "an extreme, an order, an any or an all is not derived from some known entries",
        ("known",),
        where=lambda tried, claim: packet(tried) in EXTREMES and (claim.result or not masks_alone(tried)),
    ),
    Coarse(
        "a normalisation, a convolution and a write take nothing from known values",
        ("known",),
        where=lambda tried, claim: decides_in_vain(tried),
    ),
    Coarse(
        "a triangular system takes nothing from known values",
        ("known",),
        ("linalg_solve_triangular",),
        lambda tried, claim: values_known(tried),
    ),
    Coarse(
        "rows of a triangular system with the same coefficient throughout may cancel",
        ("cut",),
        ("linalg_solve_triangular",),
        lambda tried, claim: equal_coefficients(tried),
    ),
    Coarse(
        "the sizes of bags are functions of all indices, and what a bag leaves out is looked up",
        ("whole", "known", "cut"),
        ("_embedding_bag", "_embedding_bag_forward_only"),
    ),
    Coarse(
        "a matrix is read whole, also where only its triangle, its singular values or a part of it enters a result",
        KINDS,
        MATRIX_FUNCTIONS,
    ),
    Coarse(
        "a row of boundaries is read whole, also where only a part of it enters a result",
        ("whole", "known", "cut"),
        ("bucketize.Scalar", "bucketize.Tensor", "searchsorted.Tensor"),
    ),
    Coarse(
        "only some elementwise operators are decided by one known operand; no other is known to be flat at a value",
        ("whole", "known", "cut"),
        where=lambda tried, claim: (
            lemma(tried) == "pointwise_equivariant"
            and packet(tried) not in OPERATORS_WITH_ABSORBING_VALUES
            and known_there(tried, claim)
        ),
    ),
    Coarse(
        "an operand moves as it is said to move, also where its known values would let it be still",
        ("known",),
        where=known_and_moved,
    ),
    Coarse(
        "the zeros of a constant are used where it is a mask to multiply with, not where it is a table or a weight",
        ("known",),
        where=lambda tried, claim: constant_zeros(tried) and (packet(tried) in MULTIPLY or lemma(tried) == PRODUCT),
    ),
    Coarse(
        "a line that may hold infinity or no number keeps all its dependences, and so does a sum over one",
        ("known",),
        where=lambda tried, claim: lemma(tried) in {PRODUCT, SOFTMAX, ATTENTION} and may_be_no_number(tried),
    ),
    Coarse(
        "a softmax with one visible entry is 1 there, and with none it is 0 or no number: the line is as any other",
        ("known", "cut"),
        where=lambda tried, claim: lemma(tried) in {SOFTMAX, ATTENTION} and one_visible(tried, claim),
    ),
    Coarse(
        "a line that is the same throughout is a line like any other, though its softmax is 1/n and its deviation 0",
        KINDS,
        where=lambda tried, claim: lemma(tried) in LINES and level_line(tried),
    ),
    Coarse(
        "an operator without a lemma depends everywhere on all that it reads",
        ("known", "cut"),
        where=lambda tried, claim: lemma(tried) == "pure_function_of_unmoved",
    ),
    # Lemmas that could still be found: at some operators.
    Coarse("an ordinary number is finite", ("whole", "known", "cut"), ("isfinite", "isinf", "isnan", "isneginf")),
    Coarse(
        "alpha=0 makes the other operand irrelevant",
        ("ordinary", "known", "cut"),
        ("add.Tensor",),
        lambda tried, claim: tried.sample.kwargs.get("alpha") == 0,
    ),
    Coarse(
        "a literal zero makes a product zero",
        ("ordinary", "known", "cut"),
        ("mul.Tensor",),
        lambda tried, claim: 0.0 in tried.sample.args,
    ),
    Coarse(
        "zero times a number that is masked, but finite, is zero",
        ("known",),
        ("mul.Tensor",),
        zero_times_masked,
    ),
    Coarse(
        "the integers 0 and -1 decide as False and True do",
        ("whole", "known", "cut"),
        ("bitwise_and.Tensor", "bitwise_or.Tensor", "logical_and"),
        lambda tried, claim: tried.sample.operands()[0].kind == "int",
    ),
    Coarse(
        "two branches that are known to be equal need no condition",
        ("known", "cut"),
        ("where.ScalarOther", "masked_fill.Scalar"),
        lambda tried, claim: values_known(tried),
    ),
    Coarse(
        "an index repeated in one operand",
        ("ordinary",),
        ("einsum",),
        lambda tried, claim: "ii" in tried.sample.args[0],
    ),
    Coarse("a roll of the flattened tensor", ("ordinary",), ("roll",)),
    Coarse("bits regrouped into elements of another width", ("whole",), ("view.dtype",)),
    Coarse(
        "several results of an elementwise operator",
        ("ordinary", "whole", "known"),
        ("log_sigmoid_forward", "frexp.Tensor"),
    ),
    Coarse("the functional form, as group_norm", ("ordinary", "known"), ("native_group_norm",)),
    Coarse("each group by itself, and groups of one channel, which may move", ("ordinary", "cut"), ("group_norm",)),
    Coarse("stored statistics that a call changes", ("ordinary", "known"), ("batch_norm",)),
    Coarse("the moments depend on no weight", ("ordinary", "cut"), ("native_layer_norm", "_fused_rms_norm")),
    Coarse(
        "the values, where only their places depend on the order",
        ("whole",),
        ("max.dim", "sort", "sort.stable", "topk", "kthvalue"),
    ),
    Coarse("the first place of a running extreme is its own", ("whole", "cut"), ("cummin", "cummax")),
    Coarse("a write over everything leaves nothing of what was there", ("ordinary", "known"), ("slice_scatter",)),
    Coarse(
        "over the reals: what a clamp makes of every ordinary number depends on what is none",
        ("ordinary", "cut"),
        ("clamp", "clamp_max", "hardtanh"),
        lambda tried, claim: beyond_the_ordinary(tried),
    ),
    Coarse(
        "each channel of a transposed convolution by itself, and each group",
        ("cut",),
        ("conv1d", "convolution"),
        lambda tried, claim: channels_by_themselves(tried),
    ),
    Coarse(
        "a window at the border reads not all of the weights",
        ("ordinary", "cut"),
        ("conv1d", "conv1d.padding", "convolution"),
        at_the_border,
    ),
    Coarse(
        "the channels of a convolution are summed as those of a product, and may move",
        ("ordinary",),
        ("conv1d", "conv1d.padding", "conv2d", "convolution"),
        channels_move,
    ),
    Coarse(
        "a coefficient of a transform may be zero, and the transform of what is the same throughout mostly is",
        ("ordinary", "whole", "cut"),
        TRANSFORMS,
        frequencies_without_a_part,
    ),
    Coarse(
        "an entry of a resampled map depends on those near it, and is taken to depend on all",
        ("ordinary", "known", "cut"),
        ("upsample_bilinear2d", "upsample_bilinear2d.vec", "upsample_bicubic2d", "grid_sampler", "grid_sampler_2d"),
    ),
    Coarse(
        "a write at known places is as a write at any place",
        ("whole", "known", "cut"),
        SCATTERS,
        lambda tried, claim: places_known(tried),
    ),
    Coarse(
        "the same written at several places forgets their order",
        ("whole", "known"),
        ("scatter.value", "scatter.value_reduce", "scatter_add", "scatter_reduce.two", "index_add", "index_put"),
        places_reordered,
    ),
    Coarse(
        "what is written is read only as far as places are given for it",
        ("cut",),
        ("scatter.src",),
        lambda tried, claim: source_longer(tried),
    ),
    Coarse(
        "constant indices of several dimensions, place by place; an index that moves, into a table that is constant",
        ("whole", "known", "cut"),
        ("index.Tensor", "_unsafe_index.Tensor", "gather", "embedding"),
    ),
]


def excused(tried: Trial, claim: Claim, *but: Coarse) -> Array:
    """The elements of a claim that some reason covers (but these)."""
    found = np.zeros_like(claim.open)
    for reason in COARSE:
        if reason not in but:
            found = found | reason.covers(tried, claim)
    return found
