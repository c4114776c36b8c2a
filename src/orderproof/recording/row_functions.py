"""The functions of torch that compute each row of a tensor from this row alone, row after row along axis 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

_POINTWISE = {
    "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "true_divide", "pow", "neg", "abs", "exp", "log",
    "log1p", "sqrt", "rsqrt", "sigmoid", "tanh", "relu", "relu_", "gelu", "silu", "elu", "selu", "leaky_relu",
    "softplus", "hardtanh", "hardswish", "hardsigmoid", "mish", "relu6", "clamp", "clamp_", "clip", "where",
    "maximum", "minimum", "square", "erf", "to", "type_as", "type", "float", "half", "bfloat16", "double", "long",
    "int", "bool", "contiguous", "clone", "detach", "dropout", "eq", "ne", "lt", "gt", "le", "ge", "sin", "cos",
    "reciprocal", "floor", "ceil", "round", "sign", "nan_to_num", "masked_fill", "lerp", "addcmul", "logical_and",
    "logical_or", "logical_not", "__add__", "__radd__", "__iadd__", "__sub__", "__rsub__", "__isub__", "__mul__",
    "__rmul__", "__imul__", "__truediv__", "__rtruediv__", "__itruediv__", "__pow__", "__neg__", "__and__", "__or__",
    "__invert__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
}  # fmt: skip
_ALONG_AXES = {  # the place of the argument `dim`, and its default
    "softmax": (1, None), "log_softmax": (1, None), "sum": (1, None), "mean": (1, None), "amax": (1, None),
    "amin": (1, None), "topk": (2, -1), "chunk": (2, 0), "split": (2, 0), "cat": (1, 0), "concat": (1, 0),
    "glu": (1, -1), "norm": (2, None), "argmax": (1, None), "normalize": (2, 1), "unsqueeze": (1, None),
    "squeeze": (1, None), "logsumexp": (1, None), "cumsum": (1, None),
}  # fmt: skip
_SHAPING = {"view", "reshape", "flatten"}
_SIZES = {"size", "dim", "numel", "__len__", "is_floating_point", "ndimension", "nelement", "stride"}


def keeps_rows_apart(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], is_rows: Callable[[Tensor], bool]
) -> bool:
    """True if a function computes each row of its result from the same row of the tensors with rows, and no other.

    Args:
        name: The name of the function.
        args: Its arguments.
        kwargs: Those by name.
        is_rows: True of a tensor whose axis 0 runs over rows; all these have the same rows.

    """
    tensors = [x for x in pytree.tree_leaves((args, dict(kwargs))) if isinstance(x, Tensor)]
    rank = max(x.dim() for x in tensors)
    if any(x.dim() != rank for x in tensors if is_rows(x)) and name != "embedding":
        return False
    first = tensors[0]
    others_alone = all(is_rows(x) or x.dim() < rank or x.shape[0] == 1 for x in tensors)
    if name in _POINTWISE:
        return others_alone
    if name in _ALONG_AXES:
        place, default = _ALONG_AXES[name]
        dims = kwargs.get("dim", args[place] if len(args) > place else default)
        places = list(dims) if isinstance(dims, tuple | list) else [dims]
        rank += name == "unsqueeze"
        return all(map(is_rows, tensors)) and all(isinstance(d, int) and d % rank > 0 for d in places)
    if name in ("linear", "matmul", "__matmul__", "mm"):
        weights = tensors[1:]
        return is_rows(first) and rank > 1 and not any(map(is_rows, weights)) and all(w.dim() <= 2 for w in weights)
    if name in ("layer_norm", "rms_norm"):
        shape = args[1] if len(args) > 1 else kwargs["normalized_shape"]
        return is_rows(first) and not any(map(is_rows, tensors[1:])) and len(shape) < rank
    if name == "embedding":
        return is_rows(first) and not is_rows(tensors[1])
    if name in ("transpose", "permute"):
        order = [d for d in pytree.tree_leaves((args[1:], dict(kwargs))) if isinstance(d, int)]
        return (order[0] % rank == 0) if name == "permute" else all(d % rank > 0 for d in order)
    if name == "expand":  # to no new axis before that of the rows
        sizes = args[1] if isinstance(args[1], tuple | list) else args[1:]
        return len(sizes) == rank
    return name in _SHAPING or name in _SIZES
