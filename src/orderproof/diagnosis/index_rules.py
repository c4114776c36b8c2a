"""How operators carry the indices of `index_paths` from their operands to their results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.diagnosis.index_parts import (
    FEATURE,
    UNKNOWN,
    Dim,
    Dims,
    Part,
    aligned,
    dim_size,
    is_feature,
    merged,
    node_shape,
    unknown,
)

Rule = Callable[[Node, Mapping[Node, Dims]], Dims]

_SAME_SHAPE = {
    "_softmax", "softmax", "log_softmax", "_log_softmax", "cumsum", "cumprod", "logcumsumexp", "cummax",
    "native_layer_norm", "layer_norm", "rms_norm", "_fused_rms_norm", "native_group_norm", "group_norm",
    "batch_norm", "_native_batch_norm_legit", "native_batch_norm", "instance_norm", "dropout", "native_dropout",
    "clone", "contiguous", "to", "_to_copy", "detach", "alias", "lift_fresh_copy", "type_as", "tril", "triu",
    "flip", "roll", "normalize", "masked_fill", "masked_fill_", "scatter", "scatter_add", "index_put", "copy",
    "fill",
}  # fmt: skip
_SPLITS = {"split", "chunk", "split_with_sizes", "tensor_split", "unsafe_split"}
_VIEWS = {"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten", "view_as"}
_REDUCTIONS = {
    "sum",
    "mean",
    "amax",
    "amin",
    "var",
    "std",
    "any",
    "all",
    "logsumexp",
    "linalg_vector_norm",
    "prod",
    "argmax",
}


def _name(node: Node) -> str:
    target = node.target
    return target._schema.name.removeprefix("aten::") if isinstance(target, torch._ops.OpOverload) else ""


def rule_of(node: Node) -> Rule:
    """The rule of the operator of a node."""
    name = _name(node)
    if node.target is operator.getitem:
        return _item
    if name in _RULES:
        return _RULES[name]
    if name in _SAME_SHAPE:
        return _same_shape
    if name in _VIEWS:
        return _view
    if name in _REDUCTIONS:
        return _reduction
    target = node.target
    if (
        isinstance(target, torch._ops.OpOverload)
        and target.namespace in ("aten", "prims")
        and torch.Tag.pointwise in target.tags
    ):
        return _pointwise
    return lambda node, found: unknown(node_shape(node))


def _operand(node: Node, found: Mapping[Node, Dims], place: int = 0) -> Dims:
    argument = node.args[place]
    return found.get(argument, ()) if isinstance(argument, Node) else ()


# ------------------------------------------------------------------------------------------ rules


def _pointwise(node: Node, found: Mapping[Node, Dims]) -> Dims:
    return aligned(node_shape(node), [found[n] for n in node.all_input_nodes if n in found])


def _same_shape(node: Node, found: Mapping[Node, Dims]) -> Dims:
    return aligned(node_shape(node), [_operand(node, found)])


def _view(node: Node, found: Mapping[Node, Dims]) -> Dims:
    parts = [part for dim in _operand(node, found) for part in dim if part.size != 1]
    result: list[Dim] = []
    for size in node_shape(node):
        taken: list[Part] = []
        while parts and dim_size(tuple(taken)) < size:
            taken.append(parts.pop(0))
        have = dim_size(tuple(taken))
        if have != size and taken and have % size == 0:  # a part is split: the rest of it is left
            last = taken.pop()
            rest = have // size
            own = last.size // rest if last.size % rest == 0 else 0
            if not own:
                return unknown(node_shape(node))
            kind = FEATURE if last.kind == FEATURE else UNKNOWN
            taken.append(Part(own, kind))
            parts.insert(0, Part(rest, kind))
        elif have != size:
            return unknown(node_shape(node))
        result.append(tuple(taken) or (Part(1, FEATURE),))
    return tuple(result)


def _permute(node: Node, found: Mapping[Node, Dims]) -> Dims:
    dims, order = _operand(node, found), node.args[1]
    assert isinstance(order, Sequence)
    return tuple(dims[int(d)] for d in order) if dims else unknown(node_shape(node))  # type: ignore[arg-type]


def _transpose(node: Node, found: Mapping[Node, Dims]) -> Dims:
    dims = list(_operand(node, found))
    if len(dims) < 2:
        return tuple(dims)
    a, b = (0, 1) if len(node.args) < 3 else (_integer(node.args[1]), _integer(node.args[2]))
    dims[a], dims[b] = dims[b], dims[a]
    return tuple(dims)


def _integer(value: Any) -> int:
    return int(value)


def _product(first: Dims, second: Dims, shape: tuple[int, ...]) -> Dims:
    """A matrix product: rows of the first, columns of the second."""
    if len(first) < 2 or len(second) < 2:
        return unknown(shape)
    outer = aligned(shape[:-2], [first[:-2], second[:-2]])
    return (*outer, _outer(first[-2], first[-1], second[-2]), _outer(second[-1], second[-2], first[-1]))


def _outer(dim: Dim, own: Dim, other: Dim) -> Dim:
    """A dimension of one factor of a product, which sums the dimension `own` of it and `other` of the other one.

    A matrix over the tokens is a parameter whose other dimension may be meant to run over tokens too.
    """
    if (
        not is_feature(dim)
        or (is_feature(own) and is_feature(other))
        or any(p.kind not in (FEATURE, UNKNOWN) for p in own)
    ):
        return dim
    return (Part(dim_size(dim)),)


def _matmul(node: Node, found: Mapping[Node, Dims]) -> Dims:
    return _product(_operand(node, found), _operand(node, found, 1), node_shape(node))


def _addmm(node: Node, found: Mapping[Node, Dims]) -> Dims:
    return _product(_operand(node, found, 1), _operand(node, found, 2), node_shape(node))


def _linear(node: Node, found: Mapping[Node, Dims]) -> Dims:
    dims, weight = _operand(node, found), _operand(node, found, 1)
    if not dims or len(weight) != 2:
        return unknown(node_shape(node))
    return (*dims[:-1], _outer(weight[0], weight[1], dims[-1]))


def _attention(node: Node, found: Mapping[Node, Dims]) -> Dims:
    return _attention_of(node, node_shape(node), found)


def _attention_of(node: Node, shape: tuple[int, ...], found: Mapping[Node, Dims]) -> Dims:
    operands = [_operand(node, found, place) for place in range(3)]
    if not all(operands):
        return unknown(shape)
    return (*aligned(shape[:-2], [dims[:-2] for dims in operands]), operands[0][-2], operands[2][-1])


def _expand(node: Node, found: Mapping[Node, Dims]) -> Dims:
    dims, shape = _operand(node, found), node_shape(node)
    if not dims:
        return tuple((Part(size, FEATURE),) for size in shape)
    padded = [(Part(1, FEATURE),)] * (len(shape) - len(dims)) + list(dims)
    return tuple(
        dim if dim_size(dim) == size else (Part(size, FEATURE if dim_size(dim) == 1 else UNKNOWN),)
        for dim, size in zip(padded, shape, strict=True)
    )


def _item(node: Node, found: Mapping[Node, Dims]) -> Dims:
    """One of the tensors that an operator returns."""
    source, place = node.args
    assert isinstance(source, Node)
    name, dims, shape = _name(source), _operand(source, found), node_shape(node)
    if name in _SPLITS and dims:
        axis = _integer(source.args[2]) if len(source.args) > 2 else 0
        own = dims[axis]
        part = own if dim_size(own) == shape[axis] else (Part(shape[axis], FEATURE if is_feature(own) else UNKNOWN),)
        return tuple(part if d == axis % len(dims) else dim for d, dim in enumerate(dims))
    if name == "unbind" and dims:
        axis = (_integer(source.args[1]) if len(source.args) > 1 else 0) % len(dims)
        return tuple(dim for d, dim in enumerate(dims) if d != axis)
    if place == 0 and name.startswith("_scaled_dot_product"):
        return _attention_of(source, shape, found)
    if place == 0 and len(dims) == len(shape):
        return aligned(shape, [dims]) if name in _SAME_SHAPE else unknown(shape)
    return unknown(shape)


def _embedding(node: Node, found: Mapping[Node, Dims]) -> Dims:
    return (*_operand(node, found, 1), (Part(node_shape(node)[-1], FEATURE),))


def _reduction(node: Node, found: Mapping[Node, Dims]) -> Dims:
    dims, shape = _operand(node, found), node_shape(node)
    if len(shape) == len(dims):  # keepdim
        return tuple(
            dim if dim_size(dim) == size else (Part(size, FEATURE),) for dim, size in zip(dims, shape, strict=True)
        )
    summed = next((a for a in node.args[1:] if isinstance(a, int | list | tuple) and not isinstance(a, bool)), None)
    if summed is None:
        return () if not shape else unknown(shape)
    axes = {_integer(d) % len(dims) for d in ([summed] if isinstance(summed, int) else summed)}
    return tuple(dim for d, dim in enumerate(dims) if d not in axes)


def _select(node: Node, found: Mapping[Node, Dims]) -> Dims:
    dims = list(_operand(node, found))
    if dims:
        del dims[_integer(node.args[1])]
    return tuple(dims)


def _slice(node: Node, found: Mapping[Node, Dims]) -> Dims:
    dims = list(_operand(node, found))
    axis = _integer(node.args[1]) if len(node.args) > 1 else 0
    start = node.args[2] if len(node.args) > 2 and node.args[2] is not None else 0
    step = node.args[4] if len(node.args) > 4 else 1
    size, own = node_shape(node)[axis], dims[axis] if dims else ()
    if not dims or size == dim_size(own):
        return tuple(dims)
    part = own[0]
    first = _integer(start) % part.size if isinstance(start, int) else -1
    if part.kind == FEATURE and len(own) == 1:
        dims[axis] = (Part(size, FEATURE),)
    elif len(own) == 1 and step == 1 and 0 <= first <= part.before:
        dims[axis] = (replace(part, size=size, before=part.before - first),)
    else:
        dims[axis] = (Part(size),)
    return tuple(dims)


def _cat(node: Node, found: Mapping[Node, Dims]) -> Dims:
    tensors = node.args[0]
    assert isinstance(tensors, Sequence)
    axis = _integer(node.args[1]) if len(node.args) > 1 else 0
    operands = [found[n] for n in tensors if isinstance(n, Node) and n in found and found[n]]
    if len(operands) != len(tensors) or len({len(dims) for dims in operands}) != 1:
        return unknown(node_shape(node))
    axis %= len(operands[0])
    joined = [dims[axis] for dims in operands]
    result = []
    for d, size in enumerate(node_shape(node)):
        result.append(merged([dims[d] for dims in operands], size) if d != axis else _joined(joined, size))
    return tuple(result)


def _joined(dims: Sequence[Dim], size: int) -> Dim:
    """A concatenated dimension: of one named index with features before and after it, or of features alone."""
    named = [k for k, dim in enumerate(dims) if any(part.kind != FEATURE for part in dim)]
    if not named:
        unrolled = len(dims) > 1 and all(dim_size(dim) == 1 for dim in dims)  # a loop over tokens ends so
        return (Part(size),) if unrolled else (Part(size, FEATURE),)
    if len(named) > 1 or len(dims[named[0]]) != 1:
        return (Part(size),)
    part = dims[named[0]][0]
    return (Part(size, part.kind, part.before + sum(dim_size(dim) for dim in dims[: named[0]])),)


def _convolution(node: Node, found: Mapping[Node, Dims]) -> Dims:
    dims, weight, shape = _operand(node, found), _operand(node, found, 1), node_shape(node)
    if len(dims) != len(shape) or not weight:
        return unknown(shape)
    places = [dim if dim_size(dim) == size else (Part(size),) for dim, size in zip(dims[2:], shape[2:], strict=True)]
    return (dims[0], _outer(weight[0], weight[1], dims[1]), *places)


_RULES: dict[str, Rule] = {
    "permute": _permute, "transpose": _transpose, "t": _transpose, "swapaxes": _transpose, "numpy_T": _transpose,
    "matmul": _matmul, "bmm": _matmul, "mm": _matmul, "addmm": _addmm, "baddbmm": _addmm, "linear": _linear,
    "scaled_dot_product_attention": _attention, "embedding": _embedding, "select": _select, "slice": _slice,
    "expand": _expand, "repeat": _expand, "cat": _cat, "conv1d": _convolution, "conv2d": _convolution,
    "convolution": _convolution,
}  # fmt: skip
