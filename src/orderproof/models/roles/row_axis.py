"""Inputs with tokens along their first axis, [token, row, width], which a mask [row, token] among them shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import nn

from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.roles.computed_inputs import ComputedInput
from orderproof.models.roles.example_roles import example_roles
from orderproof.models.roles.second_sequences import second_sequences
from orderproof.models.token_axes import axis_of_size
from orderproof.subject_spec import NO_LAYOUT

VECTORS = 3  # axes of the vectors of a batch


def tokens_first(
    module: nn.Module, examples: ExampleInputs, names: Sequence[str], computed: Mapping[int, ComputedInput]
) -> ExampleInputs | None:
    """The inputs with tokens along axis 0, if a mask [row, token] among them says so; None if they are as given.

    The first is vectors [token, row, width], which have the form of [row, token, width].
    """
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    shape = examples.tensors[first].shape
    if len(shape) != VECTORS or examples.axes[first] != 1 or shape[0] == shape[1]:
        return None
    lengths = {x.shape[0] for x in examples.tensors if x.dim() == VECTORS and x.shape[1] == shape[1]}
    if not any(x.shape[0] == shape[1] and x.shape[1] in lengths for x in examples.tensors if x.dim() == 2):
        return None
    axes = tuple(0 if k == first else axis_of_size(x, shape[0]) for k, x in enumerate(examples.tensors))
    turned = replace(examples, axes=axes)
    roles = example_roles(module, turned, names, computed, NO_LAYOUT)
    return turned if roles.mask is not None or any(second_sequences(module, turned, roles, computed)) else None
