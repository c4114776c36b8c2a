"""The token axis of each input of a plain module.

Unless it is stated, the token axis is axis 1 of a 3-D float input [batch, token, width] or of a 2-D integer input
[batch, token], and axis 0 of a 2-D float input [token, width]. Calls may show that the latter is [batch, token].
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from torch import Tensor

from orderproof.errors import SubjectError, UsageError
from orderproof.models.input_sampling import ExampleInputs, TokenAxes
from orderproof.models.roles.packed_documents import token_axis_of_documents
from orderproof.subject_spec import TOKEN_AXIS_OPTION


def axis_notes(examples: ExampleInputs, known: Container[int]) -> tuple[str, ...]:
    """A note for each token axis that was found by its size alone, but for inputs whose role is known."""
    return tuple(
        f"input {index}: axis {axis} counts as token axis because of its size; override with token_axis"
        for index, (tensor, axis) in enumerate(zip(examples.tensors, examples.axes, strict=True))
        if index not in known and axis is not None and axis != _default_token_axis(tensor, None)
    )


def resolve_token_axes(
    examples: tuple[Tensor, ...], token_axis: int | Sequence[int | None] | None, name: str
) -> TokenAxes:
    """The token axis of each input: as stated, by the rule of this module, or the axis with the number of tokens."""
    if isinstance(token_axis, Sequence):
        if len(token_axis) != len(examples):
            raise UsageError(f"{name}: token_axis has {len(token_axis)} entries for {len(examples)} inputs")
        if all(axis is None for axis in token_axis):
            raise UsageError(f"{name}: token_axis names no axis; expected one for at least one input")
        return tuple(_normalized_axis(axis, tensor, name) for axis, tensor in zip(token_axis, examples, strict=True))
    token_axis = token_axis_of_documents(examples) if token_axis is None else token_axis
    first = next((i for i, tensor in enumerate(examples) if _default_token_axis(tensor, token_axis) is not None), None)
    if first is None:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in examples)
        raise SubjectError(f"{name}: no token axis found in inputs of shape {shapes}; name it with {TOKEN_AXIS_OPTION}")
    axis = _normalized_axis(_default_token_axis(examples[first], token_axis), examples[first], name)
    assert axis is not None
    size = examples[first].shape[axis]
    return tuple(axis if i == first else axis_of_size(t, size) for i, t in enumerate(examples))


def _default_token_axis(tensor: Tensor, stated: int | None) -> int | None:
    if stated is not None:
        return stated
    if tensor.is_floating_point():
        return {2: 0, 3: 1}.get(tensor.dim())
    return 1 if tensor.dim() == 2 else None


def _normalized_axis(axis: int | None, tensor: Tensor, name: str) -> int | None:
    if axis is None:
        return None
    if not -tensor.dim() <= axis < tensor.dim():
        raise UsageError(f"{name}: token_axis is {axis}, but the input has shape {tuple(tensor.shape)}")
    return axis % tensor.dim()


def axis_of_size(tensor: Tensor, size: int) -> int | None:
    """The axis of a further input that has the number of tokens; None without one, or with several."""
    default = _default_token_axis(tensor, None)
    is_square = tensor.dim() == 2 and tensor.shape == (size, size)
    if default is not None and tensor.shape[default] == size and not is_square:
        return default
    axes = [axis for axis, extent in enumerate(tensor.shape) if extent == size]
    return axes[0] if len(axes) == 1 else None
