"""Further sequences among the inputs of a module, each with a padding mask of its own: that of a decoder, or memory.

An input is a second sequence if a mask hides its tokens in calls: another input, or an optional argument. Pads of it
must change no output, as those of the first sequence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor, nn

from orderproof.errors import OrderproofError
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.roles.computed_inputs import ComputedInput
from orderproof.models.roles.example_roles import BY_CALLS, BY_NAME, ExampleRoles, example_roles
from orderproof.models.roles.mask_argument import derived_mask_argument
from orderproof.records.input_role import InputRole
from orderproof.subject_spec import NO_ARGUMENT, Layout

SECOND_LAYOUT = Layout(position_ids=NO_ARGUMENT)  # position ids are those of the first sequence


@dataclass(frozen=True)
class SecondSequence:
    """A further sequence: its place among the inputs, the inputs with its tokens, and their roles."""

    place: int
    examples: ExampleInputs
    roles: ExampleRoles


def second_sequences(
    module: nn.Module, examples: ExampleInputs, roles: ExampleRoles, computed: Mapping[int, ComputedInput]
) -> Iterator[SecondSequence]:
    """The further sequences whose tokens a mask hides in calls; ``roles`` are those of the first one."""
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    by_name = {place for place, how in roles.known_by.items() if how == BY_NAME}
    known = ({first, *roles.computed} | {*computed}) - by_name
    for place, tensor in enumerate(examples.tensors):
        axis = _token_axis(tensor, 0 if examples.axes[first] == 0 else 1)
        if place in known or axis is None:
            continue
        axes = tuple(axis if k == place else None for k in range(len(examples.axes)))
        own = replace(examples, axes=axes, row_axes=())
        found = _with_mask(module, own, roles.names, known)
        if found is not None:
            yield SecondSequence(place, own, found)


def _token_axis(tensor: Tensor, axis: int) -> int | None:
    """The axis of tokens of vectors [row, token, width] or ids [row, token]; ``axis`` is that of the first sequence."""
    form = tensor.dim() == 3 if tensor.is_floating_point() else tensor.dim() == 2 and tensor.dtype.itemsize > 1
    return axis if form and tensor.shape[axis] > 1 else None


def _with_mask(
    module: nn.Module, own: ExampleInputs, names: Sequence[str], known: Collection[int]
) -> ExampleRoles | None:
    """The roles with respect to one sequence, if a mask hides its tokens in calls; `known` inputs are held."""
    try:
        found = example_roles(module, own, names, {}, SECOND_LAYOUT, held=known)
    except OrderproofError:  # two masks that contradict each other, for a sequence that has none
        return None
    if found.mask_hides:
        found.computed = {k: x for k, x in found.computed.items() if found.known_by[k] == BY_CALLS}
        return found
    mask = derived_mask_argument(ModuleCalls(module, own.name), Call(own, own.length, None))
    return None if mask is None else ExampleRoles(tuple(names), mask=mask, mask_hides=True)


def claim(roles: ExampleRoles, examples: ExampleInputs, second: SecondSequence) -> ExampleInputs:
    """Take the inputs of a second sequence out of the roles of the first; the inputs, with these held."""
    mask = second.roles.mask
    assert mask is not None
    name = roles.names[second.place]
    roles.described[name] = InputRole(name=name, role="a sequence of its own, held in other laws", known_by="its mask")
    given = "" if second.roles.computed else "; not given by default"
    roles.described[mask.name] = InputRole(
        name=mask.name, role=f"padding mask of {name}, {mask.convention}{given}", known_by=BY_CALLS
    )
    for place in second.roles.computed:
        roles.computed.pop(place, None)
        if roles.mask is not None and roles.mask.name == roles.names[place]:
            roles.mask = None
    held = {second.place, *second.roles.computed}
    return replace(examples, axes=tuple(None if k in held else axis for k, axis in enumerate(examples.axes)))
