"""The roles of the example inputs of a module: as stated, as calls show, or by a known name where calls do not decide.

Masks and position ids leave the inputs: they follow from the size of a call, and laws that speak of them give them.
Everything else with tokens accompanies the first input with tokens: it moves and grows with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from orderproof.batch_layout import Side
from orderproof.errors import UsageError
from orderproof.models.caches.cached_module import CacheArgument
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.roles.computed_inputs import ComputedInput, ComputedInputs, without_inputs
from orderproof.models.roles.document_ids import (
    DOCUMENT_NAMES,
    DocumentIds,
    DocumentMask,
    document_ids,
    document_mask,
    separates_documents,
)
from orderproof.models.roles.lengths_argument import lengths_forms
from orderproof.models.roles.mask_argument import (
    KNOWN_MASKS,
    MaskArgument,
    PaddingMask,
    as_stated,
    mask_forms,
    padded_sides,
)
from orderproof.models.roles.mask_calls import (
    first_that_hides,
    gives_nan_on_the_left,
    reads_only_the_number,
    weakening_mask,
)
from orderproof.models.roles.packed_documents import DocumentInput
from orderproof.models.roles.position_argument import POSITION_NAMES, PositionArgument, counts_in_documents
from orderproof.records.input_role import InputRole
from orderproof.subject_spec import Layout

MASK_NAMES = (*(mask.name for mask in KNOWN_MASKS), "mask", "attn_mask", "pad_mask", "input_mask", "valid_mask")
LENGTH_NAME = re.compile(r"(^|_)(seq)?(len|lens|length|lengths)$")
STATED = "stated"
NOT_STATED = "calls: it hides a token; another one is stated"
BY_WEAKENING = "calls: it weakens a token"
BY_CALLS = "calls: it hides a token"
AGAIN = "calls: it and {name} hide a token together, and the example has one value of both"
BY_NAME = "its name; no value of it hides a token in calls"
CONTRADICTED = "its name or example; CALLS CONTRADICT IT: they hide the other tokens"
BY_VALUES = "its values"
SEPARATES = "calls: it hides one document from another"
BY_DOCUMENT_NAME = "its name; calls do not show that it separates documents"


@dataclass
class ExampleRoles:
    """The roles of the example inputs, as far as they are known.

    Attributes:
        names: The name of each input.
        computed: By their places, the inputs that follow from the size of a call.
        mask: The padding mask among them.
        mask_hides: A call shows that it hides a token.
        padded_sides: The sides on which the example of the mask has pads.
        position_ids: The position ids among them.
        documents: The document ids, or the mask of packed documents, among them.
        known_by: By the place of an input, how its role is known.
        described: By their names, the roles of further sequences and of their masks.
        cache: The cache that the module takes and returns.
        again: By the name of a mask, the places of further inputs that are the same mask.

    """

    names: tuple[str, ...]
    computed: dict[int, ComputedInput] = field(default_factory=dict)
    mask: PaddingMask | None = None
    mask_hides: bool = False
    padded_sides: frozenset[Side] = frozenset()
    position_ids: PositionArgument | None = None
    documents: DocumentIds | DocumentMask | None = None
    known_by: dict[int, str] = field(default_factory=dict)
    described: dict[str, InputRole] = field(default_factory=dict)
    cache: CacheArgument | None = None
    again: dict[str, list[int]] = field(default_factory=dict)

    @property
    def takes_documents(self) -> bool:
        """An input says where packed documents are."""
        own = any(isinstance(each, DocumentInput) for each in self.computed.values())
        return own or (self.position_ids is not None and self.position_ids.restarts)

    def called(self, module: nn.Module, examples: ExampleInputs) -> tuple[nn.Module, ExampleInputs]:
        """The module whose inputs are those that are not computed, and their examples."""
        if not self.computed:
            return module, examples
        names = {name: (place, *self.again.get(name, ())) for place, name in enumerate(self.names)}
        return ComputedInputs(module, self.computed, examples, names), without_inputs(examples, self.computed)


def example_roles(
    module: nn.Module,
    examples: ExampleInputs,
    names: Sequence[str],
    computed: Mapping[int, ComputedInput],
    layout: Layout,
) -> ExampleRoles:
    """The roles of the inputs; those in `computed` are known. Raises `UsageError` for a statement that does not fit."""
    found = ExampleRoles(tuple(names), dict(computed))
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    if examples.axes[first] not in (0, 1) or examples.tensors[first].dim() < 2:
        return found
    if examples.axes[first] == 0 and examples.tensors[first].is_floating_point() and examples.tensors[first].dim() < 3:
        return found  # it has no rows
    for place, tensor in enumerate(examples.tensors):
        if place == first or place in computed:
            continue
        if names[place] in layout.roles:
            found.known_by[place] = STATED
            if layout.roles[names[place]] == "documents":
                found.documents = found.computed[place] = _stated_documents(names[place], tensor, examples)
            continue
        if found.position_ids is None and _takes_positions(names[place], tensor, examples, layout):
            in_documents = any(isinstance(each, DocumentInput) for each in computed.values())
            positions = replace(PositionArgument.of_example(names[place], tensor), in_documents=in_documents)
            if positions.restarts and not in_documents:
                trial = ExampleRoles(found.names, {**found.computed, place: positions})
                called, rest = trial.called(module, examples)
                separates = separates_documents(called, Call(rest, examples.length, None), positions)
                positions = replace(positions, separates=separates)
            found.position_ids = found.computed[place] = positions
            again = " again in each document" if positions.restarts else ""
            by_example = f"the example counts from {positions.first}{again}"
            found.known_by[place] = STATED if layout.position_ids else by_example
        elif found.documents is None and (documents := _documents(module, examples, found, place)) is not None:
            found.documents, found.known_by[place] = documents
            found.computed[place] = found.documents
        elif (mask := _mask(module, examples, found, place, layout)) is not None:
            _add_mask(found, place, *mask)
    if not found.mask_hides and layout.mask is None:
        _join_masks(module, examples, found)
    note_sides(module, examples, found)
    return found


def note_sides(module: nn.Module, examples: ExampleInputs, found: ExampleRoles) -> None:
    """Note on which sides the example of the mask has pads, and if calls show that the mask is for these only.

    They show it for pads on the right: the number of real tokens is read, and not their places; or pads on the left
    make an output NaN.
    """
    place = next((place for place, one in found.computed.items() if one is found.mask), None)
    if place is None or found.mask is None:
        return
    found.padded_sides = padded_sides(found.mask, examples.tensors[place])
    if "left" in found.padded_sides or not isinstance(found.mask, MaskArgument) or found.mask.right_only:
        return
    called, rest = found.called(module, examples)
    calls, call = ModuleCalls(called, examples.name), Call(rest, examples.length, None)
    counts = "right" in found.padded_sides and reads_only_the_number(calls, found.mask, call)
    fails = not counts and gives_nan_on_the_left(calls, found.mask, call)
    if counts or fails:
        found.mask = found.computed[place] = replace(found.mask, right_only=True, nan_on_the_left=fails)


def _add_mask(found: ExampleRoles, place: int, mask: PaddingMask, known_by: str) -> None:
    """Note a mask; of several, the first that hides a token in calls is the one that laws give."""
    hides = known_by == BY_CALLS
    found.computed[place], found.known_by[place] = mask, known_by
    if known_by == NOT_STATED:
        return
    if found.mask is not None and found.mask_hides and hides and found.mask.convention != mask.convention:
        raise UsageError(
            f"inputs {found.mask.name!r} and {mask.name!r} both hide tokens, one with {found.mask.convention} and the "
            f"other with {mask.convention}: state the padding mask with --role NAME=mask (in Python roles=)"
        )
    if found.mask is None or (hides and not found.mask_hides) or known_by == STATED:
        found.mask, found.mask_hides = mask, hides


def _join_masks(module: nn.Module, examples: ExampleInputs, found: ExampleRoles) -> None:
    """Note the mask that is given twice: inputs of one value that hide a token in calls, and none of them alone.

    So it is for memory: one mask hides tokens in the encoder, and another hides what the encoder makes of them.
    """
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    free = [k for k, x in found.computed.items() if isinstance(x, MaskArgument)]
    free += [k for k in range(len(examples.tensors)) if k not in found.computed and k not in (first, *found.known_by)]
    for place in sorted(free):
        tensor = examples.tensors[place]
        forms = forms_of_mask(examples, found.names[place], place)
        others = [k for k in free if k > place and _is_equal(examples.tensors[k], tensor)]
        if not forms or not others:
            continue
        trial = replace(found, computed={**found.computed, **dict.fromkeys((place, *others), forms[0])})
        trial.again = {found.names[place]: others}
        called, rest = trial.called(module, examples)
        mask = first_that_hides(ModuleCalls(called, examples.name), forms, Call(rest, examples.length, None))
        if mask is not None:
            others = _needed(module, examples, found, (place, mask), others)
            found.computed |= dict.fromkeys((place, *others), mask)
            found.mask, found.mask_hides, found.again = mask, True, {found.names[place]: others}
            found.known_by |= {place: BY_CALLS} | dict.fromkeys(others, AGAIN.format(name=found.names[place]))
            return


def _needed(
    module: nn.Module, examples: ExampleInputs, found: ExampleRoles, given: tuple[int, PaddingMask], others: list[int]
) -> list[int]:
    """Those of the other inputs without which a mask, given at its place and theirs, hides no token."""
    place, mask = given
    for k in others:
        rest = [other for other in others if other != k]
        trial = replace(found, computed={**found.computed, **dict.fromkeys((place, *rest), mask)})
        trial.again = {found.names[place]: rest}
        called, kept = trial.called(module, examples)
        if first_that_hides(ModuleCalls(called, examples.name), [mask], Call(kept, examples.length, None)):
            others = rest
    return others


def _is_equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)


def _takes_positions(name: str, tensor: Tensor, examples: ExampleInputs, layout: Layout) -> bool:
    """True for integers along the tokens that count up, equal in all rows, or that have the name of position ids."""
    if layout.position_ids is not None and layout.position_ids != name:
        return False
    tokens = examples.length
    if tensor.dtype not in (torch.int32, torch.int64) or tensor.dim() > 2 or tensor.shape[-1] != tokens or tokens < 2:
        if layout.position_ids is not None:
            raise UsageError(
                f"expected input {name!r} to be position ids, integers [row, token] or [token]; got {tensor.dtype} of "
                f"shape {tuple(tensor.shape)}"
            )
        return False
    counts = bool((tensor.diff(dim=-1) == 1).all()) and (tensor.dim() == 1 or bool((tensor == tensor[:1]).all()))
    restarts = int(tensor.max()) > int(tensor.min()) + 1 and counts_in_documents(tensor)
    return restarts or name in POSITION_NAMES or counts or layout.position_ids is not None


def _stated_documents(name: str, tensor: Tensor, examples: ExampleInputs) -> DocumentIds:
    """The document ids that a user states. Raises `UsageError` for an input of another form."""
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    ids = document_ids(name, tensor, examples.tensors[first].shape[0], examples.length)
    if ids is None:
        raise UsageError(
            f"expected input {name!r} to be document ids, integers [row, token] or [token] that do not decrease; got "
            f"{tensor.dtype} of shape {tuple(tensor.shape)}"
        )
    return ids


def _documents(
    module: nn.Module, examples: ExampleInputs, found: ExampleRoles, place: int
) -> tuple[DocumentIds | DocumentMask, str] | None:
    """The document ids, or the mask of documents, that an input is, and how that is known; None if it is none."""
    name, tensor = found.names[place], examples.tensors[place]
    first = next(place for place, axis in enumerate(examples.axes) if axis is not None)
    rows, tokens = examples.tensors[first].shape[0], examples.length
    if (mask := document_mask(name, tensor, rows, tokens)) is not None:
        return mask, BY_VALUES
    ids = None if "mask" in name else document_ids(name, tensor, rows, tokens)
    if ids is None:  # a padding mask may hide pads from tokens, as ids hide one document from another
        return None
    called, rest = ExampleRoles(found.names, {**found.computed, place: ids}).called(module, examples)
    if separates_documents(called, Call(rest, tokens, None), ids):
        return ids, SEPARATES
    return (ids, BY_DOCUMENT_NAME) if name in DOCUMENT_NAMES else None


def forms_of_mask(examples: ExampleInputs, name: str, place: int) -> list[PaddingMask]:
    """The masks, or lengths, of the first input with tokens that another input may be, by its form."""
    first = next(k for k, axis in enumerate(examples.axes) if axis is not None)
    rows, length = examples.tensors[first].shape[1 if examples.axes[first] == 0 else 0], examples.length
    tensor = examples.tensors[place]
    return [*mask_forms(name, tensor, rows, length), *lengths_forms(name, tensor, rows, length)]


def _mask(
    module: nn.Module, examples: ExampleInputs, found: ExampleRoles, place: int, layout: Layout
) -> tuple[PaddingMask, str] | None:
    """The padding mask that an input is, or its lengths, and how that is known; None if it is none."""
    name, tensor = found.names[place], examples.tensors[place]
    stated = layout.mask
    another = stated is not None and stated.name != name
    stated = None if another else stated
    forms = forms_of_mask(examples, name, place)
    if stated is not None and stated.marks_pads is not None:
        fit = (form for form in forms if isinstance(form, MaskArgument))
        forms = [form for form in fit if form.marks_pads == stated.marks_pads or form.added is not None]
    if not forms:
        if stated is not None:
            raise UsageError(
                f"expected input {name!r} to have the form of a padding mask, [row, token] of 0 and 1, numbers that "
                f"are added to scores, or lengths [row]; got shape {tuple(tensor.shape)}"
            )
        return None
    first = next(k for k, axis in enumerate(examples.axes) if axis is not None)
    trial = ExampleRoles(found.names, {**found.computed, place: forms[0]})
    called, rest = trial.called(module, examples)
    calls, call = ModuleCalls(called, examples.name), Call(rest, examples.length, None)
    hides = first_that_hides(calls, forms, call)
    if stated is not None:
        either = len(forms) == 2 and name not in MASK_NAMES  # 1 at real tokens, or at pads
        if hides is None and stated.marks_pads is None and either:
            raise UsageError(
                f"expected input {name!r} to hide tokens; it hides none, whether 1 and True are at real tokens or at "
                f"pads; if that is right, state which: {name}=real or {name}=pads"
            )
        return hides or forms[0], STATED
    if hides is not None:
        given = as_stated(hides, tensor)
        against = isinstance(given, MaskArgument) and given.contradicted
        return (hides, NOT_STATED) if another else (given, CONTRADICTED if against else BY_CALLS)
    begins = f"{found.names[first]}_"
    has_known_name = (
        name in MASK_NAMES or name.startswith(begins)
        if isinstance(forms[0], MaskArgument)
        else LENGTH_NAME.search(name)
    )
    if another:
        return None
    if has_known_name:
        return forms[0], BY_NAME
    weakens = weakening_mask(calls, forms, call)
    return None if weakens is None else (weakens, BY_WEAKENING)
