"""The ways in which an operator mixes tokens, by its name: a law has a remedy for each.

Attention is repaired at its mask, a convolution at its padding, a running sum at what it counts.
"""

from __future__ import annotations

from typing import Final

ATTENTION: Final = "attention"
CHOICE: Final = "choice"  # of some tokens by their scores: topk, sort
CONVOLUTION: Final = "convolution"
OTHER: Final = "other"
POOLING: Final = "pooling"
POSITIONS: Final = "positions"  # numbers that are counted, such as position ids
RECURRENCE: Final = "recurrence"
RUNNING_SUM: Final = "running sum"
STATISTIC: Final = "statistic"

_NAMES = {
    ATTENTION: {"matmul", "mm", "bmm", "baddbmm", "einsum"},
    CHOICE: {"topk", "sort", "argsort", "kthvalue", "argmax", "argmin", "searchsorted", "bincount", "unique"},
    POSITIONS: {"arange", "linspace"},
    RECURRENCE: {"lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "mkldnn_rnn_layer"},
    RUNNING_SUM: {"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "_cummax_helper"},
    STATISTIC: {
        "amax", "amin", "batch_norm", "_native_batch_norm_legit", "native_batch_norm", "cudnn_batch_norm", "group_norm",
        "native_group_norm", "instance_norm", "layer_norm", "native_layer_norm", "linalg_vector_norm", "logsumexp",
        "max", "mean", "median", "min", "norm", "prod", "std", "std_mean", "sum", "var", "var_mean",
    },
}  # fmt: skip


def mixing_kind(name: str) -> str:
    """The kind of an operator, by its name without namespace and overload, such as ``conv1d``."""
    if name.startswith(("conv", "_conv", "mkldnn_conv", "unfold", "im2col")):
        return CONVOLUTION
    if "pool" in name:
        return POOLING
    if "softmax" in name or "attention" in name:
        return ATTENTION
    return next((kind for kind, names in _NAMES.items() if name.removesuffix("_") in names or name in names), OTHER)
