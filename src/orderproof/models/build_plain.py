"""Build the subject of a plain module: call it at several sizes, and derive the axes of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from orderproof.batch_layout import PAD_LAYOUTS
from orderproof.errors import first_line
from orderproof.models.axes import CalledShapes, OutputAxes, input_text, stated_axes
from orderproof.models.forward_arguments import arguments_of_forward
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.merged_rows import with_split_rows
from orderproof.models.module_calls import Call, ModuleCalls, calls_to_try, row_layouts
from orderproof.models.module_wrappers import with_rows_first
from orderproof.models.plain_adapter import build_adapter
from orderproof.models.process_state import preserved_settings
from orderproof.models.roles.example_roles import ExampleRoles
from orderproof.models.roles.named_arguments import NamedArguments, named_arguments
from orderproof.models.roles.table import role_table
from orderproof.models.sample import BATCH_SIZE
from orderproof.models.subject import (
    MIN_DEFAULT_LENGTH,
    ExportContext,
    Subject,
    count_parameters,
    prime_length,
    tensor_sizes,
)
from orderproof.models.trial_call import check_trial_call
from orderproof.recording.restored_state import restored_state
from orderproof.subject_spec import TOKEN_AXIS_OPTION, Layout

NOT_ON_THE_RIGHT = {*PAD_LAYOUTS} - {"padded right", "no pads"}
_KEPT = (
    "transformers leaves out a mask that hides nothing; it is kept here, since the mask is computed from the inputs: a "
    "call with it gave the same outputs"
)
_SEPARATE = (
    "input {places}: a sequence of its own, held fixed, because the module takes another length of it than of the "
    "first input; together=True (--together) counts both as one sequence"
)


def build_plain_subject(
    module: nn.Module,
    original: nn.Module,
    examples: ExampleInputs,
    length: int | None,
    layout: Layout,
    roles: ExampleRoles,
) -> Subject:
    """The subject of a module with example inputs; `original` is the module without wrappers. Raises `SubjectError`."""
    sizes = tensor_sizes(module) | examples.non_token_sizes
    example_is_prime = examples.length == prime_length(max(examples.length, MIN_DEFAULT_LENGTH), sizes)
    prime = examples.length if example_is_prime else prime_length(MIN_DEFAULT_LENGTH, sizes | {BATCH_SIZE})
    calls = ModuleCalls(module, examples.name)
    call, notes = _probe_call(calls, examples, length or prime, fixed=length is not None)
    if not layout.together and not isinstance(layout.token_axis, Sequence) and (own := calls.separate_sequences(call)):
        axes = tuple(None if k in own else axis for k, axis in enumerate(call.examples.axes))
        call = replace(call, examples=replace(call.examples, axes=axes, row_axes=()))
        call = replace(call, examples=next(row_layouts(call.examples)))
        notes += [_SEPARATE.format(places=place) for place in own]
    call, shapes = calls.called_shapes(call)
    if layout.outputs is None and with_split_rows(calls, call, shapes):
        call, shapes = calls.called_shapes(call)
    module, (axes_of_outputs, one_length) = calls.module, _axes_of_outputs(calls, call, shapes, layout)
    notes += [*calls.unread_outputs, *_shared_examples(examples)]
    arguments = named_arguments(calls, layout, call, roles)
    notes += arguments.notes(layout)
    keeps_masks = arguments.mask is None and _left_out_masks_change_nothing(calls, original, call)
    notes += [_KEPT] * keeps_masks
    input_rows = call.examples.row_axes or (None,) * len(call.examples.tensors)
    output_rows = {name: axes.row for name, axes in axes_of_outputs.items() if axes.row}
    subject = Subject(
        name=examples.name,
        model_kind="module",
        module=module,
        token_axes=call.examples.axes,
        parameter_count=count_parameters(module),
        layer_count=None,
        default_length=call.tokens,
        max_length=call.tokens if one_length or call.tokens != (length or prime) else None,
        device="cpu",
        draw=partial(call.examples.draw, call.rows),
        load_summary=f"{_precision(module, examples.tensors[0])}, as given",
        bind_inputs=partial(_bind_inputs, module, arguments),
        export_context=_export_context(original, keeps_masks=keeps_masks),
        output_axes={name: axes.rows_first() for name, axes in axes_of_outputs.items()},
        axes_text=_input_texts(call.examples, layout) | {name: axes.text for name, axes in axes_of_outputs.items()},
        notes=tuple(notes),
        row_inputs=tuple(axis is not None for axis in input_rows),
        input_roles=role_table(roles, call.examples, arguments, layout),
        inputs_left_out=_left_out(original, roles),
        takes_documents=roles.takes_documents,
        packed_names=arguments.packed_names,
    )
    if any(input_rows) or output_rows:
        subject = with_rows_first(subject, input_rows, output_rows)
        subject.bind_inputs = partial(_bind_inputs, subject.module, arguments)
    subject.build_adapter = partial(build_adapter, subject, original, arguments, roles)
    return subject


def _precision(module: nn.Module, first: torch.Tensor) -> str:
    """The dtype of the weights, or that of the first input for a module without any."""
    dtype = next((x.dtype for x in module.parameters() if x.is_floating_point()), first.dtype)
    return str(dtype).removeprefix("torch.")


def _axes_of_outputs(
    calls: ModuleCalls, call: Call, shapes: Mapping[str, CalledShapes], layout: Layout
) -> tuple[dict[str, OutputAxes], bool]:
    """The axes of each output, and whether calls show that the module takes one length only."""
    found = {name: each.axes(name) for name, each in shapes.items()}
    one_length = any(axes.fixed for axes in found.values())
    found |= _stated(layout, found, call)
    is_open = layout.token_axis is None and layout.outputs is None
    if one_length and is_open and (why := _other_token_axis(calls, call)):
        found = {name: replace(axes, unknown_tokens=why, fixed=False) for name, axes in found.items()}
    return found, one_length


def _left_out(module: nn.Module, roles: ExampleRoles) -> tuple[str, ...]:
    """The inputs of forward that may be None and are not in the example."""
    parameters = arguments_of_forward(module)
    return tuple(name for name, each in parameters.items() if each.default is None and name not in roles.names)


def _shared_examples(examples: ExampleInputs) -> Iterator[str]:
    """A note for each example input that is the same tensor as an earlier one."""
    for place, tensor in enumerate(examples.tensors):
        earlier = next((k for k, other in enumerate(examples.tensors[:place]) if other is tensor), None)
        if earlier is not None:
            yield (
                f"input {earlier} and input {place} are one tensor in the example and two in the audit, so that a "
                "branch for one tensor is not taken; wrap the module to audit that call"
            )


def _input_texts(examples: ExampleInputs, layout: Layout) -> dict[str, str]:
    """The axes of each input in one line."""
    rows = examples.row_axes or (None,) * len(examples.tensors)
    return {
        f"input {k}": input_text(tuple(x.shape), token, row, stated=layout.token_axis is not None)
        for k, (x, token, row) in enumerate(zip(examples.tensors, examples.axes, rows, strict=True))
    }


def _bind_inputs(
    module: nn.Module, arguments: NamedArguments, extras: tuple[str, ...], setting: str
) -> tuple[nn.Module, ExportContext] | None:
    mask = arguments.mask
    if mask is not None and mask.right_only and "attention_mask" in extras and setting in NOT_ON_THE_RIGHT:
        return None
    extended = arguments.with_inputs(module, extras)
    return None if extended is None else (extended, _export_context(module))


def _probe_call(calls: ModuleCalls, examples: ExampleInputs, length: int, *, fixed: bool) -> tuple[Call, list[str]]:
    """A call that the module accepts, as the audit will make it, and notes on it; at worst that of the examples."""
    attempts = calls_to_try(examples, [length] if fixed else [length, examples.length])
    with preserved_settings(calls.name), torch.no_grad():
        check_trial_call(calls.name, calls.module, lambda: calls.first(attempts))
        with _fresh_afterwards(calls):
            call, failure = calls.first(attempts)
    if call.tokens == length:
        return call, []
    reason = "" if failure is None else f" ({first_line(failure)})"
    return call, [f"length fixed at {call.tokens}: a call with {length} tokens failed{reason}"]


def _other_token_axis(calls: ModuleCalls, call: Call) -> str:
    """Why tokens may run along another axis: the module takes other sizes of it only; empty if they do not."""
    examples = call.examples
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    tensor, usual = examples.tensors[first], examples.axes[first]
    others = (other for place, other in enumerate(examples.tensors) if place != first)
    if tensor.dim() < 3 or any(examples.length in other.shape for other in others):
        return ""
    found = []
    for axis in range(1, tensor.dim()):
        axes = tuple(axis if place == first else None for place in range(len(examples.axes)))
        larger = Call(replace(examples, axes=axes), tensor.shape[axis] + 1, call.rows)
        if axis != usual and calls.accepts(larger):
            found.append(axis)
    if len(found) != 1 or calls.seconds_left <= 0:  # a call that ran out of time refuses nothing
        return ""
    return (
        f"the module takes other sizes of axis {found[0]} of input {first}, and not of axis {usual}; state which one "
        f"runs over tokens with {TOKEN_AXIS_OPTION}"
    )


def _fresh_afterwards(calls: ModuleCalls) -> AbstractContextManager[Any]:
    """Undo what the first call keeps: what it derived from parameters would pass for a constant later."""
    lazy = any(torch.nn.parameter.is_lazy(x) for x in (*calls.module.parameters(), *calls.module.buffers()))
    return nullcontext() if lazy else restored_state(calls.module, calls.state)


def _stated(layout: Layout, found: Mapping[str, OutputAxes], call: Call) -> dict[str, OutputAxes]:
    """The axes that are stated for outputs."""
    if layout.outputs is None:
        return {}
    shapes = {name: axes.shape for name, axes in found.items()}
    return stated_axes(layout.outputs, shapes, call.tokens, call.row_count)


def _export_context(module: nn.Module, *, keeps_masks: bool = False) -> Any:
    if not _has_part_of_transformers(module):
        return nullcontext
    from orderproof.models.hf.export_patches import eager_branches

    return partial(eager_branches, module, keeps_masks=keeps_masks)


def _has_part_of_transformers(module: nn.Module) -> bool:
    return any(type(part).__module__.startswith("transformers.") for part in module.modules())


def _left_out_masks_change_nothing(calls: ModuleCalls, module: nn.Module, call: Call) -> bool:
    """True if transformers leaves out a mask in a call, since it hides nothing, and keeping it gives the same outputs.

    A mask that is computed from ids has no values in a recording, so the question cannot be asked there.
    """
    if not _has_part_of_transformers(module):
        return False
    from orderproof.models.hf.export_patches import eager_branches, masks_left_out

    inputs = call.inputs()
    with masks_left_out() as found:
        usual = calls.tensors(inputs)
    if not found:
        return False
    with eager_branches(module, keeps_masks=True):
        kept = calls.tensors(inputs)
    try:
        torch.testing.assert_close(kept, usual, equal_nan=True)
    except AssertionError:
        return False
    return True
