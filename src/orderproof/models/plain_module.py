"""Subjects of plain modules: any module with example inputs, and a few classes that need none.

Unless it is stated, the token axis is axis 1 of a 3-D float input [batch, token, width] or of a 2-D integer input
[batch, token], and axis 0 of a 2-D float input [token, width].
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import OrderproofError, SubjectError, UsageError, first_line
from orderproof.models.input_sampling import ExampleInputs, TokenAxes
from orderproof.models.plain_adapter import build_adapter
from orderproof.models.process_state import is_compiled, preserved_settings
from orderproof.models.sample import BATCH_SIZE, Sample
from orderproof.models.settings import with_keyword_inputs
from orderproof.models.subject import (
    MIN_DEFAULT_LENGTH,
    ExportContext,
    Subject,
    count_parameters,
    prime_length,
    tensor_sizes,
)
from orderproof.models.trial_call import check_trial_call
from orderproof.prover.recording.module_state import preserved_state

PLAIN_MODULE_KINDS = ("module", "encoder", "causal_lm")
Inputs = Tensor | tuple[Tensor, ...] | list[Tensor] | Mapping[str, Tensor]
Draw = Callable[[int, int], Sample]
EXAMPLE_INPUTS_HINT = (
    "give example inputs: from_module(module, (tensor, ...)), or return (module, inputs) from the function"
)


class SelfAttentionCall(nn.Module):
    """An attention module called with one tensor as query, key and value."""

    def __init__(self, model: nn.MultiheadAttention) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Any:
        """Self-attention."""
        return self.model(tokens, tokens, tokens, need_weights=False)[0]


class KeywordModule(nn.Module):
    """A module with keyword arguments, called with positional ones."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.names = tuple(names)

    def forward(self, *inputs: Tensor) -> Any:
        """Call the module with each input as a keyword argument."""
        return self.model(**dict(zip(self.names, inputs, strict=True)))


def from_module(
    module: nn.Module,
    inputs: Inputs | None = None,
    *,
    token_axis: int | Sequence[int | None] | None = None,
    name: str | None = None,
    length: int | None = None,
    assume: Mapping[str, Any] | None = None,
) -> Subject:
    """The subject of a module, which is switched to eval mode.

    Args:
        module: Any module; a model of transformers needs no inputs.
        inputs: Example inputs. Inputs of other lengths are drawn from their type and range.
        token_axis: The token axis of the first input with tokens, or one entry per input (None: no tokens).
        name: Its name in reports; by default that of the class.
        length: Default length of proofs [tokens].
        assume: Values that replace inferred ones. Of a plain module {"model_kind": "encoder" | "causal_lm"}, which
            decides the expectations; of a model of transformers any name in
            `orderproof.models.hf.assumptions.ASSUMABLE`.

    Raises:
        SubjectError: The module cannot be called, or no token axis is found.
        UsageError: ``token_axis`` or ``assume`` does not fit.

    """
    if not isinstance(module, nn.Module):
        raise SubjectError(f"a subject must be a torch.nn.Module; got {type(module).__name__}")
    name = name or type(module).__name__
    module.eval()
    if inputs is None and _is_pretrained(module):
        from orderproof.models.hf.build_subject import build_subject

        backend = getattr(module.config, "_attn_implementation", None) or "eager"
        precision = str(next(module.parameters()).dtype).removeprefix("torch.")
        summary = f"{backend}, {precision}, as given"
        subject = build_subject(module, name=name, load_summary=summary, may_modify=False, assume=assume)
        subject.default_length = length or subject.default_length
        return subject
    notes = (
        ("torch.compile is not used: compiled parts run eagerly",) if any(map(is_compiled, module.modules())) else ()
    )
    if is_compiled(module) and hasattr(module, "_orig_mod"):
        module = module.get_submodule("_orig_mod")
    original = module
    if inputs is None:
        module, examples, default_axis = _default_inputs(module, name)
        token_axis = default_axis if token_axis is None else token_axis
    else:
        module, examples = _as_positional(module, inputs, name)
    axes = resolve_token_axes(examples, token_axis, name)
    subject = _build_subject(module.eval(), original, ExampleInputs(examples, axes, name), length)
    subject.notes = (*notes, *subject.notes)
    if token_axis is None:
        subject.notes = (*subject.notes, *_axis_notes(examples, axes))
    return _with_assumptions(subject, assume or {})


def _with_assumptions(subject: Subject, assume: Mapping[str, Any]) -> Subject:
    kind = assume.get("model_kind", subject.model_kind)
    if set(assume) - {"model_kind"} or kind not in PLAIN_MODULE_KINDS:
        kinds = " or ".join(map(repr, PLAIN_MODULE_KINDS))
        raise UsageError(f"{subject.name}: expected assume={{'model_kind': {kinds}}}; got {dict(assume)!r}")
    subject.model_kind = kind
    if assume:
        subject.notes = (*subject.notes, f"model_kind is {kind!r}, as assumed by the user")
    return subject


def _axis_notes(examples: tuple[Tensor, ...], axes: TokenAxes) -> tuple[str, ...]:
    """A note for each token axis that was found by its size alone."""
    return tuple(
        f"input {index}: axis {axis} counts as token axis because of its size; override with token_axis"
        for index, (tensor, axis) in enumerate(zip(examples, axes, strict=True))
        if axis is not None and axis != _default_token_axis(tensor, None)
    )


def resolve_token_axes(
    examples: tuple[Tensor, ...], token_axis: int | Sequence[int | None] | None, name: str
) -> TokenAxes:
    """The token axis of each input: as stated, by the rule of this module, or the axis with the number of tokens."""
    if isinstance(token_axis, Sequence):
        if len(token_axis) != len(examples):
            raise UsageError(f"{name}: token_axis has {len(token_axis)} entries for {len(examples)} inputs")
        return tuple(_normalized_axis(axis, tensor, name) for axis, tensor in zip(token_axis, examples, strict=True))
    first = next((i for i, tensor in enumerate(examples) if _default_token_axis(tensor, token_axis) is not None), None)
    if first is None:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in examples)
        raise SubjectError(f"{name}: no token axis found in inputs of shape {shapes}; name it with token_axis=")
    axis = _normalized_axis(_default_token_axis(examples[first], token_axis), examples[first], name)
    assert axis is not None
    size = examples[first].shape[axis]
    return tuple(axis if i == first else _axis_of_size(t, size) for i, t in enumerate(examples))


def _default_token_axis(tensor: Tensor, stated: int | None) -> int | None:
    if stated is not None:
        return stated
    if tensor.is_floating_point():
        return {2: 0, 3: 1}.get(tensor.dim())
    return 1 if tensor.dim() == 2 else None


def _normalized_axis(axis: int | None, tensor: Tensor, name: str) -> int | None:
    if axis is None:
        return None
    if not -tensor.dim() <= axis < tensor.dim():
        raise UsageError(f"{name}: token_axis is {axis}, but the input has shape {tuple(tensor.shape)}")
    return axis % tensor.dim()


def _axis_of_size(tensor: Tensor, size: int) -> int | None:
    default = _default_token_axis(tensor, None)
    is_square = tensor.dim() == 2 and tensor.shape == (size, size)
    if default is not None and tensor.shape[default] == size and not is_square:
        return default
    axes = [axis for axis, extent in enumerate(tensor.shape) if extent == size]
    return axes[0] if len(axes) == 1 else None


def _as_positional(module: nn.Module, inputs: Inputs, name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    if isinstance(inputs, Tensor):
        inputs = (inputs,)
    values = tuple(inputs.values()) if isinstance(inputs, Mapping) else tuple(inputs)
    for place, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise SubjectError(f"{name}: example inputs must be tensors; input {place} is {type(value).__name__}")
    if not values:
        raise SubjectError(f"{name}: no example inputs; {EXAMPLE_INPUTS_HINT}")
    return (KeywordModule(module, tuple(inputs)) if isinstance(inputs, Mapping) else module), values


def _default_inputs(module: nn.Module, name: str) -> tuple[nn.Module, tuple[Tensor, ...], int]:
    layer = module.layers[0] if isinstance(module, nn.TransformerEncoder) else module
    attention = layer.self_attn if isinstance(layer, nn.TransformerEncoderLayer) else layer
    if isinstance(attention, nn.MultiheadAttention):
        if attention is module:
            module = SelfAttentionCall(attention)
        width, first = attention.embed_dim, attention.batch_first
    elif isinstance(attention, nn.Module) and isinstance(getattr(module, "width", None), int):
        width, first = int(module.width), True  # type: ignore[arg-type]
    else:
        raise SubjectError(f"{name}: its inputs are unknown; {EXAMPLE_INPUTS_HINT}")
    shape = (BATCH_SIZE, MIN_DEFAULT_LENGTH, width) if first else (MIN_DEFAULT_LENGTH, BATCH_SIZE, width)
    return module, (torch.randn(shape, generator=torch.Generator().manual_seed(0)),), 1 if first else 0


def _build_subject(module: nn.Module, original: nn.Module, examples: ExampleInputs, length: int | None) -> Subject:
    sizes = tensor_sizes(module) | examples.non_token_sizes
    example_is_prime = examples.length == prime_length(max(examples.length, MIN_DEFAULT_LENGTH), sizes)
    prime = examples.length if example_is_prime else prime_length(MIN_DEFAULT_LENGTH, sizes | {BATCH_SIZE})
    subject = Subject(
        name=examples.name,
        model_kind="module",
        module=module,
        token_axes=examples.axes,
        parameter_count=count_parameters(module),
        layer_count=None,
        default_length=length or prime,
        max_length=None,
        device="cpu",
        draw=partial(examples.draw, BATCH_SIZE),
        load_summary=f"{str(examples.tensors[0].dtype).removeprefix('torch.')}, as given",
        bind_inputs=partial(_bind_inputs, module),
        export_context=_export_context(original),
    )
    _probe_call(subject, examples, fixed=length is not None)
    subject.build_adapter = partial(build_adapter, subject, original)
    return subject


def _bind_inputs(module: nn.Module, extras: tuple[str, ...], setting: str) -> tuple[nn.Module, ExportContext] | None:
    extended = with_keyword_inputs(module, extras)
    return None if extended is None else (extended, _export_context(module))


def _probe_call(subject: Subject, examples: ExampleInputs, *, fixed: bool) -> None:
    """Call the module once as the audit will call it; fall back to the shape of the example inputs."""
    draws: list[Draw] = [subject.draw]
    if examples.has_batch_of_one:
        draws.append(partial(examples.draw, None))
    lengths = list(dict.fromkeys([subject.default_length] if fixed else [subject.default_length, examples.length]))
    attempts = [(length, draw) for length in lengths for draw in draws]
    with preserved_settings(subject.name), torch.no_grad():
        check_trial_call(subject.name, subject.module, lambda: _first_call(subject, attempts))
        with _fresh_afterwards(subject.module):
            length, draw, failure = _first_call(subject, attempts)
    if length != subject.default_length:
        subject.max_length = length
        reason = "" if failure is None else f" ({first_line(failure)})"
        note = f"length fixed at {length}: a call with {subject.default_length} tokens failed{reason}"
        subject.notes = (*subject.notes, note)
    subject.default_length, subject.draw = length, draw


def _first_call(subject: Subject, attempts: Sequence[tuple[int, Draw]]) -> tuple[int, Draw, Exception | None]:
    """The first attempt that the module accepts, and what the attempt before it raised. Raises `SubjectError`."""
    failure: Exception | None = None
    shapes = ""
    for length, draw in attempts:
        try:
            inputs = draw(length, 0).inputs
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in inputs)
            subject.module(*inputs)
        except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
            failure = error
        else:
            return length, draw, failure
    if isinstance(failure, OrderproofError):
        raise failure
    text = " ".join(str(failure).split())[:300]
    raise SubjectError(f"{subject.name}: calling it with {shapes} raised {type(failure).__name__}: {text}") from failure


def _fresh_afterwards(module: nn.Module) -> AbstractContextManager[Any]:
    """Undo what the first call keeps: what it derived from parameters would pass for a constant later."""
    lazy = any(torch.nn.parameter.is_lazy(x) for x in (*module.parameters(), *module.buffers()))
    return nullcontext() if lazy else preserved_state(module)


def _is_pretrained(module: nn.Module) -> bool:
    library = sys.modules.get("transformers")
    return library is not None and isinstance(module, library.PreTrainedModel)


def _export_context(module: nn.Module) -> Any:
    if not any(type(part).__module__.startswith("transformers.") for part in module.modules()):
        return nullcontext
    from orderproof.models.hf.export_patches import eager_branches

    return partial(eager_branches, module)
