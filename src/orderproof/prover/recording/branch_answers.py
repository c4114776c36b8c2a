"""The answers that a call in eager mode gets to its questions about data."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from orderproof.prover.recording.branches import is_question
from orderproof.prover.recording.eager_check import prepared_call
from orderproof.prover.recording.eager_view import EagerReads
from orderproof.prover.recording.reachable_state import reachable_state
from orderproof.prover.recording.recorded_graph import tensors_in


class _Listener(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the answers that a call gets."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.answers: list[bool] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs or {})
        if is_question(func.overloadpacket.__name__, tensors_in((args, kwargs or {}))):
            self.answers.append(bool(result))
        return result


def answers_of(module: nn.Module, inputs: tuple[Tensor, ...]) -> list[bool]:
    """The answers that an eager call gets; raises what the call raises."""
    listener = _Listener()
    with (
        prepared_call(module, inputs, [], reachable_state(module)) as (copies, _),
        torch._C._AutoDispatchBelowAutograd(), listener, EagerReads(),
    ):  # fmt: skip
        module(*copies)
    return listener.answers
