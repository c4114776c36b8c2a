"""Inputs with tokens along their first or last axis, which a mask or lengths among them show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.module_calls import Call, ModuleCalls, row_layouts
from orderproof.models.module_wrappers import AxisMoved
from orderproof.models.roles.computed_inputs import ComputedInput, square_masks
from orderproof.models.roles.example_roles import ExampleRoles, example_roles
from orderproof.models.roles.second_sequences import second_sequences, takes_more
from orderproof.models.token_axes import axis_of_size
from orderproof.models.trial_call import check_trial_call
from orderproof.subject_spec import NO_LAYOUT

NUMBERS, VECTORS = 2, 3  # axes of one number for each token, and of one vector
LAST = 2  # the last of them
ROWS_COMPARED = 3  # each with itself alone


def tokens_first(
    module: nn.Module, examples: ExampleInputs, names: Sequence[str], computed: Mapping[int, ComputedInput]
) -> ExampleInputs | None:
    """The inputs with tokens along axis 0, if a mask among them says so; None if they are as given.

    The first is vectors [token, row, width] or ids [token, row], which have the form of [row, token, width] and
    [row, token]. It is a mask [row, token], or one [token, token] that has to grow with axis 0 in calls.
    """
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    shape = examples.tensors[first].shape
    if len(shape) not in (2, VECTORS) or examples.axes[first] != 1 or shape[0] == shape[1]:
        return None
    axes = tuple(0 if k == first else axis_of_size(x, shape[0]) for k, x in enumerate(examples.tensors))
    turned = replace(examples, axes=axes)
    squares = square_masks(turned, computed)
    known, grown = (ExampleRoles(tuple(names), each) for each in ({**computed}, {**computed, **squares}))
    if squares and not takes_more(module, known, turned):
        return turned if takes_more(module, grown, turned) else None
    lengths = {x.shape[0] for x in examples.tensors if x.dim() == len(shape) and x.shape[1] == shape[1]}
    if not any(x.shape[0] == shape[1] and x.shape[1] in lengths for x in examples.tensors if x.dim() == 2):
        return None
    roles = example_roles(module, turned, names, {**computed, **squares}, NO_LAYOUT)
    return turned if roles.mask is not None or any(second_sequences(module, turned, roles, computed)) else None


def tokens_last(module: nn.Module, examples: ExampleInputs) -> tuple[nn.Module, ExampleInputs] | None:
    """The module and its inputs with tokens along axis 1, if calls and lengths show that it has them along axis 2.

    The first input is vectors [row, width, token] then, as in libraries for speech: it is accepted with more tokens
    along axis 2 and not along axis 1, and another input is a mask [row, token] of that size, or lengths [row] of which
    the greatest is that size. None if the inputs are as usual. Outputs are moved with their input.
    """
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    shape = examples.tensors[first].shape
    if len(shape) != VECTORS or examples.axes[first] != 1 or shape[1] == shape[LAST]:
        return None
    others = [x for place, x in enumerate(examples.tensors) if place != first]
    if not any(_counts_tokens(x, shape[0], shape[LAST]) for x in others):
        return None
    axes = tuple(LAST if k == first else axis_of_size(x, shape[LAST]) for k, x in enumerate(examples.tensors))
    turned = replace(examples, axes=axes)
    calls = ModuleCalls(module, examples.name)
    base, longer = (Call(turned, shape[LAST] + more, None) for more in (0, 1))
    if calls.accepts(Call(examples, shape[1] + 1, None)) or not calls.accepts(longer):
        return None
    grown = calls.shapes(longer.inputs())
    moved = {
        name: LAST
        for name, of_output in calls.shapes(base.inputs()).items()
        if len(of_output) == VECTORS and grown.get(name) == (*of_output[:LAST], of_output[LAST] + 1)
    }
    wrapped = AxisMoved(module, [LAST if k == first else None for k in range(len(axes))], moved, place=1).eval()
    tensors = tuple(x.movedim(LAST, 1) if k == first else x for k, x in enumerate(examples.tensors))
    return wrapped, replace(examples, tensors=tensors, axes=tuple(1 if k == first else x for k, x in enumerate(axes)))


def numbers_in_rows(module: nn.Module, examples: ExampleInputs) -> tuple[ExampleInputs | None, bool]:
    """The inputs as [row, token] if calls show that the first is one number for each token; if its rows are separate.

    A matrix of floats has the form of [token, width], too, and is taken so by default. Then no token sees another where
    the first axis runs over rows, and each law holds without a meaning. It is [row, token] if each row alone has the
    same outputs, and the module takes another number of columns. None if it is not.
    """
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    tensor = examples.tensors[first]
    if tensor.dim() != NUMBERS or examples.axes[first] != 0 or not tensor.is_floating_point():
        return None, False
    columns = tensor.shape[1]
    axes = tuple(1 if k == first else axis_of_size(x, columns) for k, x in enumerate(examples.tensors))
    calls = ModuleCalls(module, examples.name)
    call = Call(next(row_layouts(replace(examples, axes=axes, row_axes=()))), columns, None)
    if not _rows_are_separate(calls, call):
        return None, False
    takes_more = all(calls.accepts(replace(call, tokens=columns + more)) for more in (1, 2))
    return (replace(examples, axes=axes) if takes_more else None), True


def _rows_are_separate(calls: ModuleCalls, call: Call) -> bool:
    """True if each of a few rows alone has the outputs that it has among the others."""
    call = replace(call, rows=ROWS_COMPARED)
    check_trial_call(calls.name, calls.module, lambda: calls.accepts(call))  # the first call of this module
    if not calls.accepts(call):
        return False
    inputs = call.inputs()
    try:
        together = calls.tensors(inputs)
        for row in range(ROWS_COMPARED):
            rows = zip(inputs, call.examples.row_axes, strict=True)
            alone = calls.tensors(tuple(x if axis is None else x.narrow(axis, row, 1) for x, axis in rows))
            torch.testing.assert_close(alone, {name: x[row : row + 1] for name, x in together.items()}, equal_nan=True)
    except Exception:  # noqa: BLE001 - the user's forward: anything may come, also another number for a row alone
        return False
    return bool(together)


def _counts_tokens(x: Tensor, rows: int, tokens: int) -> bool:
    """True for a mask [row, token], or lengths [row] of which the greatest is the number of tokens."""
    if x.dim() == 2:
        return tuple(x.shape) == (rows, tokens) and set(x.detach().flatten().tolist()) <= {0, 1}
    integers = x.dtype in (torch.int32, torch.int64)
    return integers and tuple(x.shape) == (rows,) and int(x.min()) > 0 and int(x.max()) == tokens
