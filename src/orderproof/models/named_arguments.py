"""The arguments of a forward that take a padding mask and position ids: as stated, by name or by their effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from orderproof.errors import UsageError
from orderproof.models.forward_arguments import PassesKeywordsOn, arguments_of_forward
from orderproof.models.mask_argument import (
    KNOWN_MASKS,
    MaskArgument,
    accepts_keyword,
    derived_mask_argument,
    known_mask_argument,
    stated_mask_argument,
)
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.subject_spec import NO_ARGUMENT, Layout, parse_stated_mask

POSITION_IDS = ("position_ids", "positions")  # common names


@dataclass(frozen=True)
class NamedArguments:
    """The arguments of a module that take a padding mask and position ids; None where there is none."""

    mask: MaskArgument | None = None
    position_ids: str | None = None

    def with_inputs(self, module: nn.Module, extras: Sequence[str]) -> nn.Module | None:
        """The module called with these inputs after its own; None if its forward does not take them."""
        own = {"attention_mask": self.mask, "position_ids": self.position_ids}
        arguments = [own.get(extra) for extra in extras]
        known = [argument for argument in arguments if argument is not None]
        return KeywordInputs(module, known) if len(known) == len(arguments) else None

    def notes(self, layout: Layout) -> Iterator[str]:
        """How each argument is understood, for the report."""
        if self.mask is None:
            yield from ["no argument is a padding mask, as stated"] * (layout.mask is not None)
        elif layout.mask is not None:
            yield f"argument {self.mask.name!r} is a padding mask, {self.mask.convention}, as stated"
        else:
            why = "for its name" if self.mask in KNOWN_MASKS else "since it hides a token in that way"
            yield (
                f"argument {self.mask.name!r} is taken for a padding mask, {self.mask.convention}, {why}; --mask (in "
                "Python mask=) states it otherwise"
            )
        if layout.position_ids is not None:
            yield (
                "no argument takes position ids, as stated"
                if self.position_ids is None
                else f"argument {self.position_ids!r} takes position ids, as stated"
            )


class KeywordInputs(nn.Module):
    """A module whose last inputs are passed as keyword arguments, each a position ids argument or a mask."""

    def __init__(self, model: nn.Module, arguments: Sequence[str | MaskArgument]) -> None:
        super().__init__()
        self.model = model
        self.arguments = tuple(arguments)

    def forward(self, *inputs: Tensor) -> object:
        """Call the module with the last inputs under their names."""
        count = len(inputs) - len(self.arguments)
        keywords = {}
        for argument, value in zip(self.arguments, inputs[count:], strict=True):
            if isinstance(argument, str):
                keywords[argument] = value
            else:
                keywords[argument.name] = argument.value(value)
        return self.model(*inputs[:count], **keywords)


def named_arguments(calls: ModuleCalls, layout: Layout, call: Call) -> NamedArguments:
    """The mask and the position ids of a module.

    Args:
        calls: Those of the module.
        layout: What the user states of its arguments.
        call: A call that it accepts.

    Raises:
        UsageError: A stated argument does not exist, or does nothing that a padding mask does.

    """
    stated = "mask" if layout.mask else "position_ids" if layout.position_ids else ""
    if stated and call.examples.axes[0] != 1:
        raise UsageError(
            f"expected tokens along axis 1 of the first input with {stated}, which is [row, token]; they run along "
            f"axis {call.examples.axes[0]}"
        )
    given = _given_by_place(calls.module, len(call.examples.tensors))
    mask = _mask(calls, layout, call, given)
    return NamedArguments(mask, _position_ids(calls.module, layout, given))


def _given_by_place(module: nn.Module, count: int) -> tuple[str, ...]:
    """The names of the arguments that the example inputs give."""
    return () if isinstance(module, PassesKeywordsOn) else tuple(arguments_of_forward(module))[:count]


def _refuse_given(name: str, given: Sequence[str]) -> None:
    if name in given:
        raise UsageError(f"expected an argument that no example input gives; {name!r} is input {given.index(name)}")


def _mask(calls: ModuleCalls, layout: Layout, call: Call, given: Sequence[str]) -> MaskArgument | None:
    if layout.mask is not None:
        stated = parse_stated_mask(layout.mask)
        if stated is None:
            return None
        _refuse_given(stated.name, given)
        return stated_mask_argument(calls, stated, call)
    known = known_mask_argument(calls.module)
    if known is not None or tuple(call.examples.axes) != (1,):
        return None if known is None or known.name in given else known
    return derived_mask_argument(calls, call)


def _position_ids(module: nn.Module, layout: Layout, given: Sequence[str]) -> str | None:
    if layout.position_ids is None:
        accepted = arguments_of_forward(module)
        return next((name for name in POSITION_IDS if name in accepted and name not in given), None)
    if layout.position_ids == NO_ARGUMENT:
        return None
    _refuse_given(layout.position_ids, given)
    if not accepts_keyword(module, layout.position_ids):
        raise UsageError(
            f"expected an argument of forward({', '.join(arguments_of_forward(module))}) that takes position ids, or "
            f"{NO_ARGUMENT}; got {layout.position_ids!r}"
        )
    return layout.position_ids
