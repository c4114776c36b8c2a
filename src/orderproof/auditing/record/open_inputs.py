"""The inputs of calls with open sizes, by call mode: the tokens, and what both runs of a law share."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from orderproof.auditing.record.open_examples import open_examples
from orderproof.models import Subject
from orderproof.models.settings import DEFAULT_SETTING, candidate_inputs, mask_dtype
from orderproof.models.subject import ExportContext
from orderproof.recording.low_rank import call_for_shapes
from orderproof.recording.open_recording import OpenInput
from orderproof.recording.restored_state import restored_state
from orderproof.theorems.statement import BLOCKS, FIXED, MASK, RIGHT_MASK, ROW_INPUT, TOKEN_INPUT

EXAMPLE_LENGTH = 23  # [tokens] of an open recording: more than the windows of tiny models
NO_TOKENS = "no input has a token axis"
PADDED_RIGHT = "padded right"
OPEN_MODES = (  # in which the inputs of a setting are open
    DEFAULT_SETTING, "padded", PADDED_RIGHT, "packed", "blocked", "labelled",
)  # fmt: skip


class NoTheorem(Exception):
    """Nothing is proved for every length; the message says why."""


@dataclass
class OpenInputs:
    """The inputs of a subject with open sizes.

    Attributes:
        subject: The subject.
        length: The number of tokens, if only the number of rows is open; None if both are.

    """

    subject: Subject
    length: int | None = None  # [tokens]
    _names: dict[str, tuple[str, ...]] = field(default_factory=dict)  # besides the tokens
    _export_contexts: dict[str, ExportContext] = field(default_factory=dict)  # of calls with further inputs

    def names(self, call_mode: str) -> tuple[str, ...]:
        """The inputs of a call mode besides the tokens, the first that the module takes."""
        if call_mode not in self._names:
            self._names[call_mode] = self._accepted(call_mode)
        return self._names[call_mode]

    def shared_roles(self, call_mode: str) -> tuple[str, ...]:
        """The roles of these inputs, by which a law states what holds of them."""
        names = self.names(call_mode)
        return tuple(RIGHT_MASK if name == MASK else name for name in names) if call_mode == PADDED_RIGHT else names

    def _accepted(self, call_mode: str) -> tuple[str, ...]:
        if call_mode == DEFAULT_SETTING:
            return ()
        candidates = candidate_inputs(self.subject, call_mode)
        for names in candidates[:-1]:
            setting = self.subject.bind_inputs and self.subject.bind_inputs(names, call_mode)
            if setting and (self.subject.device == "meta" or not self._call_fails(setting[0].eval(), call_mode, names)):
                return names
        return candidates[-1]

    def _call_fails(self, module: nn.Module, call_mode: str, names: tuple[str, ...]) -> bool:
        try:
            with restored_state(module):
                call_for_shapes(module, next(open_examples(self.subject, names, call_mode, EXAMPLE_LENGTH)))
        except Exception:  # noqa: BLE001 - third-party code: it does not take these inputs
            return True
        return False

    def call(self, call_mode: str) -> tuple[nn.Module, list[OpenInput], tuple[str, ...]]:
        """The module of a call mode, its open inputs, and their roles."""
        subject, shared = self.subject, self.names(call_mode)
        if subject.single_row:
            raise NoTheorem("it takes one row, so its number of rows is not open")
        samples = subject.sample(subject.default_length if self.length is None else self.length, 0).inputs
        inputs, roles = [], []
        for k, (x, axis) in enumerate(zip(samples, subject.token_axes, strict=True)):
            sizes: list[int | str] = list(x.shape)
            if self.length is not None:
                if not (axis or (axis is None and subject.starts_with_rows)):
                    raise NoTheorem("an input has no axis of rows")
                sizes[0] = "batch"
                inputs.append(OpenInput(f"input_{k}", tuple(sizes), x.dtype))
                roles.append(ROW_INPUT)
                continue
            if axis is not None and not isinstance(axis, int):
                raise NoTheorem("an input has several token axes")
            if axis is not None:
                sizes[axis] = "tokens"
            if axis or (axis is None and subject.row_inputs and subject.row_inputs[k]):
                sizes[0] = "batch"  # of an input that is held: but for its number of rows
            inputs.append(OpenInput(f"input_{k}", tuple(sizes), x.dtype, fixed=axis is None))
            roles.append(FIXED if axis is None else TOKEN_INPUT)
        if self.length is None and TOKEN_INPUT not in roles:
            raise NoTheorem(NO_TOKENS)
        module: nn.Module = subject.module
        if shared:
            bound = None if subject.bind_inputs is None else subject.bind_inputs(shared, call_mode)
            if bound is None:
                raise NoTheorem("it does not take the inputs of this call mode")
            module, self._export_contexts[call_mode] = bound[0].eval(), bound[1]
        dtype = mask_dtype(module, samples[0])
        for name in shared:
            sizes = ["batch", 1, "tokens", "tokens"] if name == BLOCKS else ["batch", "tokens"]
            inputs.append(OpenInput(name, tuple(sizes), dtype if name == BLOCKS else torch.int64, fixed=True))
        return module, inputs, (*roles, *self.shared_roles(call_mode))

    def shapes(self, call_mode: str) -> tuple[str, ...]:
        """The shapes of the inputs of a call mode: `[batch, tokens, 8]`."""
        return tuple(f"[{', '.join(map(str, one.sizes))}]" for one in self.call(call_mode)[1])

    def replaced(self, call_mode: str) -> ExportContext:
        """The block in which parts of the model are replaced that cannot be recorded."""
        return self._export_contexts.get(call_mode, self.subject.export_context)
