"""The argument of a module that takes a padding mask, and how it marks pads.

Calls decide: a mask hides a token if replacing that token then changes no output of other tokens, and does where all
tokens are real. Tried are the arguments with a common name, other optional ones with "mask" in their name, common names
where `**kwargs` takes them, and example inputs of the form of a mask. A common name decides only where no value hides a
token. A user can state the argument instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from orderproof.errors import UsageError
from orderproof.models.forward_arguments import arguments_of_forward
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.own_errors import raise_own_error
from orderproof.models.roles.lengths_argument import LengthsArgument
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.restored_state import restored_state
from orderproof.seeded_random import seeded_random
from orderproof.subject_spec import StatedMask
from orderproof.time_limit import TimeLimitExceeded, time_limit

MAX_SECONDS = 10.0  # of all calls that look for a mask
WEAKER = 0.9  # a mask weakens a token if replacing it changes outputs less than this part of what it does otherwise
ROUNDING = 1e-6  # relative; what a hidden token may change in float32


@dataclass(frozen=True)
class MaskArgument:
    """The name of a mask among the arguments of a forward, and its values.

    Attributes:
        name: Its name.
        marks_pads: True, or 1, is at pads; otherwise at real tokens.
        boolean: It is boolean.
        dtype: Its dtype, if it is known; otherwise integers as they come, or booleans.
        added: The number at pads of a mask that is added to scores, and 0 at real tokens; None of other masks.
        rank: Its axes: [row, token], [row, 1, token] or [row, 1, 1, token].
        queries: Its axis before the last runs over tokens too, with the same keys for each; "causal": with the later
            keys hidden.

    """

    name: str
    marks_pads: bool = False
    boolean: bool = False
    dtype: torch.dtype | None = None
    added: float | None = None
    rank: int = 2
    queries: Literal["", "same", "causal"] = ""

    has_rows = True
    right_only = False

    def check(self, mask: Tensor) -> None:
        """Every mask is one that it takes."""

    def value(self, mask: Tensor) -> Tensor:
        """A mask [row, token] (1 at real tokens, 0 at pads) as this argument takes it."""
        if self.rank > 2:
            mask = mask[(slice(None), *(None,) * (self.rank - 2))]
        if self.queries:
            tokens = mask.shape[-1]
            mask = mask.expand(*mask.shape[:-2], tokens, tokens)
            if self.queries == "causal":
                mask = mask * torch.ones(tokens, tokens, dtype=mask.dtype, device=mask.device).tril()
        if self.added is not None:
            return torch.where(mask == 0, self.added, 0.0).to(self.dtype or torch.float32)
        marked = mask == 0 if self.marks_pads else mask
        return marked.bool() if self.boolean else marked.to(self.dtype or mask.dtype)

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """The mask of a call without pads."""
        return self.value(torch.ones(rows, tokens, dtype=torch.long, device=device))

    @property
    def convention(self) -> str:
        """Which tokens it marks, and with which value: `True at pads`."""
        if self.added is not None:
            return f"{self.added:g} at pads"
        return f"{'True' if self.boolean else '1'} at {'pads' if self.marks_pads else 'real tokens'}"


PaddingMask = MaskArgument | LengthsArgument
KNOWN_MASKS = (
    MaskArgument("attention_mask"),
    MaskArgument("padding_mask", boolean=True),
    MaskArgument("key_padding_mask", marks_pads=True, boolean=True),
    MaskArgument("src_key_padding_mask", marks_pads=True, boolean=True),
)
Mask = TypeVar("Mask", bound=PaddingMask)
CONVENTIONS = tuple(product((False, True), (True, False)))  # marks pads, boolean


def known_mask_argument(calls: ModuleCalls, call: Call, given: Sequence[str]) -> tuple[MaskArgument, bool] | None:
    """The mask with a common name among the arguments of a module that are not given, and True if it hides a token.

    Calls decide how it marks pads; where no value hides a token, its library does.
    """
    accepted = arguments_of_forward(calls.module)
    known = next((mask for mask in KNOWN_MASKS if mask.name in accepted and mask.name not in given), None)
    if known is None:
        return None
    others = (MaskArgument(known.name, *convention) for convention in CONVENTIONS)
    found = first_that_hides(calls, [known, *(mask for mask in others if mask != known)], call)
    return found or known, found is not None


def mask_forms(name: str, example: Tensor, rows: int, tokens: int) -> list[MaskArgument]:
    """The masks of which an example input may be one, the likely one first; none if it has not the form of a mask."""
    shape = tuple(example.shape)
    square = len(shape) > 2 and shape[-2:] == (tokens, tokens)
    between = shape[1:-2] if square else shape[1:-1]
    if not 2 <= len(shape) <= 4 or shape[0] not in (rows, 1) or shape[-1] != tokens or any(n != 1 for n in between):
        return []
    queries: Literal["", "same", "causal"] = "same" if square else ""
    if square and not bool((example == example[..., :1, :]).all()):
        queries = "causal"
    form = {"dtype": example.dtype, "rank": len(shape), "queries": queries}
    values = set(example.detach().flatten()[:4096].tolist())
    if values <= {0, 1}:
        boolean = example.dtype is torch.bool
        found = [MaskArgument(name, marks, boolean, **form) for marks in _likely_marks(name, example)]  # type: ignore[arg-type]
    else:
        found = []
    if example.is_floating_point() and (values == {0.0} or (len(values) == 2 and 0.0 in values and min(values) < -999)):
        added = min(values) if len(values) == 2 else torch.finfo(example.dtype).min
        found.append(MaskArgument(name, added=added, **form))  # type: ignore[arg-type]
    return found


def _likely_marks(name: str, example: Tensor) -> tuple[bool, bool]:
    """The two conventions, that of a common name first; else the one in which more tokens of the example are real."""
    known = next((mask.marks_pads for mask in KNOWN_MASKS if mask.name == name), None)
    marks = float(example.double().mean()) < 0.5 if known is None else known
    return marks, not marks


def derived_mask_argument(calls: ModuleCalls, call: Call) -> PaddingMask | None:
    """The mask with another name, or the lengths, that hide tokens in calls of a module.

    None too if the calls take longer than `MAX_SECONDS` together.
    """
    candidates = _optional_arguments(calls.module)
    return first_that_hides(calls, candidates, call)


def weakening_argument(calls: ModuleCalls, call: Call) -> PaddingMask | None:
    """The mask, or the lengths, among the optional arguments of a module that weaken a token in calls most."""
    return weakening_mask(calls, _optional_arguments(calls.module), call)


def _optional_arguments(module: nn.Module) -> list[PaddingMask]:
    masks = (MaskArgument(name, *each) for name in optional_masks(module) for each in CONVENTIONS)
    return [*masks, *map(LengthsArgument, _optional_lengths(module))]


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
            f"real tokens or at pads; if that is right, state which: {stated.name}=real or {stated.name}=pads"
        )
    return found or candidates[-1]


def accepts_keyword(module: nn.Module, name: str) -> bool:
    """True if the forward of a module takes an argument by this name."""
    accepted = arguments_of_forward(module)
    if name in accepted:
        return accepted[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values())


def first_that_hides(calls: ModuleCalls, candidates: Iterable[Mask], call: Call) -> Mask | None:
    """The first mask that hides tokens in calls; None too if they take longer than `MAX_SECONDS` together."""
    try:
        with time_limit(MAX_SECONDS):
            return next((mask for mask in candidates if _hides_a_token(calls, mask, call)), None)
    except TimeLimitExceeded:
        return None


def optional_masks(module: nn.Module) -> Iterator[str]:
    """Names of optional arguments that may be masks; common ones if the module passes all keywords on."""
    accepted = arguments_of_forward(module)
    for name, parameter in accepted.items():
        if "mask" in name and parameter.default is None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            yield name
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
        yield from (mask.name for mask in KNOWN_MASKS)
        yield "mask"


def usual_masks(name: str) -> list[MaskArgument]:
    """The masks of this name that its words suggest, the likely one first."""
    marks = "padding" in name or "pad" in name.split("_")
    return [MaskArgument(name, marks, boolean) for boolean in ((True, False) if marks else (False, True))]


def accepts(calls: ModuleCalls, mask: PaddingMask, call: Call) -> bool:
    """True if a module takes a mask without pads."""
    inputs = call.inputs()
    first = next(place for place, axis in enumerate(call.examples.axes) if axis is not None)
    axis = call.examples.axes[first]
    assert axis is not None
    everywhere = torch.ones(inputs[first].shape[1 - axis], call.tokens, dtype=torch.long)
    try:
        with torch.no_grad(), restored_state(calls.module, calls.state):
            _outputs(calls.module, inputs, (mask, everywhere), (axis, 0))
    except SystemExit:
        return False
    except Exception as error:  # noqa: BLE001 - the user's forward refuses a mask of this form
        raise_own_error(error)
        return False
    return True


def _optional_lengths(module: nn.Module) -> Iterator[str]:
    """Names of optional arguments that may be the lengths of rows."""
    for name, parameter in arguments_of_forward(module).items():
        if "len" in name and parameter.default is None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            yield name


def _hides_a_token(calls: ModuleCalls, mask: PaddingMask, call: Call) -> bool:
    """True if replacing a token changes other outputs where all tokens are real, and none where it is a pad."""
    pairs = _outputs_of_replaced(calls, mask, call)
    return pairs is not None and _differ(*pairs[0]) and not _differ(*pairs[1])


def weakening_mask(calls: ModuleCalls, candidates: Iterable[Mask], call: Call) -> Mask | None:
    """The mask with which replacing a pad changes other outputs least, and less than without pads; None if none does.

    A faulty module may leave a mask out of a part of itself. None too if calls take longer than `MAX_SECONDS`.
    """
    found: list[tuple[float, Mask]] = []
    try:
        with time_limit(MAX_SECONDS):
            for mask in candidates:
                pairs = _outputs_of_replaced(calls, mask, call)
                seen, unseen = (0.0, 0.0) if pairs is None else (_distance(*pair) for pair in pairs)
                if unseen < WEAKER * seen:
                    found.append((unseen / seen, mask))
    except TimeLimitExceeded:
        return None
    return min(found, key=lambda one: one[0])[1] if found else None


def _outputs_of_replaced(
    calls: ModuleCalls, mask: PaddingMask, call: Call
) -> list[tuple[list[Tensor], list[Tensor]]] | None:
    """The other outputs before and after a token is replaced: as a real token, and as a pad; None without any."""
    inputs, others = call.inputs(0), call.inputs(1)
    first = next(place for place, axis in enumerate(call.examples.axes) if axis is not None)
    axis = call.examples.axes[first]
    if axis not in (0, 1) or inputs[first].dim() < 2 or inputs[first].shape[axis] < 2:
        return None
    rows, length = inputs[first].shape[1 - axis], inputs[first].shape[axis]
    place = length - 1 if mask.right_only else length // 2
    replaced = inputs[first].clone()
    replaced.select(axis, place).copy_(others[first].select(axis, place))
    both = (inputs, (*inputs[:first], replaced, *inputs[first + 1 :]))
    everywhere = torch.ones(rows, length, dtype=torch.long)
    hidden = everywhere.clone()
    hidden[:, place] = 0
    found = []
    try:
        with torch.no_grad(), restored_state(calls.module, calls.state):
            for values in (everywhere, hidden):
                before, after = (_outputs(calls.module, each, (mask, values), (axis, place)) for each in both)
                found.append((before, after))
    except SystemExit:
        return None
    except Exception as error:  # noqa: BLE001 - the user's forward refuses a mask of this form
        raise_own_error(error)
        return None
    return found if found[1][0] else None


def _outputs(
    module: nn.Module, inputs: tuple[Tensor, ...], given: tuple[PaddingMask, Tensor], left_out: tuple[int, int]
) -> list[Tensor]:
    """The outputs of a call with rows and tokens without those of one token; those with rows if there are no others.

    ``left_out`` is the axis of tokens, 0 or 1, and the place of the token.
    """
    mask, values = given
    axis, place = left_out
    with seeded_random(0):
        found = leaves_by_name(module(*(x.clone() for x in inputs), **{mask.name: mask.value(values)})).values()
    kept = torch.arange(values.shape[1]) != place
    sizes = values.shape if axis == 1 else values.shape[::-1]
    numbers = [x.double() for x in found if isinstance(x, Tensor) and x.is_floating_point()]
    of_tokens = [x.index_select(axis, kept.nonzero().flatten()) for x in numbers if x.shape[:2] == sizes]
    return of_tokens or [x for x in numbers if len(values) in x.shape[:2]]


def _distance(first: list[Tensor], second: list[Tensor]) -> float:
    """The largest relative difference of outputs."""
    pairs = zip(first, second, strict=True)
    return max((float((x - y).abs().max() / y.abs().max()) for x, y in pairs), default=0.0)


def _differ(first: list[Tensor], second: list[Tensor]) -> bool:
    """True if an output differs by more than rounding, or is not finite."""
    return any(not (x - y).abs().max() <= ROUNDING * y.abs().max() for x, y in zip(first, second, strict=True))
