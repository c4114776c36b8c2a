"""The dtype of a result, by torch's rules of type promotion.

A tensor without dimensions, and after it a number, only counts if it is of a higher kind than the tensors with
dimensions: boolean, integer, floating-point, complex.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orderproof_recheck.facts import FLOATS, INTEGER_LIMITS, Fact

_COMPLEX = {"complex64": "float32", "complex128": "float64"}
_KINDS = {"bool": 0, **dict.fromkeys(INTEGER_LIMITS, 1), **dict.fromkeys(FLOATS, 2), **dict.fromkeys(_COMPLEX, 3)}
_WIDTHS = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "bfloat16": 5, "float32": 6,
           "float64": 7, "complex64": 8, "complex128": 9}  # fmt: skip
_DEFAULTS = {bool: "bool", int: "int64", float: "float32"}
FROM_INTEGERS_TO_FLOATS = frozenset({
    "div", "divide", "exp", "expm1", "sqrt", "rsqrt", "sigmoid", "tanh", "sin", "cos", "tan", "log", "log2", "log1p",
    "erf", "erfc", "exp2", "reciprocal", "atan2", "asin", "acos", "atan", "sinh", "cosh", "logit",
})  # fmt: skip
SAME_AS_FIRST = frozenset({
    "transpose", "swapaxes", "swapdims", "t", "mT", "adjoint", "permute", "numpy_T", "movedim", "moveaxis", "unsqueeze",
    "squeeze", "expand", "broadcast_to", "expand_as", "view", "reshape", "_unsafe_view", "flatten", "unflatten",
    "view_as", "reshape_as", "ravel", "_reshape_alias", "repeat", "tile", "repeat_interleave", "clone", "contiguous",
    "detach", "alias", "select", "slice", "narrow", "split", "split_with_sizes", "chunk", "tensor_split", "unbind",
    "flip", "roll", "unfold", "diagonal", "pad", "constant_pad_nd", "tril", "triu", "slice_scatter", "select_scatter",
    "masked_fill", "copy", "fill", "scatter", "scatter_add", "scatter_reduce", "index_put", "index_copy",
    "full_like", "zeros_like", "ones_like", "empty_like", "new_full", "new_zeros", "new_ones", "new_empty",
})  # fmt: skip
OF_FLOATS = frozenset({
    "softmax", "_safe_softmax", "log_softmax", "mean", "var", "std", "amax", "amin", "logsumexp", "linear", "matmul",
    "mm", "bmm", "addmm", "baddbmm", "layer_norm", "rms_norm", "group_norm", "gelu", "norm", "linalg_vector_norm",
    "cumsum", "sum", "prod",
})  # fmt: skip
PROMOTED = frozenset({
    "add", "sub", "subtract", "rsub", "mul", "multiply", "maximum", "minimum", "remainder", "floor_divide", "fmod",
    "pow", "neg", "abs", "square", "relu", "silu", "clamp", "clip", "clamp_min", "clamp_max", "bitwise_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__", "cat", "concat", "stack", "where",
    *FROM_INTEGERS_TO_FLOATS,
})  # fmt: skip


def promoted(operands: Iterable[Any]) -> str | None:
    """The dtype of tensors and numbers that are computed with each other; None if it is not known."""
    groups: list[list[str]] = [[], [], []]  # with dimensions, without, numbers
    for x in operands:
        if isinstance(x, Fact):
            groups[0 if x.axes else 1].append(x.dtype)
        elif type(x) in _DEFAULTS:
            groups[2].append(_DEFAULTS[type(x)])
        elif x is not None:
            return None
    found: str | None = None
    for group in groups:
        if any(dtype not in _KINDS for dtype in group):
            return None
        own = None
        for dtype in group:
            own = dtype if own is None else _together(own, dtype)
        if own is not None and (found is None or _KINDS[own] > _KINDS[found]):
            if found in ("float16", "bfloat16") and own in _COMPLEX:
                return None
            found = own if found is None or own not in _COMPLEX else _together(own, found)
    return found


def _together(first: str, second: str) -> str:
    if first == second:
        return first
    if {first, second} == {"float16", "bfloat16"}:
        return "float32"
    if {first, second} == {"uint8", "int8"}:
        return "int16"
    higher, lower = sorted((first, second), key=lambda d: (_KINDS[d], _WIDTHS.get(d, 0)), reverse=True)
    return "complex128" if (higher, lower) == ("complex64", "float64") else higher


def expected_dtype(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> str | None:
    """The dtype of the first result of an operator; None if that is not known here."""
    if name in SAME_AS_FIRST:
        return args[0].dtype if args and isinstance(args[0], Fact) else None
    if name in OF_FLOATS:
        own = {x.dtype for x in args if isinstance(x, Fact)}
        return own.pop() if len(own) == 1 and own <= set(FLOATS) else None
    if name in ("polar", "complex", "view_as_complex", "view_as_real"):
        pairs = _COMPLEX if name == "view_as_real" else {real: number for number, real in _COMPLEX.items()}
        return pairs.get(args[0].dtype) if isinstance(args[0], Fact) else None
    if name not in PROMOTED:
        return None
    operands = args[0] if args and isinstance(args[0], list) else args
    if name == "where":
        operands = args[1:]
    if options.get("rounding_mode") is not None:
        return None
    found = promoted(operands)
    if name in FROM_INTEGERS_TO_FLOATS and found is not None and _KINDS[found] < 2:
        return "float32"
    return found if name != "abs" or found not in _COMPLEX else _COMPLEX[found]
