"""Ways of calling a subject beside its tokens alone, for the laws that ask about them.

    padded      with an attention mask that calls some tokens pads
    packed      with position ids that restart: two documents in each row
    blocked     the same, and a mask that lets each document see only itself
    labelled    with position ids as data (and, for a causal model, its mask): both are inputs then

What is fixed in the call (masks, restarting ids) is computed inside the module from the shape of the tokens, so
that it stands in the graph as a constant, and every length has its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from orderproof import slots
from orderproof.errors import OrderproofError
from orderproof.subjects.subject import Axis, Sample, Subject

PLAIN = "plain"
IN_WORDS = {
    "padded": "an attention mask",
    "packed": "position ids",
    "blocked": "position ids and a mask of every token to every other",
    "labelled": "position ids",
}


class Extended(nn.Module):
    """A module that takes more than its inputs, called with positions."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.names = tuple(names)

    def forward(self, *inputs: Tensor) -> object:
        """Call the module with the last inputs under their names."""
        count = len(inputs) - len(self.names)
        extras = zip(self.names, inputs[count:], strict=True)
        return self.model(*inputs[:count], **{name: converted(name, value) for name, value in extras})


# What modules call these; a mask of keys to leave out is the other way round.
CALLED = {
    "attention_mask": ("attention_mask", "padding_mask", "key_padding_mask", "src_key_padding_mask"),
    "position_ids": ("position_ids", "positions"),
}
LEFT_OUT = {"key_padding_mask", "src_key_padding_mask"}


def converted(name: str, value: Tensor) -> Tensor:
    """A mask of real tokens (1, and 0 for pads) as an argument of this name has it."""
    return value == 0 if name in LEFT_OUT else value.bool() if name == "padding_mask" else value


def extended(module: nn.Module, extras: tuple[str, ...]) -> nn.Module | None:
    """A plain module called with these beside its inputs; None where its forward does not name them."""
    accepted = inspect.signature(module.forward).parameters
    found = [next((name for name in CALLED.get(extra, ()) if name in accepted), None) for extra in extras]
    return None if None in found else Extended(module, [name for name in found if name is not None])


class Fixed(nn.Module):
    """A module called with arguments that follow from the shape of its tokens [batch, token, ...]."""

    def __init__(self, module: nn.Module, build: _Build) -> None:
        super().__init__()
        self.module = module
        self.build = build

    def forward(self, *inputs: Tensor) -> object:
        """Call the module with its inputs and what was built for them."""
        return self.module(*inputs, *self.build(inputs[0], floating(self.module, inputs[0])))


def floating(module: nn.Module, tokens: Tensor) -> torch.dtype:
    """The dtype a mask should have: that of the tokens, or of the weights where tokens are numbers."""
    if tokens.is_floating_point():
        return tokens.dtype
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)


def in_setting(subject: Subject, setting: str) -> Subject | str:
    """The subject called in a setting; or why it cannot be called so."""
    if setting == PLAIN:
        return subject
    missing = f"it takes no {IN_WORDS[setting].removeprefix('an ')}"
    if subject.takes is None or subject.cut is not None or subject.token_axes[0] != 1:
        return missing
    for names in _names(subject, setting):
        taken = subject.takes(names, setting)
        if taken is not None:
            made = _made(replace(subject, quiet=taken[1]), setting, names, taken[0].eval())
            if subject.device == "meta" or _runs(made):
                return made
    return missing


def _names(subject: Subject, setting: str) -> list[tuple[str, ...]]:
    """What to call it with, the fuller call first."""
    if setting == "labelled" and subject.kind == "causal_lm":
        return [("position_ids", "block_mask"), ("position_ids",)]
    return (
        [("attention_mask",)] if setting == "padded" else [("position_ids", *["block_mask"] * (setting == "blocked"))]
    )


def _made(subject: Subject, setting: str, names: tuple[str, ...], module: nn.Module) -> Subject:
    twin = None if subject.twin is None else _twin(subject.twin, setting)
    if setting != "labelled":
        values = {f"module.{name}": value for name, value in subject.values.items()}
        build = _Build(names, setting, subject)
        inside = "module" + (".model" if isinstance(module, Extended) else "")
        fixed = Fixed(module, build).eval()
        return replace(subject, module=fixed, values=values, twin=twin, takes=None, inside=inside)
    axes: tuple[Axis, ...] = (*subject.token_axes, *((2, 3) if name == "block_mask" else 1 for name in names))
    build = _Build(names, PLAIN, subject)

    def draw(length: int, seed: int) -> Sample:
        sample = subject.draw(length, seed)
        extras = build(sample.inputs[0], floating(module, sample.inputs[0]))
        return Sample((*sample.inputs, *(x.clone() for x in extras)), sample.tokens)

    inside = "model" if isinstance(module, Extended) else ""
    return replace(subject, module=module, token_axes=axes, draw=draw, twin=twin, takes=None, inside=inside)


def _twin(twin: Callable[[], Subject], setting: str) -> Callable[[], Subject]:
    def called() -> Subject:
        made = in_setting(twin(), setting)
        assert isinstance(made, Subject), made
        return made

    return called


class _Build:
    """The arguments of a call, from the shape of its tokens."""

    def __init__(self, names: tuple[str, ...], setting: str, subject: Subject) -> None:
        self.names, self.setting = names, setting
        self.causal, self.first = subject.kind == "causal_lm", subject.first_position

    def __call__(self, given: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
        rows, tokens, device = given.shape[0], given.shape[1], given.device
        made = []
        for name in self.names:
            if name == "attention_mask":
                made.append((~slots.pad_slots(rows, tokens, device)).long())
            elif name == "position_ids":
                made.append(self.first + self._positions(rows, tokens, device))
            else:
                made.append(self._visible(tokens, device, dtype).expand(rows, 1, tokens, tokens))
        return tuple(made)

    def _positions(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        if self.setting == PLAIN:
            return torch.arange(tokens, device=device).unsqueeze(0).expand(rows, tokens)
        return slots.restarting(rows, tokens, device)

    def _visible(self, tokens: int, device: torch.device, dtype: torch.dtype) -> Tensor:
        """0 where a token may look, the most negative number where not."""
        place = torch.arange(tokens, device=device)
        visible = place.unsqueeze(-1) >= place if self.causal else place.unsqueeze(-1) >= 0 * place
        if self.setting != PLAIN:
            visible = visible & slots.same_document(tokens, device)
        return torch.where(visible, 0.0, torch.finfo(dtype).min).to(dtype)


def _runs(made: Subject) -> bool:
    try:
        with torch.no_grad():
            made.module(*made.sample(made.length, 0).inputs)
    except OrderproofError:
        return False
    except Exception:  # noqa: BLE001 - the model is not ours: it may refuse the call in any way
        return False
    return True
