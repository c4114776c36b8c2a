"""The lemma that covers each operator, and the form of its derivation. A new operator is added here.

Operators are named without the namespace and outer underscores, with the overload where forms differ between overloads;
matmul has "m" for an operand of two or more dimensions and "v" for a vector. An operator that is not listed is a
movement if PyTorch marks it as a view, and elementwise if PyTorch marks it as pointwise; otherwise it has no form.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from orderproof.recheck.binding import BoundCall
from orderproof.recheck.forms.addition import AddedProduct
from orderproof.recheck.forms.attention import Attention
from orderproof.recheck.forms.batch_norm import BatchNorm
from orderproof.recheck.forms.einsum import ALL, ALONG, OUTSIDE, READ, WRITTEN, Einsum, Equation
from orderproof.recheck.forms.elementwise import Elementwise, Select
from orderproof.recheck.forms.embedding_bag import EmbeddingBag
from orderproof.recheck.forms.form import Form
from orderproof.recheck.forms.index import INDEX_COPY, SCATTER, Index, IndexCopy, ScatterWrite
from orderproof.recheck.forms.matrix import Buckets, MatrixFunction
from orderproof.recheck.forms.movement import Movement
from orderproof.recheck.forms.softmax import MaskedMaximum, Softmax
from orderproof.recheck.forms.triangular import TriangularSolve
from orderproof.recheck.forms.window import Convolution, Pool
from orderproof.recheck.spectra import InverseTransform


@dataclass(frozen=True)
class OperatorCheck:
    """The check of an operator."""

    lemma: str
    form: Form


MOVEMENT, POINTWISE = "movement_equivariant", "pointwise_equivariant"
CONTRACTION, SOFTMAX, ATTENTION = "contraction_equivariant", "softmax_equivariant", "attention_equivariant"
NORMALISATION, CHANNELWISE = "normalisation_equivariant", "channelwise_equivariant"
REDUCTION, MAXIMUM, LOOKUP = "reduction_invariant", "extreme_of_visible", "lookup_equivariant"
SCAN, DENSE, TRIANGULAR = "scan_dependence", "dense_dependence", "triangular_solve_dependence"
TRANSFORM = "convolution_theorem"

OPERATORS: dict[str, OperatorCheck] = {}


def _add(lemma: str, form: Form, *operators: str) -> None:
    """Add operators to the table. Raises `ValueError` if one has an entry already."""
    for name in operators:
        if name in OPERATORS:
            raise ValueError(f"operator {name} has two entries")
        OPERATORS[name] = OperatorCheck(lemma, form)


_add(
    MOVEMENT, Movement(),
    "cat", "concat", "concatenate", "constant_pad_nd", "copy", "flip", "pad", "repeat", "repeat_interleave", "roll",
    "select_scatter", "slice_scatter", "stack", "tile", "unsafe_chunk", "unsafe_split", "unsafe_view",
)  # fmt: skip
_add(MOVEMENT, Elementwise("exact"), "view.dtype")  # a view that reads the bits as other numbers

_add(
    POINTWISE, Elementwise("monotone"),
    "add", "alias", "alpha_dropout", "clamp.default", "clamp_max.default", "clamp_min.default", "clone", "contiguous",
    "detach", "dropout", "elu", "exp", "exp2", "expm1", "feature_dropout", "hardtanh", "lift_fresh_copy", "max.other",
    "maximum", "mul", "multiply", "neg", "positive", "relu", "rsub", "sigmoid", "softplus", "sub", "to_copy",
)  # fmt: skip
_add(POINTWISE, Elementwise("monotone", first_only=True), "to", "type_as")
_add(POINTWISE, Elementwise("quotient"), "div", "true_divide")
_add(
    POINTWISE, Elementwise("boolean"),
    "and", "bitwise_and", "bitwise_or", "logical_and", "logical_not", "logical_or", "or",
)  # fmt: skip
_add(
    POINTWISE, Elementwise("exact"),
    "complex", "conj", "imag", "log_sigmoid", "polar", "prelu_kernel", "real", "resolve_conj", "resolve_neg", "xor",
)  # fmt: skip
_add(POINTWISE, Select("condition", "self", "other"), "where")
_add(POINTWISE, Select("mask", "value", "self"), "masked_fill")
_add(POINTWISE, Movement(), "tril", "triu")

_add(CONTRACTION, Einsum((ALL + "xy", ALL + "yz"), ALL + "xz", factors=2), "mm", "bmm", "matmul.mm")
_add(CONTRACTION, Einsum((ALL + "xy", "y"), ALL + "x", factors=2), "mv", "matmul.mv")
_add(CONTRACTION, Einsum(("y", ALL + "yz"), ALL + "z", factors=2), "matmul.vm")
_add(CONTRACTION, Einsum(("y", "y"), "", factors=2), "dot", "matmul.vv")
_add(CONTRACTION, Einsum((ALL + "y", "zy", "z"), ALL + "z", factors=2), "linear")
_add(CONTRACTION, AddedProduct(), "addmm", "baddbmm")
_add(CONTRACTION, Equation(), "einsum")

_add(SOFTMAX, Softmax(), "softmax")
_add(SOFTMAX, Softmax(safe=True), "safe_softmax")
_add(SOFTMAX, Softmax(logarithm=True), "log_softmax")
_add(ATTENTION, Attention(), "scaled_dot_product_attention")

_add(
    NORMALISATION, Einsum((ALL, WRITTEN, ALONG), ALL, first_operand_twice=True),
    "fused_rms_norm", "layer_norm", "native_layer_norm", "rms_norm",
)  # fmt: skip
_add(
    NORMALISATION,
    Einsum((ALL, WRITTEN, "1"), ALL, by_position="1", first_operand_twice=True, default_dims="all but the first"),
    "group_norm",
)
_add(CHANNELWISE, BatchNorm(), "batch_norm", "native_batch_norm_legit_no_training")

_add(REDUCTION, Einsum((ALL,), OUTSIDE, factors=1), "mean", "nansum", "sum")
_add(
    REDUCTION, Einsum((ALL,), OUTSIDE),
    "all", "amin", "any", "count_nonzero", "linalg_vector_norm", "max.default", "min.default", "norm", "prod", "std",
    "var",
)  # fmt: skip
_add(REDUCTION, Einsum((ALL,), OUTSIDE, by_position=ALONG), "argmax", "argmin")
_add(REDUCTION, Einsum((ALL,), OUTSIDE, later_by_position=ALONG), "kthvalue", "median.dim", "min.dim", "mode")
_add(REDUCTION, EmbeddingBag(), "embedding_bag", "embedding_bag_forward_only")
_add(MAXIMUM, MaskedMaximum(), "amax", "max.dim")
_add(MAXIMUM, MaskedMaximum(log_sum_exp=True), "logsumexp")

_add(LOOKUP, Einsum(("yz", ALL), ALL + "z", by_position="y"), "embedding")
_add(LOOKUP, Einsum((READ, ALL), ALL, by_position=READ, equal_lines=True), "gather")
_add(LOOKUP, Index(), "index", "index_select", "unsafe_index")

_add(
    SCAN, Einsum((ALL,), ALL, by_position=ALONG, cumulative=True),
    "cummax", "cummin", "cumprod", "cumsum", "logcumsumexp",
)  # fmt: skip
_add(SCAN, Einsum((READ,), WRITTEN, by_position=WRITTEN, later_by_position=READ), "sort", "topk")
_add(
    SCAN, Einsum((READ,), WRITTEN, by_position=WRITTEN, later_by_position=READ, default_dims="the first"), "msort"
)  # fmt: skip
_add(SCAN, Einsum((READ,), WRITTEN, by_position=READ + WRITTEN), "argsort")
_add(SCAN, Convolution(), "conv1d", "conv2d", "conv3d", "convolution")
_add(SCAN, Pool(1), "adaptive_avg_pool1d", "avg_pool1d", "max_pool1d")
_add(
    SCAN, Pool(2),
    "adaptive_avg_pool2d", "avg_pool2d", "max_pool2d", "max_pool2d_with_indices", "upsample_nearest2d",
)  # fmt: skip
_add(SCAN, Pool(2, signed_weights=True), "upsample_bicubic2d", "upsample_bilinear2d")

_add(DENSE, ScatterWrite(), "scatter.src", "scatter.value")
_add(DENSE, SCATTER, "scatter", "scatter_add", "scatter_reduce")
_add(DENSE, INDEX_COPY, "index_add", "index_fill")
_add(DENSE, IndexCopy(), "index_copy")
_add(DENSE, Index(), "index_put", "index_put_impl", "unsafe_index_put")
_add(DENSE, Einsum((ALL + "y",), ALL, by_position="y"), "view_as_complex")
_add(DENSE, Einsum((ALL,), ALL + "y", by_position="y"), "view_as_real")
_add(DENSE, Einsum((READ,), WRITTEN, by_position=READ + WRITTEN), "fft")  # every other Fourier transform
_add(TRANSFORM, InverseTransform(), "fft_irfft", "fft_ifft")
_add(DENSE, Einsum(("tuvw", "txyz"), "tuxy", by_position="vwz"), "grid_sampler", "grid_sampler_2d")

_add(
    DENSE, MatrixFunction(finite=True),
    "linalg_det", "linalg_eigh", "linalg_lu_factor_ex", "linalg_matrix_exp", "linalg_qr", "linalg_svd",
)  # fmt: skip
_add(DENSE, MatrixFunction(), "linalg_cholesky_ex", "linalg_inv_ex", "linalg_slogdet")
_add(DENSE, MatrixFunction((2, 2)), "cholesky_solve")
_add(DENSE, MatrixFunction((2, 2), right_side_may_be_vectors=True), "linalg_solve_ex")
_add(DENSE, Einsum((ALL + "xz", ALL + "yz"), ALL + "xy"), "cdist_forward")
_add(DENSE, Buckets(), "bucketize", "searchsorted")

_add(TRIANGULAR, TriangularSolve(), "linalg_solve_triangular")


def find_check(call: BoundCall) -> OperatorCheck | None:
    """The check of an operator; None if it has no form."""
    is_other_transform = "fft" in call.name and call.name not in OPERATORS
    name, overload = "fft" if is_other_transform else call.name, call.overload
    if name == "matmul":
        overload = "".join("v" if len(f.shape) == 1 else "m" for f in call.facts)
    listed = OPERATORS.get(f"{name}.{overload}") or OPERATORS.get(name)
    if listed is not None:
        return listed
    if call.operator.is_view:
        return OperatorCheck(MOVEMENT, Movement())
    if torch.Tag.pointwise in call.operator.tags:
        return OperatorCheck(POINTWISE, Elementwise("exact"))
    return None
