"""Reading the data of a certificate, which anyone may have written. Every name in it is looked up in a table."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload, OpOverloadPacket

from orderproof.errors import CertificateError

MAX_ARRAY_ELEMENTS = 1 << 26

DTYPES: dict[str, torch.dtype] = {
    "bool": torch.bool,
    "uint8": torch.uint8,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
    "complex32": torch.complex32,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
}

LAYOUTS: dict[str, torch.layout | torch.memory_format] = {
    "torch.strided": torch.strided,
    "torch.contiguous_format": torch.contiguous_format,
    "torch.preserve_format": torch.preserve_format,
    "torch.channels_last": torch.channels_last,
    "torch.channels_last_3d": torch.channels_last_3d,
}

_OPERATOR = re.compile(r"aten\.(\w+)\.(\w+)", re.ASCII)


def require(condition: object, message: str) -> None:
    """Raise `CertificateError` with the message unless the condition holds."""
    if not condition:
        raise CertificateError(message)


def digest_of(data: object) -> str:
    """SHA-256 of data as canonical JSON."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def decode_array(data: Mapping[str, Any], shape: Sequence[int], kinds: str = "bif") -> np.ndarray[Any, Any]:
    """The array {"shape", "runs"} of a certificate, for a tensor of this shape.

    Each dimension has the tensor's size or 1; `kinds` are the NumPy kinds of number allowed. Raises `CertificateError`.
    """
    sizes, runs = data["shape"], data["runs"]
    counts = [count for _, count in runs]
    require(
        all(type(size) is int and size in (1, full) for size, full in zip(sizes, shape, strict=True))
        and all(type(count) is int and count > 0 for count in counts)
        and sum(counts) == math.prod(sizes) <= MAX_ARRAY_ELEMENTS,
        "the shape of an array does not fit its tensor",
    )
    numbers = [float(x["float"]) if isinstance(x, dict) else x for x, _ in runs]
    values = np.array(numbers) if numbers else np.zeros(0, int)
    require(values.dtype.kind in kinds, "an array holds another kind of number than its field allows")
    return np.repeat(values, np.array(counts, int)).reshape(sizes)


def decode_literal(
    kind: str, text: object
) -> complex | torch.dtype | torch.device | torch.layout | torch.memory_format:
    """A literal that JSON cannot express, from its kind and text. Raises `CertificateError`."""
    if kind == "float":
        return float(str(text))
    if kind == "device":
        return torch.device("cpu")  # constants are computed on the CPU
    if kind == "dtype" and text in DTYPES:
        return DTYPES[str(text)]
    if kind == "other" and str(text).strip("()").endswith("j"):
        return complex(str(text))
    require(kind == "other" and text in LAYOUTS, f"expected a dtype, layout or memory format; got {str(text)[:60]}")
    return LAYOUTS[str(text)]


def find_operator(name: str) -> OpOverload[..., Any]:
    """The ATen operator "aten.NAME.OVERLOAD". Raises `CertificateError`."""
    match = _OPERATOR.fullmatch(name)
    packet = getattr(torch.ops.aten, match[1], None) if match else None
    known = match is not None and isinstance(packet, OpOverloadPacket) and match[2] in packet.overloads()  # type: ignore[no-untyped-call]
    require(known, "expected an ATen operator aten.NAME.OVERLOAD")
    operator = getattr(packet, match[2]) if match else None
    assert isinstance(operator, OpOverload)
    return operator
