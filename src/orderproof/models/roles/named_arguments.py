"""The arguments of a forward that take a padding mask and position ids: as stated, by name or by their effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor, nn

from orderproof.errors import UsageError
from orderproof.models.forward_arguments import arguments_of_forward
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.roles.document_ids import DocumentIds, DocumentMask
from orderproof.models.roles.example_roles import MASK_NAMES, ExampleRoles
from orderproof.models.roles.mask_argument import MaskArgument, PaddingMask
from orderproof.models.roles.mask_calls import gives_nan_on_the_left
from orderproof.models.roles.optional_mask import (
    accepts_keyword,
    derived_mask_argument,
    known_mask_argument,
    stated_mask_argument,
    weakening_argument,
)
from orderproof.models.roles.pad_ids import PadIds, pad_ids
from orderproof.models.roles.position_argument import POSITION_NAMES, PositionArgument
from orderproof.subject_spec import NO_ARGUMENT, Layout, StatedMask

PADS_ROLE = "the role pads:ID"
NO_POSITIONS = "no argument takes position ids, as stated"


@dataclass(frozen=True)
class NamedArguments:
    """The arguments of a module that take a padding mask and position ids; None where there is none."""

    mask: PaddingMask | None = None
    position_ids: PositionArgument | None = None
    mask_hides: bool = False  # a call shows that the mask hides a token
    documents: DocumentIds | DocumentMask | None = None
    pads: PadIds | None = None  # the id of pads, where there is no mask

    def with_inputs(self, module: nn.Module, extras: Sequence[str]) -> nn.Module | None:
        """The module called with these inputs after its own; None if its forward does not take them."""
        arguments = [self._argument(extra) for extra in extras]
        known = [argument for argument in arguments if argument is not None]
        if self.documents is not None and self.packed_names == tuple(extras):  # the same in each row
            known = [replace(x, in_documents=True) if isinstance(x, PositionArgument) else x for x in known]
        elif not all(argument.has_rows for argument in known):
            return None
        return KeywordInputs(module, known) if len(known) == len(arguments) else None

    def _argument(self, extra: str) -> KeywordInput | None:
        own: dict[str, KeywordInput | None] = {"attention_mask": self.mask, "position_ids": self.position_ids}
        if self.documents is not None:
            own["block_mask" if isinstance(self.documents, DocumentMask) else "document_ids"] = self.documents
        return own.get(extra)

    @property
    def packed_names(self) -> tuple[str, ...]:
        """The inputs that say where packed documents are, besides position ids, which come after them if both do."""
        if self.documents is None:
            return ()
        own = "block_mask" if isinstance(self.documents, DocumentMask) else "document_ids"
        return (*["position_ids"] * (self.position_ids is not None), own)

    def notes(self, layout: Layout) -> Iterator[str]:
        """How each argument is understood, for the report."""
        if self.mask is not None and layout.mask is not None:
            why = self._known_by(layout.mask)
            yield f"argument {self.mask.name!r} is a padding mask, {self.mask.convention}, {why}"
        elif isinstance(self.mask, MaskArgument) and self.mask.contradicted:
            yield (
                f"argument {self.mask.name!r} hides tokens the other way round in calls than its name or its example "
                f"states; it is given with {self.mask.convention}; if calls are right, state it: --role "
                f"{self.mask.name}=mask:{'real' if self.mask.marks_pads else 'pads'}"
            )
        elif self.mask is not None:
            why = "for its name" if self.mask.name in MASK_NAMES else "since it weakens a token in that way"
            why = "since it hides a token in that way" if self.mask_hides else why
            yield (
                f"argument {self.mask.name!r} is taken for a padding mask, {self.mask.convention}, {why}; "
                "--role NAME=mask (in Python roles=) states another, "
                f"--role {self.mask.name}=held says that there is none"
            )
        if self.pads is not None:
            yield (
                f"id {self.pads.id} marks pads ({self.pads.known_by}): rows that end or begin with it are tried; "
                "--role NAME=pads:ID states another, --role NAME=pads:none says that there is none"
            )
        if layout.position_ids is not None:
            yield (
                NO_POSITIONS
                if self.position_ids is None
                else f"argument {self.position_ids.name!r} takes position ids, as stated"
            )

    def _known_by(self, stated: StatedMask) -> str:
        """How it is known that an argument is a mask, and which value it has at pads."""
        if stated.marks_pads is not None or not isinstance(self.mask, MaskArgument):
            return "as stated"
        other = "real" if self.mask.marks_pads else "pads"
        return f"which calls decided; --role {self.mask.name}=mask:{other} states the other way round"


KeywordInput = PaddingMask | PositionArgument | DocumentIds | DocumentMask


class KeywordInputs(nn.Module):
    """A module whose last inputs are passed as keyword arguments: masks, position ids, document ids."""

    def __init__(self, model: nn.Module, arguments: Sequence[KeywordInput]) -> None:
        super().__init__()
        self.model = model
        self.arguments = tuple(arguments)

    def forward(self, *inputs: Tensor) -> object:
        """Call the module with the last inputs under their names."""
        count = len(inputs) - len(self.arguments)
        values = zip(self.arguments, inputs[count:], strict=True)
        return self.model(*inputs[:count], **{argument.name: argument.value(value) for argument, value in values})


def named_arguments(calls: ModuleCalls, layout: Layout, call: Call, roles: ExampleRoles) -> NamedArguments:
    """The mask and the position ids of a module: those among its example inputs, or optional arguments.

    Args:
        calls: Those of the module.
        layout: What the user states of its arguments.
        call: A call that it accepts.
        roles: Those of the example inputs.

    Raises:
        UsageError: A stated argument does not exist, or does nothing that a padding mask does.

    """
    stated = "mask" if layout.mask else "position_ids" if layout.position_ids else ""
    first = next(place for place, axis in enumerate(call.examples.axes) if axis is not None)
    if stated and (call.examples.axes[first] not in (0, 1) or call.examples.tensors[first].dim() < 2):
        raise UsageError(
            f"expected rows and tokens along the first two axes of input {first} with {stated}, which is [row, token]; "
            f"tokens run along axis {call.examples.axes[first]}"
        )
    held = [name for name, role in layout.roles.items() if role == "held"]
    given = (*roles.names, *roles.described, *held)
    mask, hides = (roles.mask, roles.mask_hides) if roles.mask is not None else _mask(calls, layout, call, given)
    if roles.mask is None and isinstance(mask, MaskArgument) and gives_nan_on_the_left(calls, mask, call):
        mask = replace(mask, right_only=True, nan_on_the_left=True)
    positions = roles.position_ids or _position_ids(calls.module, layout, (*roles.names, *held))
    others = [mask, roles.documents, roles.cache, *([True] if roles.takes_documents else [])]
    pads = pad_ids(calls, layout, call) if layout.pads is not None or not any(x is not None for x in others) else None
    if pads is not None and any(x is not None for x in others):
        what = "a cache" if roles.cache else "packed documents" if mask is None else f"the mask {mask.name!r}"
        raise UsageError(f"expected a module without {what}, where the id of pads is stated; leave {PADS_ROLE} out")
    return NamedArguments(mask, positions, hides, roles.documents, pads)


def _refuse_given(name: str, given: Sequence[str]) -> None:
    if name in given:
        raise UsageError(f"expected an argument that no example input gives; {name!r} is input {given.index(name)}")


def _mask(calls: ModuleCalls, layout: Layout, call: Call, given: Sequence[str]) -> tuple[PaddingMask | None, bool]:
    """The mask among the optional arguments, and True if a call shows that it hides a token."""
    if layout.mask is not None:
        _refuse_given(layout.mask.name, given)
        return stated_mask_argument(calls, layout.mask, call), False
    known = known_mask_argument(calls, call, given)
    if known is not None:
        return known
    derived = derived_mask_argument(calls, call, given)
    return derived or weakening_argument(calls, call, given), derived is not None


def _position_ids(module: nn.Module, layout: Layout, given: Sequence[str]) -> PositionArgument | None:
    accepted = arguments_of_forward(module)
    if layout.position_ids is None:
        name = next((name for name in POSITION_NAMES if name in accepted and name not in given), None)
        return None if name is None else PositionArgument(name)
    if layout.position_ids == NO_ARGUMENT:
        return None
    _refuse_given(layout.position_ids, given)
    if not accepts_keyword(module, layout.position_ids):
        raise UsageError(
            f"expected an argument of forward({', '.join(accepted)}) that takes position ids; got "
            f"{layout.position_ids!r}"
        )
    return PositionArgument(layout.position_ids)
