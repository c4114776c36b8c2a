"""Products, convolutions, normalizations and pooling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.onnx_file.operation import Operation, function_of, operator
from orderproof.models.onnx_file.values import Value


@operator("MatMul")
def matmul(call: Operation) -> Value:
    """A product of matrices."""
    return torch.matmul(call.tensor(0), call.tensor(1))


@operator("FusedMatMul", "TransposeMatMul")
def fused_matmul(call: Operation) -> Value:
    """A product of matrices that may be transposed, times a number."""
    a, b = call.tensor(0), call.tensor(1)
    a, b = (x.movedim(0, -2) if call.attribute(f"transBatch{key}", 0) else x for x, key in ((a, "A"), (b, "B")))
    a, b = (x.mT if call.attribute(f"trans{key}", 0) else x for x, key in ((a, "A"), (b, "B")))
    return torch.mul(torch.matmul(a, b), call.attribute("alpha", 1.0))


def _both(call: Operation) -> list[tuple[Tensor, str]]:
    return [(call.tensor(0), "transA"), (call.tensor(1), "transB")]


@operator("Gemm")
def gemm(call: Operation) -> Value:
    """A product of two matrices and a bias, each times a number."""
    return _product_and_bias(call)


def _product_and_bias(call: Operation) -> Tensor:
    a, b = (x.mT if call.attribute(key, 0) else x for x, key in _both(call))
    alpha, beta, bias = call.attribute("alpha", 1.0), call.attribute("beta", 1.0), call.optional_tensor(2)
    found = torch.matmul(a, b)
    found = found if alpha == 1 else alpha * found
    return found if bias is None else found + (bias if beta == 1 else beta * bias)


@operator("FusedGemm", "FusedConv")
def fused_with_activation(call: Operation) -> Value:
    """A product of matrices, or a convolution that may be added to input 3, and a function of each element."""
    if call.name == "FusedGemm":
        keys = ("alpha", "beta", "gamma")
        given = {key: call.attributes[f"activation_{key}"] for key in keys if f"activation_{key}" in call.attributes}
        return _activated(call, _product_and_bias(call), given)
    found, added = convolved(call, call.tensor(0), call.tensor(1), call.optional_tensor(2)), call.optional_tensor(3)
    names = {"Clip": ("min", "max")}.get(call.attribute("activation", ""), ("alpha", "beta"))
    given = dict(zip(names, call.attribute("activation_params", []), strict=False))
    return _activated(call, found if added is None else found + added, given)


def _activated(call: Operation, x: Tensor, attributes: Mapping[str, float]) -> Value:
    name = call.attribute("activation", "")
    function = function_of("", name)
    if not name:
        return x
    if function is None:
        raise call.refuse(f"activation {name!r}")
    return function(replace(call, name=name, inputs=(x,), attributes=attributes))  # type: ignore[return-value]


@operator("Einsum")
def einsum(call: Operation) -> Value:
    """A sum of products with labels."""
    return torch.einsum(call.attribute("equation"), *(call.tensor(k) for k in range(len(call.inputs))))


@operator("Conv", "ConvTranspose")
def convolution(call: Operation) -> Value:
    """A convolution."""
    return convolved(call, call.tensor(0), call.tensor(1), call.optional_tensor(2))


def convolved(call: Operation, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A convolution with the strides, dilations, groups and padding of an operator."""
    rank = x.ndim - 2
    stride, dilation = (call.attribute(key, [1] * rank) for key in ("strides", "dilations"))
    groups, widths = (
        call.attribute("group", 1),
        _widths(call, list(x.shape[2:]), list(weight.shape[2:]), stride, dilation),
    )
    if call.name == "ConvTranspose":
        if call.attribute("output_shape") or call.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
            raise call.refuse("this padding")
        function: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
        extra, both = call.attribute("output_padding", [0] * rank), list(map(min, widths[:rank], widths[rank:]))
        found: Tensor = function(x, weight, bias, stride, both, extra, groups, dilation)
        cut = [n - m for side in (widths[:rank], widths[rank:]) for n, m in zip(side, both, strict=True)]
        return _padded(found, [-n for n in cut[:rank]], [-n for n in cut[rank:]], 0.0) if any(cut) else found
    if widths[:rank] != widths[rank:]:
        x, widths = _padded(x, widths[:rank], widths[rank:], 0.0), [0] * 2 * rank
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return function(x, weight, bias, stride, widths[:rank], dilation, groups)  # type: ignore[no-any-return]


def _widths(call: Operation, sizes: list[Any], kernel: list[int], stride: list[int], dilation: list[int]) -> list[int]:
    """The padding before each axis, then after each."""
    rank, how = len(kernel), call.attribute("auto_pad", "NOTSET")
    if how in ("NOTSET", "VALID"):
        return list(call.attribute("pads", [0] * 2 * rank)) if how == "NOTSET" else [0] * 2 * rank
    both = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    first = [n // 2 if how == "SAME_UPPER" else n - n // 2 for n in both]
    return first + [n - m for n, m in zip(both, first, strict=True)]


@operator("Softmax", "LogSoftmax")
def softmax(call: Operation) -> Value:
    """A softmax along an axis; before version 13 over all axes from there on."""
    x, function = call.tensor(0), torch.softmax if call.name == "Softmax" else torch.log_softmax
    axis = call.attribute("axis", -1 if call.version >= 13 else 1) % x.ndim
    if call.version >= 13 or axis == x.ndim - 1:
        return function(x, axis)
    return function(x.flatten(axis), -1).reshape(x.shape)


@operator("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def layer_norm(call: Operation) -> Value:
    """A normalization over the last axes, of the type of its scale; only its first output."""
    if call.wants(1) or call.wants(2):
        raise call.refuse("the mean and the deviation as outputs")
    x, axis, weight = call.tensor(0), call.attribute("axis", -1), call.tensor(1)
    shape, dtype = list(x.shape[axis % x.ndim :]), torch.promote_types(x.dtype, weight.dtype)
    x, weight, epsilon = x.to(dtype), weight.to(dtype), call.attribute("epsilon", 1e-5)
    if call.name == "LayerNormalization":
        return F.layer_norm(x, shape, weight, call.optional_tensor(2), epsilon)
    return F.rms_norm(x, shape, weight, epsilon).to(call.tensor(1).dtype)


@operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip_layer_norm(call: Operation) -> list[Value]:
    """A normalization of a sum, and the sum as output 3."""
    if call.wants(1) or call.wants(2):
        raise call.refuse("the mean and the deviation as outputs")
    simple = call.name == "SkipSimplifiedLayerNormalization"
    total, bias = call.tensor(0) + call.tensor(1), call.optional_tensor(3 if simple else 4)
    total = total if bias is None else total + bias
    shape, epsilon = [total.shape[-1]], call.attribute("epsilon", 1e-12)
    if simple:
        return [F.rms_norm(total, shape, call.tensor(2), epsilon), total, total, total]
    return [F.layer_norm(total, shape, call.tensor(2), call.optional_tensor(3), epsilon), total, total, total]


@operator("EmbedLayerNormalization")
def embed_layer_norm(call: Operation) -> list[Value]:
    """A normalization of the sum of embeddings; the number of tokens of each row that a mask shows; the sum."""
    ids, tokens, positions, segments = call.tensor(0), call.tensor(2), call.tensor(3), call.optional_tensor(4)
    places = call.optional_tensor(8)
    total = F.embedding(ids, tokens)
    total = total + (positions[: ids.shape[1]] if places is None else F.embedding(places, positions))
    if segments is not None:
        total = total + F.embedding(call.tensor(1), segments)
    mask, epsilon = call.optional_tensor(7), call.attribute("epsilon", 1e-12)
    count = ids.new_zeros(ids.shape[0]) if mask is None else mask.sum(1)
    found = F.layer_norm(total, [total.shape[-1]], call.tensor(5), call.tensor(6), epsilon)
    return [found, count.to(torch.int32), total]


@operator("InstanceNormalization", "GroupNormalization", "BatchNormalization")
def other_norms(call: Operation) -> Value:
    """Normalizations of channels."""
    x, weight, bias, epsilon = call.tensor(0), call.tensor(1), call.tensor(2), call.attribute("epsilon", 1e-5)
    if call.name == "InstanceNormalization":
        return torch.instance_norm(x, weight, bias, None, None, True, 0.1, epsilon, False)
    if call.name == "BatchNormalization":
        if call.attribute("training_mode", 0):
            raise call.refuse("training")
        return F.batch_norm(x, call.tensor(3), call.tensor(4), weight, bias, eps=epsilon)
    groups = call.attribute("num_groups")
    if weight.numel() != x.shape[1]:  # before version 21: one weight for each group
        weight, bias = (y.repeat_interleave(x.shape[1] // groups) for y in (weight, bias))
    return torch.group_norm(x, groups, weight, bias, epsilon)


@operator("LpNormalization")
def lp_normalization(call: Operation) -> Value:
    """A vector divided by its norm."""
    x = call.tensor(0)
    norm: Tensor = torch.linalg.vector_norm(x, call.attribute("p", 2), call.attribute("axis", -1), keepdim=True)
    return torch.where(norm > 0, x / norm, 0.0)


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pool(call: Operation) -> Value:
    """The mean or the maximum of all places."""
    x = call.tensor(0)
    axes = list(range(2, x.ndim))
    return x.mean(axes, keepdim=True) if call.name == "GlobalAveragePool" else x.amax(axes, keepdim=True)


@operator("AveragePool", "MaxPool")
def pool(call: Operation) -> Value:
    """The mean or the maximum of windows."""
    x, kernel = call.tensor(0), call.attribute("kernel_shape")
    rank, ceil, name = len(kernel), bool(call.attribute("ceil_mode", 0)), call.name
    stride, dilation = (call.attribute(key, [1] * rank) for key in ("strides", "dilations"))
    widths = _widths(call, list(x.shape[2:]), kernel, stride, dilation)
    before, after = widths[:rank], widths[rank:]
    even = before == after and all(2 * n <= k for n, k in zip(before, kernel, strict=True))
    if not even and (ceil or max(dilation) > 1):
        raise call.refuse("this padding")
    if name == "MaxPool":
        if call.wants(1):
            raise call.refuse("the places as an output")
        real = x if x.is_floating_point() else x.float()  # torch has no kernel for integers of eight bits
        real, before = (real, before) if even else (_padded(real, before, after, -torch.inf), [0] * rank)
        largest: Any = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
        return largest(real, kernel, stride, before, dilation, ceil).to(x.dtype)  # type: ignore[no-any-return]
    if max(dilation) > 1:
        raise call.refuse("dilations")
    average: Any = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
    counted = bool(call.attribute("count_include_pad", 0))
    if even:
        return average(x, kernel, stride, before, ceil, counted)  # type: ignore[no-any-return]
    found: Tensor = average(_padded(x, before, after, 0.0), kernel, stride)
    return found if counted else found / average(_padded(torch.ones_like(x), before, after, 0.0), kernel, stride)


def _padded(x: Tensor, before: list[Any], after: list[Any], value: float) -> Tensor:
    """A tensor with entries before and after each of its last axes."""
    return F.pad(x, [n for pair in zip(before[::-1], after[::-1], strict=True) for n in pair], value=value)
