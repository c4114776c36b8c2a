"""The tensors and attributes that an ONNX file stores, and which of its tensors count as weights."""

from __future__ import annotations

from typing import Any

import onnx
import torch
from onnx import NodeProto, TensorProto, numpy_helper
from torch import Tensor

from orderproof.errors import SubjectError, first_line


def tensor_of(proto: TensorProto) -> Tensor:
    """A stored tensor. Raises `SubjectError` for texts, numbers that torch lacks, and another size than stated."""
    if proto.data_type == TensorProto.STRING:
        raise SubjectError(f"tensor {proto.name!r} has texts, which are not supported")
    try:
        array = numpy_helper.to_array(proto)
    except ValueError as error:
        raise SubjectError(f"tensor {proto.name!r} cannot be read: {first_line(error)}") from error
    if proto.data_type == TensorProto.BFLOAT16:
        return torch.from_numpy(array.astype("float32")).to(torch.bfloat16)
    try:
        return torch.from_numpy(array.copy())
    except TypeError as error:
        raise SubjectError(f"tensor {proto.name!r} has numbers of type {array.dtype}, which torch lacks") from error


def attribute_of(attribute: Any) -> Any:
    """The value of an attribute: a number, a text, a tensor, or a list of these."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, TensorProto):
        return tensor_of(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in value] if _is_list(value) else value


def _is_list(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str)


def constant_of(node: NodeProto) -> Tensor:
    """The tensor of a node that is a constant. Raises `SubjectError` for a text."""
    (attribute,) = node.attribute
    value = attribute_of(attribute)
    if isinstance(value, Tensor):
        return value
    if isinstance(value, str) or (_is_list(value) and value and isinstance(value[0], str)):
        raise SubjectError(f"node {node.name!r} is a constant text")
    return torch.tensor(value)
