"""The optional argument of a module that takes a padding mask, or lengths: by its effect, by a common name, or stated.

Tried are the arguments with a common name, other optional ones with "mask" or "len" in their name, and common names
where `**kwargs` takes them. A common name decides only where no value hides a token.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from itertools import product

from torch import nn

from orderproof.errors import UsageError
from orderproof.models.forward_arguments import PassesKeywordsOn, arguments_of_forward
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.roles.lengths_argument import LengthsArgument
from orderproof.models.roles.mask_argument import CONVENTIONS, KNOWN_MASKS, MaskArgument, PaddingMask, as_stated
from orderproof.models.roles.mask_calls import first_that_hides, weakening_mask
from orderproof.subject_spec import StatedMask


def known_mask_argument(calls: ModuleCalls, call: Call, given: Sequence[str]) -> tuple[MaskArgument, bool] | None:
    """The mask with a common name among the arguments of a module that are not given, and True if it hides a token.

    Calls decide how it marks pads; where no value hides a token, its library does, and always for what tokenizers give.
    """
    accepted = arguments_of_forward(calls.module)
    known = next((mask for mask in KNOWN_MASKS if mask.name in accepted and mask.name not in given), None)
    if known is None:
        return None
    others = (MaskArgument(known.name, *convention) for convention in CONVENTIONS)
    found = first_that_hides(calls, [known, *(mask for mask in others if mask != known)], call)
    mask = known if found is None else as_stated(found)
    assert isinstance(mask, MaskArgument)
    return mask, found is not None and not mask.contradicted


def derived_mask_argument(calls: ModuleCalls, call: Call, given: Sequence[str] = ()) -> PaddingMask | None:
    """The mask with another name, or the lengths, that is not given and hides tokens in calls of a module.

    None too if the calls take longer than `MAX_SECONDS` together.
    """
    return first_that_hides(calls, _optional_arguments(calls.module, given), call)


def weakening_argument(calls: ModuleCalls, call: Call, given: Sequence[str]) -> PaddingMask | None:
    """The mask, or the lengths, among the optional arguments of a module that weaken a token in calls most."""
    return weakening_mask(calls, _optional_arguments(calls.module, given), call)


def _optional_arguments(module: nn.Module, given: Sequence[str]) -> list[PaddingMask]:
    masks = (MaskArgument(name, *each) for name in optional_masks(module) for each in CONVENTIONS)
    found: list[PaddingMask] = [*masks, *map(LengthsArgument, _optional_lengths(module))]
    return [each for each in found if each.name not in given]


def stated_mask_argument(calls: ModuleCalls, stated: StatedMask, call: Call) -> MaskArgument:
    """The mask that a user names; calls decide how it marks pads where that is not stated. Raises `UsageError`."""
    forward = f"forward({', '.join(arguments_of_forward(calls.module))})"
    if not accepts_keyword(calls.module, stated.name):
        raise UsageError(f"expected an argument of {forward} that is a padding mask; got {stated.name!r}")
    marks = (False, True) if stated.marks_pads is None else (stated.marks_pads,)
    candidates = [MaskArgument(stated.name, *convention) for convention in product(marks, (True, False))]
    known = [mask for mask in KNOWN_MASKS if mask in candidates]
    found = first_that_hides(calls, known + candidates, call)
    if found is None and stated.marks_pads is None:
        raise UsageError(
            f"expected argument {stated.name!r} of {forward} to hide tokens; it hides none, whether 1 and True are at "
            f"real tokens or at pads; if that is right, state which: --role {stated.name}=mask:real or mask:pads"
        )
    return found or candidates[-1]


def accepts_keyword(module: nn.Module, name: str) -> bool:
    """True if the forward of a module takes an argument by this name."""
    accepted = arguments_of_forward(module)
    if name in accepted:
        return accepted[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values())


def optional_masks(module: nn.Module) -> Iterator[str]:
    """Names of optional arguments that may be masks; common ones if the module passes all keywords on."""
    accepted = arguments_of_forward(module)
    for name, parameter in accepted.items():
        if "mask" in name and parameter.default is None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            yield name
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
        given = module.gives_keyword if isinstance(module, PassesKeywordsOn) else lambda _: False
        yield from (name for name in (*(mask.name for mask in KNOWN_MASKS), "mask") if not given(name))


def _optional_lengths(module: nn.Module) -> Iterator[str]:
    """Names of optional arguments that may be the lengths of rows."""
    for name, parameter in arguments_of_forward(module).items():
        if "len" in name and parameter.default is None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            yield name
