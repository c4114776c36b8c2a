"""The token id of pads, for a module that takes no mask: it finds its pads among the ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from orderproof.batch_layout import Side
from orderproof.errors import UsageError
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.subject_spec import Layout

NAME = re.compile(r"(\w+_)?pad(ding)?(_token)?_(id|idx|index|ix)")  # of an attribute; `padding` is a width, too
SETTINGS = ("config", "cfg", "args", "hparams")  # attributes with the settings of a module
IDS = (torch.int32, torch.int64)


@dataclass(frozen=True)
class PadIds:
    """The id of pads.

    Attributes:
        place: The input with the ids [row, token].
        id: The id.
        known_by: How it is known, for the report.
        sides: The sides on which the rows of the example are padded with it.

    """

    place: int
    id: int
    known_by: str
    sides: frozenset[Side] = frozenset()

    def filled(self, inputs: tuple[Tensor, ...], mask: Tensor) -> tuple[Tensor, ...]:
        """The inputs with this id at the tokens that a mask [row, token] calls pads."""
        real = mask[:, -inputs[self.place].shape[1] :].bool()
        return self._with_ids(inputs, inputs[self.place].masked_fill(~real, self.id))

    def without_pads(self, inputs: tuple[Tensor, ...], other: int) -> tuple[Tensor, ...]:
        """The inputs with another id at each pad."""
        ids = inputs[self.place]
        return self._with_ids(inputs, ids.masked_fill(ids == self.id, other))

    def _with_ids(self, inputs: tuple[Tensor, ...], ids: Tensor) -> tuple[Tensor, ...]:
        return (*inputs[: self.place], ids, *inputs[self.place + 1 :])


def pad_ids(calls: ModuleCalls, layout: Layout, call: Call) -> PadIds | None:
    """The id of pads in the first input, as stated or as the module says; None without one.

    Args:
        calls: Those of the module.
        layout: What the user states of its inputs.
        call: A call that it accepts.

    Raises:
        UsageError: An id of pads is stated for an input that has no ids [row, token].

    """
    place = next(place for place, axis in enumerate(call.examples.axes) if axis is not None)
    example = call.examples.tensors[place]
    if example.dtype not in IDS or example.dim() != 2 or call.examples.axes[place] != 1:
        if layout.pads is not None and layout.pads.id is not None:
            raise UsageError(
                f"expected ids [row, token] in {layout.pads.name!r}, whose pads have an id; got {example.dtype} of "
                f"shape {tuple(example.shape)}"
            )
        return None
    pad, known_by = _of_module(calls, call, place) if layout.pads is None else (layout.pads.id, "stated")
    if pad is None:
        return None
    ends: tuple[tuple[Side, int], ...] = (("left", 0), ("right", -1))
    some = (example != pad).any(1)
    sides = frozenset(side for side, end in ends if bool((example[some][:, end] == pad).any()))
    return PadIds(place, pad, known_by, sides)


def _of_module(calls: ModuleCalls, call: Call, place: int) -> tuple[int | None, str]:
    """The id that the table of the ids says, or an attribute of the module; None if there is none, or several."""
    found = {pad: f"padding_idx of {name}" for name, pad in _tables(calls, call, place)}
    if not found:
        for name, value in _numbers(calls.module):
            if value >= 0 and NAME.fullmatch(name):
                found.setdefault(value, f"its attribute {name}")
    pairs = list(found.items())
    return pairs[0] if len(pairs) == 1 else (None, "")


def _numbers(module: nn.Module) -> Iterator[tuple[str, int]]:
    """The integers among the attributes of a module, its parts and their settings, by name."""
    for part in module.modules():
        own = vars(part)
        settings = [x if isinstance(x, dict) else getattr(x, "__dict__", {}) for x in map(own.get, SETTINGS)]
        for owner in (*([] if isinstance(part, nn.Embedding) else [own]), *settings):
            yield from ((name, value) for name, value in owner.items() if type(value) is int and type(name) is str)


def _tables(calls: ModuleCalls, call: Call, place: int) -> list[tuple[str, int]]:
    """The embeddings with a row for pads that read the ids of a call: the name and the row of each."""
    inputs = call.inputs()
    read: list[tuple[str, int]] = []
    hooks = []
    for name, module in calls.module.named_modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:

            def note(
                _: nn.Module, given: tuple[object, ...], found: tuple[str, int] = (name, module.padding_idx)
            ) -> None:
                ids = given[0] if given else None
                if isinstance(ids, Tensor) and ids.shape == inputs[place].shape and torch.equal(ids, inputs[place]):
                    read.append(found)

            hooks.append(module.register_forward_pre_hook(note))
    try:
        if hooks:
            calls.accepts(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return read
