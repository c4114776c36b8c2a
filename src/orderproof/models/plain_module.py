"""Subjects of plain modules: any module with example inputs, and a few classes that need none.

Unless it is stated, the token axis is axis 1 of a 3-D float input [batch, token, width] or of a 2-D integer input
[batch, token], and axis 0 of a 2-D float input [token, width].
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from orderproof.errors import SubjectError, UsageError
from orderproof.models.build_plain import build_plain_subject
from orderproof.models.caches.plain_call import PlainCall, called_without_cache
from orderproof.models.call_arguments import template_call
from orderproof.models.derived_inputs import derive_inputs
from orderproof.models.eval_mode import switch_mode
from orderproof.models.exported_program import exported_module
from orderproof.models.forward_arguments import arguments_of_forward
from orderproof.models.input_sampling import ExampleInputs, TokenAxes
from orderproof.models.modes import check_mode, state_mode
from orderproof.models.module_wrappers import KeywordModule, SelfAttentionCall
from orderproof.models.process_state import is_compiled
from orderproof.models.roles.computed_inputs import KeptNumber, TriangularMask, square_masks
from orderproof.models.roles.example_roles import MASK_NAMES, ExampleRoles, example_roles
from orderproof.models.roles.named_arguments import NO_POSITIONS
from orderproof.models.roles.one_row import as_one_row, mark_one_row, may_be_one_row
from orderproof.models.roles.packed_documents import (
    document_inputs,
    is_longest_document,
    token_axis_of_documents,
)
from orderproof.models.roles.position_argument import POSITION_NAMES
from orderproof.models.roles.row_axis import numbers_in_rows, tokens_first, tokens_last
from orderproof.models.roles.second_sequences import SECOND_LAYOUT, SecondSequence, claim, second_sequences
from orderproof.models.sample import BATCH_SIZE
from orderproof.models.subject import (
    MIN_DEFAULT_LENGTH,
    Subject,
)
from orderproof.models.token_axes import axis_notes, resolve_token_axes
from orderproof.models.training_forward import TrainingForward
from orderproof.models.vision.plain_image import image_subject, is_image
from orderproof.registry import did_you_mean
from orderproof.subject_spec import TOKEN_AXIS_OPTION, Layout, StatedAxes

_TURNED = "tokens run along axis {axis} of the first input, as {what}"
_BY_CALLS = "calls with other numbers of them and with each row alone show; override with token_axis"
_SEPARATE_ROWS = (
    "no row of the first input reads another one: if they are the rows of a batch, and not tokens, name the axis of "
    f"the tokens with {TOKEN_AXIS_OPTION}"
)
PLAIN_MODULE_KINDS = ("module", "encoder", "causal_lm")
Inputs = Tensor | Sequence[Any] | Mapping[str, Any]
EXAMPLE_INPUTS_HINT = (
    "give example inputs: name a function that returns (module, inputs), or call from_module(module, (tensor, ...))"
)


def from_module(
    module: nn.Module | ExportedProgram,
    inputs: Inputs | None = None,
    *,
    token_axis: int | Sequence[int | None] | None = None,
    outputs: StatedAxes | None = None,
    together: bool = False,
    mode: str = "eval",
    roles: Mapping[str, str] | None = None,
    name: str | None = None,
    length: int | None = None,
    assume: Mapping[str, Any] | None = None,
) -> Subject:
    """The subject of a module, which is switched to eval mode, or to train mode with `mode="train"`.

    Args:
        module: Any module, or a program of torch.export; a model of transformers and a program need no inputs.
        inputs: Example inputs: a tensor, a sequence of positional arguments or a mapping of keyword arguments, which
            may have tensors in containers and dataclasses, and numbers and flags that every call gets. Tensors of
            other lengths are drawn from their type and range.
        token_axis: The token axis of the first input with tokens, or one entry per input (None: no tokens).
        outputs: The axes of outputs by name, instead of those that are derived: {"output.1": ("layer", "batch",
            "feature")}, or only the axes if there is one output. "batch" and "token" have a meaning ("1+token": one
            entry precedes the tokens), other names have none.
        together: Inputs of one length are one sequence, even if the module takes them with different lengths.
        roles: The roles of inputs by name, instead of those that are derived: "mask", "mask:real", "mask:pads",
            "positions", "companion" (moves with the tokens), "held" (the same in every call), "cache" (also of an
            argument that is no input) or "pads:0" (token ids with the id 0 at pads; "pads:none": no id marks pads).
        mode: "eval", or "train" to audit the training forward: dropout draws the same numbers in runs of one shape.
        name: Its name in reports; by default that of the class.
        length: Default length of proofs [tokens].
        assume: Values that replace inferred ones. Of a plain module {"model_kind": "encoder" | "causal_lm"}, which
            decides the expectations; of a model of transformers any name in
            `orderproof.models.hf.assumptions.ASSUMABLE`.

    Raises:
        SubjectError: The module cannot be called, or no token axis is found.
        UsageError: An argument does not fit.

    """
    layout = Layout(token_axis, outputs, together, mode=mode).with_roles(roles)
    return of_layout(module, inputs, layout, name=name, length=length, assume=assume)


def of_layout(
    module: nn.Module | ExportedProgram,
    inputs: Inputs | None,
    layout: Layout,
    *,
    name: str | None = None,
    length: int | None = None,
    assume: Mapping[str, Any] | None = None,
) -> Subject:
    """The subject of a module, as `from_module` describes it."""
    mode, token_axis = check_mode(layout.mode), layout.token_axis
    if isinstance(module, ExportedProgram):
        name = name or "exported program"
        module, inputs = exported_module(module, inputs, name)
    if not isinstance(module, nn.Module):
        raise SubjectError(f"a subject must be a torch.nn.Module; got {type(module).__name__}")
    name = name or type(module).__name__
    if layout.shapes:
        raise UsageError(f"{name}: expected no shapes with a module, whose example inputs have them; give inputs=")
    _check_device(module, inputs, name)
    mode_notes = switch_mode(module, training=mode == "train")
    if inputs is None and _is_pretrained(module):
        refuse_layout(name, layout, "a model of transformers, whose axes are known")
        from orderproof.models.hf.build_subject import build_subject
        from orderproof.models.hf.probe import probe_subject

        backend = getattr(module.config, "_attn_implementation", None) or "eager"
        precision = str(next(module.parameters()).dtype).removeprefix("torch.")
        summary = f"{backend}, {precision}, as given"
        build = partial(build_subject, module, name=name, load_summary=summary, may_modify=False, assume=assume)
        subject = probe_subject(module, build, is_given=True)
        subject.default_length = length or subject.default_length
        return subject
    notes = (
        ("torch.compile is not used: compiled parts run eagerly",) if any(map(is_compiled, module.modules())) else ()
    )
    notes = (*mode_notes, *notes)
    if is_compiled(module) and hasattr(module, "_orig_mod"):
        module = module.get_submodule("_orig_mod")
    original = module
    is_stated = token_axis is not None or inputs is None
    if inputs is None:
        call, usual_axis = _default_call(module, name)
    else:
        call, layout = _without_cache(module, inputs, name, layout)
        usual_axis = token_axis_of_documents(tuple(call.inputs.values()))
    module, names, examples, notes = call.module, tuple(call.inputs), tuple(call.inputs.values()), (*notes, *call.notes)
    token_axis = usual_axis if token_axis is None else token_axis
    if examples and not examples[0].numel():
        shape = tuple(examples[0].shape)
        raise SubjectError(f"{name}: the first input is empty, of shape {shape}; give one with rows and tokens")
    if is_image(examples) and token_axis is None:
        refuse_layout(name, replace(layout, token_axis=None), "an image, whose patches are its tokens")
        return _with_assumptions(image_subject(module.eval(), examples[0], name), assume or {})
    _check_roles(layout, names, arguments_of_forward(original), name)
    axes = resolve_token_axes(examples, token_axis, name)
    axes = tuple(None if layout.roles.get(each) == "held" else axis for each, axis in zip(names, axes, strict=True))
    layout = replace(layout, token_axis=token_axis if is_stated else None)
    given = ExampleInputs(examples, axes, name)
    called = TrainingForward(module, len(examples)) if mode == "train" else module.eval()
    subject = _with_roles(called, original, given, call, length, layout)
    subject.notes = (*notes, *subject.notes)
    state_mode(subject, original, mode)
    for other in subject.other_sequences.values():
        other.mode = subject.mode
    return _with_assumptions(subject, assume or {})


def _with_roles(
    module: nn.Module,
    original: nn.Module,
    given: ExampleInputs,
    call: PlainCall,
    length: int | None,
    layout: Layout,
) -> Subject:
    """The subject of a module called with the inputs of a call, after their roles are known."""
    names, numbers = tuple(call.inputs), call.numbers
    counts = {place: KeptNumber(int(given.tensors[place])) for place, x in enumerate(names) if x in numbers}
    by_mask: tuple[str, ...] = ()
    held = {place for place, x in enumerate(names) if layout.roles.get(x) == "held"}
    if layout.token_axis is None and layout.outputs is None:
        if turned := tokens_first(module, given, names, counts):
            given, by_mask = turned, (_TURNED.format(axis=0, what="a mask shows"),)
        elif last := tokens_last(module, given):
            (module, given), by_mask = last, (_TURNED.format(axis=2, what="calls and another input show"),)
        elif not document_inputs(given, names, numbers):
            turned, are_rows = numbers_in_rows(module, given)
            if turned is not None:
                given, by_mask = turned, (_TURNED.format(axis=1, what=_BY_CALLS),)
            elif are_rows:
                by_mask = (_SEPARATE_ROWS,)
    known = {**counts, **square_masks(given, held)}
    documents = {k: x for k, x in document_inputs(given, names, numbers).items() if names[k] not in layout.roles}
    called, rest = (module, given) if not documents and not may_be_one_row(given) else as_one_row(module, given)
    roles = example_roles(called, rest, names, {**known, **documents}, layout)
    has_one_row = called is not module and roles.takes_documents
    if called is not module and not has_one_row:
        called, rest, roles = module, given, example_roles(module, given, names, known, layout)
    roles.cache = call.cache
    others = dict[str, SecondSequence]()
    if not layout.together and layout.mask is None and not has_one_row:
        others = {names[x.place]: x for x in second_sequences(module, rest, roles, known)}
    for second in others.values():
        rest = claim(roles, rest, second)
    called, rest = roles.called(called, rest)
    subject = build_plain_subject(called.eval(), original, rest, length, layout, roles)
    subject.other_sequences = {key: _of_second(module, original, second) for key, second in others.items()}
    if has_one_row:
        mark_one_row(subject, documents)
    by_size = () if layout.token_axis is not None or by_mask else axis_notes(given, roles.computed)
    subject.notes = (*_square_notes(roles), *by_mask, *subject.notes, *by_size)
    return subject


def _of_second(module: nn.Module, original: nn.Module, second: SecondSequence) -> Subject:
    """The subject whose tokens are those of a second sequence."""
    called, rest = second.roles.called(module, second.examples)
    subject = build_plain_subject(called.eval(), original, rest, None, SECOND_LAYOUT, second.roles)
    subject.notes = tuple(note for note in subject.notes if note != NO_POSITIONS)  # which no user states
    return subject


def _without_cache(module: nn.Module, inputs: Inputs, name: str, layout: Layout) -> tuple[PlainCall, Layout]:
    """The module called without its cache, and the layout without what it states of the cache."""
    call = partial(_as_positional, module, name=name, layout=layout)

    def axes_of(tensors: tuple[Tensor, ...]) -> TokenAxes:
        axis = token_axis_of_documents(tensors) if layout.token_axis is None else layout.token_axis
        return resolve_token_axes(tensors, axis, name)

    stated = {**dict.fromkeys(layout.named_arguments, "no cache"), **layout.roles}
    found = called_without_cache(module, inputs, call, axes_of, document_inputs, stated)
    roles = {each: role for each, role in layout.roles.items() if each in found.inputs or role != "cache"}
    return found, replace(layout, roles=roles)


def _check_roles(layout: Layout, names: Sequence[str], free: Collection[str], name: str) -> None:
    """Raises `UsageError` for the role of an input that there is not; ``free`` are arguments that are not given."""
    for each in layout.roles:
        if each not in names and (layout.roles[each] != "held" or each not in free):
            raise UsageError(
                f"{name}: expected the name of an input, one of {', '.join(names)}; got {each!r}"
                f"{did_you_mean(each, names)}"
            )
    if layout.pads is not None and layout.pads.name not in names[:1]:
        raise UsageError(
            f"{name}: expected the first input, {', '.join(names[:1])}, with the id of its pads; got "
            f"{layout.pads.name!r}"
        )
    if names and layout.roles.get(names[0]) == "held":
        raise UsageError(f"{name}: expected tokens in the first input; {names[0]!r} is stated to be held")


def _with_assumptions(subject: Subject, assume: Mapping[str, Any]) -> Subject:
    kind = assume.get("model_kind", subject.model_kind)
    if set(assume) - {"model_kind"} or kind not in PLAIN_MODULE_KINDS:
        kinds = " or ".join(map(repr, PLAIN_MODULE_KINDS))
        raise UsageError(f"{subject.name}: expected assume={{'model_kind': {kinds}}}; got {dict(assume)!r}")
    for each in (subject, *subject.other_sequences.values()):
        each.model_kind = kind
    if assume:
        subject.notes = (*subject.notes, f"model_kind is {kind!r}, as stated")
    return subject


def refuse_layout(name: str, layout: Layout, what: str) -> None:
    """Raises `UsageError` if axes are stated for a subject that states them itself."""
    if layout.stated:
        raise UsageError(f"{name}: expected no {layout.stated} with {what}; it would be ignored")


def _as_positional(
    module: nn.Module, inputs: Inputs, name: str, layout: Layout
) -> tuple[nn.Module, dict[str, Tensor], frozenset[str]]:
    """The module called with tensors, these by the names of its arguments, and the names of those given as numbers."""
    if isinstance(inputs, Tensor) or not isinstance(inputs, Sequence | Mapping):
        inputs = (inputs,)
    if isinstance(inputs, Mapping):
        _check_keywords(module, inputs, name)
        others = (*MASK_NAMES, *POSITION_NAMES, *layout.named_arguments)
        inputs = dict(sorted(inputs.items(), key=lambda item: item[0] in others))  # the tokens come first
    values = tuple(inputs.values()) if isinstance(inputs, Mapping) else tuple(inputs)
    if any(isinstance(value, Tensor) and (value.is_nested or value.layout is not torch.strided) for value in values):
        raise SubjectError(
            f"{name}: expected dense tensors; got a nested or sparse one: give its rows padded to one length with a "
            "mask, or as one sequence with the boundaries of its documents (cu_seqlens)"
        )
    accepted = tuple(arguments_of_forward(module))
    inputs, numbers = _with_longest_documents(inputs, accepted)
    call, tensors = template_call(module, inputs, accepted)
    if not tensors:
        raise SubjectError(f"{name}: no tensor among the example inputs; {EXAMPLE_INPUTS_HINT}")
    if numbers or not all(isinstance(value, Tensor) for value in values):
        return call, tensors, numbers
    return (KeywordModule(module, tuple(inputs)) if isinstance(inputs, Mapping) else module), tensors, numbers


def _with_longest_documents(
    inputs: Sequence[Any] | Mapping[str, Any], names: Sequence[str]
) -> tuple[Sequence[Any] | Mapping[str, Any], frozenset[str]]:
    """The inputs with a tensor for each number that is the length of the longest document, and their names."""
    named = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=False))
    numbers = {name: torch.tensor(x) for name, x in named.items() if type(x) is int and is_longest_document(name)}
    if not numbers:
        return inputs, frozenset()
    if isinstance(inputs, Mapping):
        return {**inputs, **numbers}, frozenset(numbers)
    return tuple(numbers.get(name, x) for name, x in zip_longest(names[: len(inputs)], inputs)), frozenset(numbers)


def _check_device(module: nn.Module, inputs: Inputs | None, name: str) -> None:
    """Refuse tensors that are not on the CPU, where audits run."""
    if isinstance(inputs, Mapping):
        given = tuple(inputs.values())
    else:
        given = (inputs,) if inputs is None or isinstance(inputs, Tensor) else tuple(inputs)
    tensors = (*module.parameters(), *module.buffers(), *(x for x in given if isinstance(x, Tensor)))
    if devices := sorted({str(x.device) for x in tensors} - {"cpu"}):
        advice = "make them there" if devices == ["meta"] else "audit a copy: copy.deepcopy(model).cpu()"
        raise SubjectError(
            f"{name}: expected parameters, buffers and inputs on the CPU, where audits run; got some on "
            f"{devices[0]}; {advice}"
        )


def _check_keywords(module: nn.Module, inputs: Mapping[str, Any], name: str) -> None:
    """Raises `SubjectError` for an input that is no argument of the module."""
    try:
        parameters = inspect.signature(module.forward).parameters
    except (TypeError, ValueError):  # code without a signature
        return
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    unknown = [key for key in inputs if key not in parameters]
    if unknown and not takes_any:
        raise SubjectError(
            f"{name}: a mapping of inputs gives keyword arguments, and forward({', '.join(parameters)}) has none "
            f"named {unknown[0]!r}; if it takes one mapping, pass it in a tuple: inputs=(mapping,)"
        )


def _square_notes(roles: ExampleRoles) -> tuple[str, ...]:
    """A note for each square mask."""
    return tuple(
        f"input {place}: a {computed.text}, computed for each number of tokens"
        for place, computed in roles.computed.items()
        if isinstance(computed, TriangularMask)
    )


def _default_call(module: nn.Module, name: str) -> tuple[PlainCall, int | None]:
    """The module with an input of its own, and the token axis. Raises `SubjectError` if its inputs are unknown."""
    accepted = next(iter(arguments_of_forward(module)), "input 0")
    layer = module.layers[0] if isinstance(module, nn.TransformerEncoder) else module
    attention = layer.self_attn if isinstance(layer, nn.TransformerEncoderLayer) else layer
    if isinstance(attention, nn.MultiheadAttention):
        if attention is module:
            module = SelfAttentionCall(attention)
        width, first = attention.embed_dim, attention.batch_first
    elif isinstance(attention, nn.Module) and isinstance(getattr(module, "width", None), int):
        width, first = int(module.width), True  # type: ignore[arg-type]
    else:
        derived = derive_inputs(module, name)
        if derived is None:
            raise SubjectError(f"{name}: its inputs are unknown; {EXAMPLE_INPUTS_HINT}")
        return PlainCall(module, {accepted: derived[0]}, notes=(derived[1],)), 1
    shape = (BATCH_SIZE, MIN_DEFAULT_LENGTH, width) if first else (MIN_DEFAULT_LENGTH, BATCH_SIZE, width)
    tokens = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    return PlainCall(module, {accepted: tokens}), 1 if first else 0


def _is_pretrained(module: nn.Module) -> bool:
    library = sys.modules.get("transformers")
    return library is not None and isinstance(module, library.PreTrainedModel)
