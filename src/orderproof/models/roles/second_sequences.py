"""Further sequences among the inputs of a module: that of a decoder, or memory with a padding mask of its own.

An input is a second sequence if a mask hides its tokens in calls: another input, or an optional argument. Where no call
decides, the name of a mask does, if it begins as that of the sequence. Pads of it must change no output, as those of
the first sequence. It is one too if an output has a token more for one more of it, and not for one more of the first:
that of a decoder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from torch import Tensor, nn

from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.roles.computed_inputs import ComputedInput, OfLength, TriangularMask, square_masks
from orderproof.models.roles.example_roles import (
    BY_CALLS,
    BY_NAME,
    BY_WEAKENING,
    STATED,
    ExampleRoles,
    forms_of_mask,
    note_sides,
)
from orderproof.models.roles.mask_argument import PaddingMask, usual_masks
from orderproof.models.roles.mask_calls import accepts, first_that_hides
from orderproof.models.roles.optional_mask import derived_mask_argument, optional_masks
from orderproof.models.token_axes import axis_of_size
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
    """The further sequences; ``roles`` are those of the first one."""
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    by_name = {place for place, how in roles.known_by.items() if how in (BY_NAME, BY_WEAKENING)}
    stated = {place for place, how in roles.known_by.items() if how == STATED}
    known = ({first, *roles.computed} | {*computed} | stated) - by_name
    taken = set[int]()
    for place, tensor in enumerate(examples.tensors):
        axis = _token_axis(tensor, 0 if examples.axes[first] == 0 else 1)
        if place in known or place in taken or axis is None:
            continue
        if examples.axes[place] is not None and _must_be_as_long(module, examples, roles, place):
            continue
        own = _with_companions(module, examples, roles, place)
        found = _roles_of(module, own, roles, known, examples.length)
        if found is not None:
            found = _with_contested_squares(module, own, found)
            note_sides(module, own, found)
        elif place not in roles.computed:
            found = _of_outputs(module, examples, roles, own)
        if found is not None:
            taken |= {k for k, axis in enumerate(own.axes) if axis is not None}
            taken |= {k for k, computed in found.computed.items() if computed is found.mask}
            yield SecondSequence(place, own, found)


def _must_be_as_long(module: nn.Module, examples: ExampleInputs, roles: ExampleRoles, place: int) -> bool:
    """True if an input grows with the first sequence only, as its positions; a given mask could grow with either."""
    alone = tuple(axis if k == place else None for k, axis in enumerate(examples.axes))
    own = replace(examples, axes=alone, row_axes=())
    return not roles.computed and not takes_more(module, roles, own) and takes_more(module, roles, examples)


def _with_companions(module: nn.Module, examples: ExampleInputs, roles: ExampleRoles, place: int) -> ExampleInputs:
    """The inputs with the tokens of a second sequence: its own, and those that must have as many, as its positions."""
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    axis = 0 if examples.axes[first] == 0 else 1
    size = examples.tensors[place].shape[axis]
    found = {k: axis_of_size(x, size) for k, x in enumerate(examples.tensors) if k not in (first, *roles.computed)}
    others = [k for k, x in found.items() if x is not None and k != place]
    held = ExampleRoles(roles.names, {k: OfLength(x, examples.length) for k, x in roles.computed.items()})

    def along(places: Collection[int]) -> ExampleInputs:
        axes = ((axis if k == place else found[k]) if k in places else None for k in range(len(examples.axes)))
        return replace(examples, axes=tuple(axes), row_axes=())

    alone = along([place])
    if (
        place in roles.computed
        or not others
        or takes_more(module, held, alone)
        or not takes_more(module, held, along([place, *others]))
    ):
        return alone
    for k in tuple(others):
        rest = [other for other in others if other != k]
        if takes_more(module, held, along([place, *rest])):
            others = rest
    return along([place, *(k for k in others if not forms_of_mask(alone, roles.names[k], k))])


def takes_more(module: nn.Module, roles: ExampleRoles, examples: ExampleInputs) -> bool:
    """True if a module takes one token more along the axes of the examples."""
    called, rest = roles.called(module, examples)
    return ModuleCalls(called, examples.name).accepts(Call(rest, examples.length + 1, None))


def _token_axis(tensor: Tensor, axis: int) -> int | None:
    """The axis of tokens of vectors [row, token, width] or ids [row, token]; ``axis`` is that of the first sequence."""
    form = tensor.dim() == 3 if tensor.is_floating_point() else tensor.dim() == 2 and tensor.dtype.itemsize > 1
    return axis if form and tensor.shape[axis] > 1 else None


def _roles_of(
    module: nn.Module, own: ExampleInputs, roles: ExampleRoles, known: Collection[int], length: int
) -> ExampleRoles | None:
    """The roles with respect to one sequence, if it has a mask; `known` inputs are those of the first sequence.

    A call shows that the mask hides its tokens, or both have a name in common: `memory` and `memory_mask`.
    """
    held: dict[int, ComputedInput] = {k: OfLength(x, length) for k, x in roles.computed.items() if k in known}
    held |= square_masks(own, held)
    found = ExampleRoles(roles.names, held)
    called, rest = found.called(module, own)
    place = next(k for k, axis in enumerate(own.axes) if axis is not None)
    given = [k for k in range(len(own.axes)) if k not in held and k not in known and k != place]
    calls, call = ModuleCalls(called, own.name), Call(rest, own.length, None)
    named = [k for k in given if _share_a_word(roles.names[k], roles.names[place])]
    by_name: tuple[int, PaddingMask] | None = None
    for k in (*named, *(k for k in given if k not in named)):
        forms = forms_of_mask(own, roles.names[k], k)
        trial, its_rest = (
            ExampleRoles(roles.names, {**held, k: forms[0]}).called(module, own) if forms else (None, None)
        )
        if trial is None or its_rest is None:
            continue
        mask = first_that_hides(ModuleCalls(trial, own.name), forms, Call(its_rest, own.length, None))
        if mask is not None:
            return replace(found, computed={**held, k: mask}, mask=mask, mask_hides=True)
        if k in named and by_name is None:
            by_name = k, forms[0]
    if by_name is not None:
        return replace(found, computed={**held, by_name[0]: by_name[1]}, mask=by_name[1])
    mask = derived_mask_argument(calls, call)
    if mask is not None:
        return replace(found, mask=mask, mask_hides=True)
    words = [name for name in optional_masks(called) if _share_a_word(name, roles.names[place])]
    mask = next((m for name in words for m in usual_masks(name) if accepts(calls, m, call)), None)
    return None if mask is None else replace(found, mask=mask)


def _of_outputs(
    module: nn.Module, examples: ExampleInputs, roles: ExampleRoles, own: ExampleInputs
) -> ExampleRoles | None:
    """The roles with respect to a sequence without a mask, if an output grows with it and not with the first one."""
    held: dict[int, ComputedInput] = {k: OfLength(x, examples.length) for k, x in roles.computed.items()}
    found = _with_contested_squares(module, own, ExampleRoles(roles.names, held | square_masks(own, held)))
    grown = _grown_outputs(found, module, own)
    return found if grown and grown - _grown_outputs(roles, module, examples) else None


def _grown_outputs(roles: ExampleRoles, module: nn.Module, examples: ExampleInputs) -> set[str]:
    """The outputs that have one entry more along one axis in a call with one token more; none if it is refused."""
    called, rest = roles.called(module, examples)
    calls, call = ModuleCalls(called, examples.name), Call(rest, examples.length, None)
    base, grown, failure = calls.with_more(call)[1], *calls.with_more(call, tokens=1)[1:]
    return set() if failure else {name for name, x in base.items() if _is_longer(grown.get(name, ()), x)}


def _is_longer(shape: tuple[int, ...], base: tuple[int, ...]) -> bool:
    return len(shape) == len(base) and sorted(a - b for a, b in zip(shape, base, strict=True))[-2:] in ([0, 1], [1])


def _with_contested_squares(module: nn.Module, own: ExampleInputs, found: ExampleRoles) -> ExampleRoles:
    """The roles with the masks [token, token] of both lengths, if these are equal, that have to grow with this one."""
    for place, square in square_masks(own).items():
        if found.computed.get(place) != square and not takes_more(module, found, own):
            other = replace(found, computed={**found.computed, place: square})
            found = other if takes_more(module, other, own) else found
    return found


def _share_a_word(name: str, other: str) -> bool:
    """True if two names begin with the same word."""
    return name.partition("_")[0] == other.partition("_")[0]


def claim(roles: ExampleRoles, examples: ExampleInputs, second: SecondSequence) -> ExampleInputs:
    """Take the inputs of a second sequence out of the roles of the first; the inputs, with these held."""
    mask, name = second.roles.mask, roles.names[second.place]
    known_by = "calls: an output grows with it" if mask is None else "its mask"
    roles.described[name] = InputRole(name=name, role="a sequence of its own, held in other laws", known_by=known_by)
    own = [k for k, axis in enumerate(second.examples.axes) if axis is not None]
    for k in own:
        if k != second.place:
            role = InputRole(
                name=roles.names[k], role=f"moves and grows with {name}", known_by="calls: it must be as long"
            )
            roles.described[role.name] = role
    places = [] if mask is None else [place for place, x in second.roles.computed.items() if x is mask]
    for place, square in second.roles.computed.items():
        if isinstance(square, TriangularMask):
            roles.computed[place] = OfLength(square, second.examples.length)
            described = InputRole(name=roles.names[place], role=f"{square.text} of {name}", known_by="its values")
            roles.described[described.name] = described
    if mask is not None:
        roles.described[mask.name] = InputRole(
            name=mask.name,
            role=f"padding mask of {name}, {mask.convention}{'' if places else '; not given by default'}",
            known_by=BY_CALLS if second.roles.mask_hides else f"its name, {name!r} and no call",
        )
    for place in places:
        assert mask is not None
        roles.computed[place] = OfLength(mask, second.examples.length)
        if roles.mask is not None and roles.mask.name == mask.name:
            roles.mask = None
    return replace(examples, axes=tuple(None if k in (*own, *places) else a for k, a in enumerate(examples.axes)))
