"""Movement, pooling and embeddings of quantized numbers: the real operator between two quantizations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.operators.indexing import gather
from orderproof.models.onnx_file.operators.layers import embed_layer_norm, global_pool, pool
from orderproof.models.onnx_file.operators.quantization import dequantized, numbers_of, quantized
from orderproof.models.onnx_file.values import Value, as_tensor


def _real(call: Operation, value: int, scale: int, zero: int) -> Tensor:
    """The real numbers of an input, with its scale and its zero at other places."""
    return dequantized(call.tensor(value), call.tensor(scale), call.optional_tensor(zero))


@operator("QLinearConcat")
def quantized_concat(call: Operation) -> Value:
    """Quantized tensors one after the other, with one scale and one zero."""
    parts = [_real(call, k, k + 1, k + 2) for k in range(2, len(call.inputs), 3)]
    zero = call.tensor(1)
    return quantized(torch.cat(parts, call.attribute("axis")), call.tensor(0), zero, zero.dtype)


@operator("QLinearWhere")
def quantized_where(call: Operation) -> Value:
    """One of two quantized values at each place."""
    found = torch.where(call.tensor(0), _real(call, 1, 2, 3), _real(call, 4, 5, 6))
    return quantized(found, call.tensor(7), call.tensor(8), call.tensor(1).dtype)


@operator("QLinearAveragePool", "QLinearGlobalAveragePool")
def quantized_pool(call: Operation) -> Value:
    """Means of windows, or of all places, of quantized numbers."""
    x, last = _real(call, 0, 1, 2), bool(call.attribute("channels_last", 0))
    name = call.name.removeprefix("QLinear")
    x = x.movedim(-1, 1) if last else x
    found = as_tensor((pool if name == "AveragePool" else global_pool)(replace(call, name=name, inputs=(x,))))  # type: ignore[arg-type]
    found = found.movedim(1, -1) if last else found
    return quantized(found, call.tensor(3), call.optional_tensor(4), call.tensor(0).dtype)


@operator("QEmbedLayerNormalization")
def quantized_embedding(call: Operation) -> list[Value]:
    """A normalization of the sum of embeddings, whose tables and weights are quantized."""
    real = partial(_real, call)
    tables = [real(2, 8, 13), real(3, 9, 14), None if call.optional(4) is None else real(4, 10, 15)]
    weights = (real(5, 11, 16), real(6, 12, 17))
    found: list[Value] = embed_layer_norm(call.with_inputs(*call.inputs[:2], *tables, *weights, call.optional(7)))  # type: ignore[assignment]
    return found[:2]


@operator("GatherBlockQuantized")
def quantized_gather(call: Operation) -> Value:
    """Entries of a table of bytes, which hold one number or two, with a scale and a zero for each block."""
    table, bits = call.tensor(0), call.attribute("bits", 4)
    if bits not in (4, 8) or table.dtype is not torch.uint8:
        raise call.refuse(f"{bits} bits of {table.dtype}")
    zero, axis = call.optional_tensor(3), call.attribute("quantize_axis", 1) % table.ndim
    whole = numbers_of(table, bits).to(call.tensor(2).dtype)

    def by_entry(x: Tensor) -> Tensor:
        return x.repeat_interleave(call.attribute("block_size", 128), axis).narrow(axis, 0, whole.shape[axis])

    if zero is None:
        whole = whole - 2 ** (bits - 1)
    else:
        blocks = call.tensor(2).shape[-1]
        whole = whole - by_entry(numbers_of(zero, bits)[..., :blocks]).to(whole.dtype)
    rows = whole * by_entry(call.tensor(2))
    return gather(replace(call, inputs=(rows, call.value(1)), attributes={"axis": call.attribute("gather_axis", 0)}))  # type: ignore[return-value]
