"""The argument of a module that takes a padding mask [row, token], and how it marks pads.

Arguments with a common name mark pads as their libraries do. Of any other optional argument with "mask" in its name,
and of common names where `**kwargs` takes them, calls decide: a value that hides a token changes no output of other
tokens if that token is replaced. A user can state the argument instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from orderproof.errors import UsageError
from orderproof.models.forward_arguments import arguments_of_forward
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.own_errors import raise_own_error
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.restored_state import restored_state
from orderproof.seeded_random import seeded_random
from orderproof.subject_spec import StatedMask
from orderproof.time_limit import TimeLimitExceeded, time_limit

MAX_SECONDS = 10.0  # of all calls that look for a mask
ROUNDING = 1e-6  # relative; what a hidden token may change in float32


@dataclass(frozen=True)
class MaskArgument:
    """The name of a mask among the arguments of a forward, and its values."""

    name: str
    marks_pads: bool = False  # True, or 1, at pads; otherwise at real tokens
    boolean: bool = False

    def value(self, mask: Tensor) -> Tensor:
        """A mask (1 at real tokens, 0 at pads) as this argument takes it."""
        marked = mask == 0 if self.marks_pads else mask
        return marked.bool() if self.boolean else marked.to(mask.dtype)

    @property
    def convention(self) -> str:
        """Which tokens it marks, and with which value: `True at pads`."""
        return f"{'True' if self.boolean else '1'} at {'pads' if self.marks_pads else 'real tokens'}"


KNOWN_MASKS = (
    MaskArgument("attention_mask"),
    MaskArgument("padding_mask", boolean=True),
    MaskArgument("key_padding_mask", marks_pads=True, boolean=True),
    MaskArgument("src_key_padding_mask", marks_pads=True, boolean=True),
)


def known_mask_argument(module: nn.Module) -> MaskArgument | None:
    """The mask with a common name that the forward of a module takes."""
    accepted = arguments_of_forward(module)
    return next((mask for mask in KNOWN_MASKS if mask.name in accepted), None)


def derived_mask_argument(calls: ModuleCalls, call: Call) -> MaskArgument | None:
    """The mask with another name that hides tokens in calls of a module; its first input is [row, token, ...].

    None too if the calls take longer than `MAX_SECONDS` together.
    """
    conventions = product(_optional_masks(calls.module), (False, True), (True, False))
    return _first_that_hides(calls, (MaskArgument(*convention) for convention in conventions), call)


def stated_mask_argument(calls: ModuleCalls, stated: StatedMask, call: Call) -> MaskArgument:
    """The mask that a user names; calls decide how it marks pads where that is not stated. Raises `UsageError`."""
    forward = f"forward({', '.join(arguments_of_forward(calls.module))})"
    if not accepts_keyword(calls.module, stated.name):
        raise UsageError(f"expected an argument of {forward} that is a padding mask; got {stated.name!r}")
    marks = (False, True) if stated.marks_pads is None else (stated.marks_pads,)
    candidates = [MaskArgument(stated.name, *convention) for convention in product(marks, (True, False))]
    known = [mask for mask in KNOWN_MASKS if mask in candidates]
    found = _first_that_hides(calls, known + candidates, call)
    if found is None and stated.marks_pads is None:
        raise UsageError(
            f"expected argument {stated.name!r} of {forward} to hide tokens; it hides none, whether 1 and True are at "
            f"real tokens or at pads; if that is right, state which: {stated.name}=real or {stated.name}=pads"
        )
    return found or candidates[-1]


def accepts_keyword(module: nn.Module, name: str) -> bool:
    """True if the forward of a module takes an argument by this name."""
    accepted = arguments_of_forward(module)
    if name in accepted:
        return accepted[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values())


def _first_that_hides(calls: ModuleCalls, candidates: Iterable[MaskArgument], call: Call) -> MaskArgument | None:
    """The first mask that hides tokens in calls; None too if they take longer than `MAX_SECONDS` together."""
    try:
        with time_limit(MAX_SECONDS):
            return next((mask for mask in candidates if _hides_a_token(calls, mask, call)), None)
    except TimeLimitExceeded:
        return None


def _optional_masks(module: nn.Module) -> Iterator[str]:
    """Names of optional arguments that may be masks; common ones if the module passes all keywords on."""
    accepted = arguments_of_forward(module)
    for name, parameter in accepted.items():
        if "mask" in name and parameter.default is None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            yield name
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
        yield from (mask.name for mask in KNOWN_MASKS)
        yield "mask"


def _hides_a_token(calls: ModuleCalls, mask: MaskArgument, call: Call) -> bool:
    """True if replacing a token changes other outputs where all tokens are real, and none where it is a pad."""
    inputs, others = call.inputs(0), call.inputs(1)
    rows, length = inputs[0].shape[:2]
    if length < 2:
        return False
    place = length // 2
    replaced = inputs[0].clone()
    replaced[:, place] = others[0][:, place]
    pair = (inputs, (replaced, *inputs[1:]))
    everywhere = torch.ones(rows, length, dtype=torch.long)
    hidden = everywhere.clone()
    hidden[:, place] = 0
    try:
        with torch.no_grad(), restored_state(calls.module, calls.state):
            seen = [_outputs(calls.module, each, mask.name, mask.value(everywhere), place) for each in pair]
            unseen = [_outputs(calls.module, each, mask.name, mask.value(hidden), place) for each in pair]
    except SystemExit:
        return False
    except Exception as error:  # noqa: BLE001 - the user's forward refuses a mask of this form
        raise_own_error(error)
        return False
    return bool(unseen[0]) and _differ(*seen) and not _differ(*unseen)


def _outputs(module: nn.Module, inputs: tuple[Tensor, ...], name: str, mask: Tensor, left_out: int) -> list[Tensor]:
    """The outputs [row, token, ...] of a call without those of one token."""
    with seeded_random(0):
        found = leaves_by_name(module(*(x.clone() for x in inputs), **{name: mask})).values()
    kept = torch.arange(mask.shape[1]) != left_out
    same = (x for x in found if isinstance(x, Tensor) and x.is_floating_point() and x.shape[:2] == mask.shape)
    return [x[:, kept].double() for x in same]


def _differ(first: list[Tensor], second: list[Tensor]) -> bool:
    """True if an output differs by more than rounding, or is not finite."""
    return any(not (x - y).abs().max() <= ROUNDING * y.abs().max() for x, y in zip(first, second, strict=True))
