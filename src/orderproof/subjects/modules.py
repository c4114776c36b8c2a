"""Plain modules: anything that can be called with example inputs, and a few classes that need none.

The token axis is axis 1 of a 3-D float input [batch, token, width] or of a 2-D integer input
[batch, token], and axis 0 of a 2-D float input [token, width], unless it is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import OrderproofError, SubjectError, UsageError
from orderproof.subjects.drawing import Axes, Examples
from orderproof.subjects.plain import driver_of
from orderproof.subjects.settings import extended
from orderproof.subjects.subject import SHORTEST, Quiet, Sample, Subject, parameters_of, prime_length, sizes_of

Inputs = Tensor | tuple[Tensor, ...] | list[Tensor] | Mapping[str, Tensor]
BATCH = 2
HOW = "give example inputs: from_module(module, (tensor, ...)), or return (module, inputs) from the function named"


class SelfAttention(nn.Module):
    """Attention of tokens to each other: one tensor as query, key and value."""

    def __init__(self, model: nn.MultiheadAttention) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Any:
        """Attend from every token to every token."""
        return self.model(tokens, tokens, tokens, need_weights=False)[0]


class Named(nn.Module):
    """A module whose inputs have names, called with positions."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.names = tuple(names)

    def forward(self, *inputs: Tensor) -> Any:
        """Call the module with each input under its name."""
        return self.model(**dict(zip(self.names, inputs, strict=True)))


def from_module(
    module: nn.Module,
    inputs: Inputs | None = None,
    *,
    token_axis: int | Sequence[int | None] | None = None,
    name: str | None = None,
    length: int | None = None,
) -> Subject:
    """Make a subject of a module, which is switched to eval mode; other lengths are drawn like the example inputs."""
    if not isinstance(module, nn.Module):
        raise SubjectError(f"a subject must be a torch.nn.Module; got {type(module).__name__}")
    name = name or type(module).__name__
    module.eval()
    if inputs is None and _is_pretrained(module):
        from orderproof.subjects.huggingface import subject_of

        backend = getattr(module.config, "_attn_implementation", None) or "eager"
        precision = str(next(module.parameters()).dtype).removeprefix("torch.")
        subject = subject_of(module, name=name, detail=f"{backend}, {precision}, as given", own=False)
        subject.length = length or subject.length
        return subject
    original = module
    if inputs is None:
        module, examples, found = _guess(module, name)
        token_axis = found if token_axis is None else token_axis
    else:
        module, examples = _positional(module, inputs, name)
    axes = token_axes(examples, token_axis, name)
    return _subject(module.eval(), original, Examples(examples, axes, name), length)


def token_axes(examples: tuple[Tensor, ...], token_axis: int | Sequence[int | None] | None, name: str) -> Axes:
    """For each input the axis over tokens: as given, by the rule above, or by having the size of one that is known."""
    if isinstance(token_axis, Sequence):
        if len(token_axis) != len(examples):
            raise UsageError(f"{name}: token_axis has {len(token_axis)} entries for {len(examples)} inputs")
        return tuple(_checked(axis, tensor, name) for axis, tensor in zip(token_axis, examples, strict=True))
    first = next((i for i, tensor in enumerate(examples) if _usual_axis(tensor, token_axis) is not None), None)
    if first is None:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in examples)
        raise SubjectError(f"{name}: no token axis found in inputs of shape {shapes}; name it with token_axis=")
    axis = _checked(_usual_axis(examples[first], token_axis), examples[first], name)
    assert axis is not None
    size = examples[first].shape[axis]
    return tuple(axis if i == first else _axis_of_size(t, size, i, name) for i, t in enumerate(examples))


def _usual_axis(tensor: Tensor, named: int | None) -> int | None:
    if named is not None:
        return named
    if tensor.is_floating_point():
        return {2: 0, 3: 1}.get(tensor.dim())
    return 1 if tensor.dim() == 2 else None


def _checked(axis: int | None, tensor: Tensor, name: str) -> int | None:
    if axis is None:
        return None
    if not -tensor.dim() <= axis < tensor.dim():
        raise UsageError(f"{name}: token_axis is {axis}, but the input has shape {tuple(tensor.shape)}")
    return axis % tensor.dim()


def _axis_of_size(tensor: Tensor, size: int, place: int, name: str) -> int | None:
    usual = _usual_axis(tensor, None)
    if usual is not None and tensor.shape[usual] == size and not (tensor.dim() == 2 and tensor.shape == (size, size)):
        return usual
    found = [axis for axis, extent in enumerate(tensor.shape) if extent == size]
    return found[0] if len(found) == 1 else None


def _positional(module: nn.Module, inputs: Inputs, name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    if isinstance(inputs, Tensor):
        inputs = (inputs,)
    values = tuple(inputs.values()) if isinstance(inputs, Mapping) else tuple(inputs)
    for place, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise SubjectError(f"{name}: example inputs must be tensors; input {place} is {type(value).__name__}")
    if not values:
        raise SubjectError(f"{name}: no example inputs; {HOW}")
    return (Named(module, tuple(inputs)) if isinstance(inputs, Mapping) else module), values


def _guess(module: nn.Module, name: str) -> tuple[nn.Module, tuple[Tensor, ...], int]:
    layer = module.layers[0] if isinstance(module, nn.TransformerEncoder) else module
    attention = layer.self_attn if isinstance(layer, nn.TransformerEncoderLayer) else layer
    if isinstance(attention, nn.MultiheadAttention):
        if attention is module:
            module = SelfAttention(attention)
        width, first = attention.embed_dim, attention.batch_first
    elif isinstance(attention, nn.Module) and isinstance(getattr(module, "width", None), int):
        width, first = int(module.width), True  # type: ignore[arg-type]
    else:
        raise SubjectError(f"{name}: what it is called with is not known; {HOW}")
    shape = (BATCH, SHORTEST, width) if first else (SHORTEST, BATCH, width)
    return module, (torch.randn(shape, generator=torch.Generator().manual_seed(0)),), 1 if first else 0


def _subject(module: nn.Module, original: nn.Module, examples: Examples, length: int | None) -> Subject:
    taken = sizes_of(module) | examples.other_sizes
    given = examples.length
    suits = given == prime_length(max(given, SHORTEST), taken)
    subject = Subject(
        name=examples.name,
        kind="module",
        module=module,
        token_axes=examples.axes,
        parameters=parameters_of(module),
        layers=None,
        length=length or (given if suits else prime_length(SHORTEST, taken | {BATCH})),
        max_length=None,
        device="cpu",
        draw=partial(examples.draw, BATCH),
        detail=f"{str(examples.tensors[0].dtype).removeprefix('torch.')}, as given",
        takes=partial(_called_with, module),
        quiet=_quiet_for(original),
    )
    _try(subject, examples, fixed=length is not None)
    subject.driver = partial(driver_of, subject, original)
    return subject


def _called_with(module: nn.Module, extras: tuple[str, ...], setting: str) -> tuple[nn.Module, Quiet] | None:
    made = extended(module, extras)
    return None if made is None else (made, _quiet_for(module))


def _try(subject: Subject, examples: Examples, *, fixed: bool) -> None:
    """Call the module once as it will be called; fall back to the shape of the example inputs."""
    draws: list[Callable[[int, int], Sample]] = [subject.draw]
    if examples.single_row:
        draws.append(partial(examples.draw, None))
    lengths = list(dict.fromkeys([subject.length] if fixed else [subject.length, examples.length]))
    failure: Exception | None = None
    shapes = ""
    for length, draw in ((length, draw) for length in lengths for draw in draws):
        try:
            inputs = draw(length, 0).inputs
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in inputs)
            with torch.no_grad():
                subject.module(*inputs)
        except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
            failure = error
            continue
        if length != subject.length:
            subject.max_length = length
        subject.length, subject.draw = length, draw
        return
    if isinstance(failure, OrderproofError):
        raise failure
    text = " ".join(str(failure).split())[:300]
    raise SubjectError(f"{subject.name}: calling it with {shapes} raised {type(failure).__name__}: {text}") from failure


def _is_pretrained(module: nn.Module) -> bool:
    library = sys.modules.get("transformers")
    return library is not None and isinstance(module, library.PreTrainedModel)


def _quiet_for(module: nn.Module) -> Any:
    if not any(type(part).__module__.startswith("transformers.") for part in module.modules()):
        return _nothing_to_quiet
    from orderproof.subjects.quieting import plain_branches

    return partial(plain_branches, module)


def _nothing_to_quiet() -> AbstractContextManager[None]:
    return nullcontext()
