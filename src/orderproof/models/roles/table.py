"""The role of each input as the report shows it."""

from __future__ import annotations

from collections.abc import Iterator

from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.roles.computed_inputs import KeptNumber, OfLength, TriangularMask
from orderproof.models.roles.example_roles import (
    BY_CALLS,
    BY_NAME,
    BY_WEAKENING,
    CONTRADICTED,
    MASK_NAMES,
    ExampleRoles,
)
from orderproof.models.roles.lengths_argument import LengthsArgument
from orderproof.models.roles.mask_argument import MaskArgument
from orderproof.models.roles.named_arguments import NamedArguments
from orderproof.models.roles.packed_documents import DocumentInput
from orderproof.models.roles.position_argument import PositionArgument
from orderproof.records.input_role import InputRole
from orderproof.subject_spec import Layout


def role_table(
    roles: ExampleRoles, kept: ExampleInputs, arguments: NamedArguments, layout: Layout
) -> tuple[InputRole, ...]:
    """The roles of the example inputs, then those of optional arguments that laws give.

    ``kept`` are the inputs that are not computed, with the axes along which they are called.
    """
    return (*_example_rows(roles, kept), *_argument_rows(roles, arguments, layout))


def _example_rows(roles: ExampleRoles, kept: ExampleInputs) -> Iterator[InputRole]:
    given = iter(range(len(kept.tensors)))
    first = next(place for place, axis in enumerate(kept.axes) if axis is not None)
    for place, name in enumerate(roles.names):
        if place in roles.computed and name not in roles.described:
            yield InputRole(
                name=name, role=_computed_role(roles.computed[place]), known_by=roles.known_by.get(place, "its values")
            )
            continue
        index = -1 if place in roles.computed else next(given)
        if name in roles.described:
            yield roles.described[name]
            continue
        has_rows = bool(kept.row_axes) and kept.row_axes[index] is not None
        if index == first:
            ids = not kept.tensors[index].is_floating_point()
            yield InputRole(
                name=name,
                role="tokens: ids" if ids else "tokens: vectors",
                known_by="the first input with an axis of tokens",
            )
            continue
        role, known_by = (
            ("moves and grows with the tokens", "its axis of tokens")
            if kept.axes[index] is not None
            else ("moves with its row, held otherwise", "its axis of rows")
            if has_rows
            else ("held: the same in every call", "no axis of rows or tokens")
        )
        yield InputRole(name=name, role=role, known_by=roles.known_by.get(place, known_by))


def _computed_role(computed: object) -> str:
    if isinstance(computed, LengthsArgument):
        return computed.convention
    if isinstance(computed, MaskArgument):
        return f"padding mask, {computed.convention}"
    if isinstance(computed, PositionArgument):
        return "position ids"
    if isinstance(computed, KeptNumber):
        return "held: the same in every call"
    if isinstance(computed, OfLength):
        return _computed_role(computed.computed)
    return computed.text if isinstance(computed, DocumentInput | TriangularMask) else "computed"


def _argument_rows(roles: ExampleRoles, arguments: NamedArguments, layout: Layout) -> Iterator[InputRole]:
    yield from (role for name, role in roles.described.items() if name not in roles.names)
    mask, positions = arguments.mask, arguments.position_ids
    if mask is not None and roles.mask is None:
        by = (
            "stated"
            if layout.mask is not None
            else CONTRADICTED
            if isinstance(mask, MaskArgument) and mask.contradicted
            else BY_CALLS
            if arguments.mask_hides
            else BY_NAME
            if mask.name in MASK_NAMES
            else BY_WEAKENING
        )
        yield InputRole(name=mask.name, role=f"padding mask, {mask.convention}; not given by default", known_by=by)
    if positions is not None and roles.position_ids is None:
        by = "stated" if layout.position_ids is not None else "its name"
        yield InputRole(name=positions.name, role="position ids; not given by default", known_by=by)
    if (cache := roles.cache) is not None:
        given = "given empty" if cache.is_required else "not given"
        for name in cache.names:
            yield InputRole(name=name, role=f"cache; {given} by default, and no output", known_by=cache.known_by)
        if cache.offset:
            yield InputRole(name=cache.offset, role="number of cached tokens", known_by=cache.known_by)
