"""The booleans that an eager call reads, for a recording that cannot know them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from orderproof.operator_mode import OperatorMode
from orderproof.recording.autocast import Autocast
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.eager_check import prepared_call
from orderproof.recording.eager_view import EagerReads
from orderproof.recording.owned_state import OwnedState
from orderproof.recording.selected_rows import called
from orderproof.recording.token_branches import FLAG_READS, is_flag


def eager_answers(module: nn.Module, inputs: tuple[Tensor, ...], reached: OwnedState) -> list[bool]:
    """The value of each boolean that an eager call reads, in order."""
    written = [*module.parameters(), *module.buffers()]
    with prepared_call(module, inputs, written, reached) as (copies, _), without_compilation():
        mode = _FlagReads()
        with torch._C._AutoDispatchBelowAutograd(), mode, EagerReads(Autocast(inputs[0].device.type)):
            called(module, copies)
    return mode.answers


class _FlagReads(OperatorMode):
    """Keeps the booleans that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[bool] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.__name__.partition(".")[0] in FLAG_READS and args and is_flag(args[0]):
            self.answers.append(bool(result))
        return result
