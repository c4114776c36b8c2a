"""The instructions that a model executes in an eager call, to be compared with those of a recording."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from orderproof.kernel_switch import without_compiled_kernels
from orderproof.positions import without_value_checks
from orderproof.prover.compiled_code import without_compilation
from orderproof.prover.recording.eager_view import EagerReads
from orderproof.prover.recording.instruction_trace import InstructionTrace, untraced


def trace_eager_call(module: nn.Module, inputs: tuple[Tensor, ...]) -> InstructionTrace:
    """The instructions of one call, under as many modes of torch as a recording. Raises what the call raises."""
    trace, operators = InstructionTrace(), _OperatorsUntraced()  # type: ignore[no-untyped-call]
    with (
        torch.no_grad(), without_value_checks(), without_compilation(), without_compiled_kernels(),
        torch._C._AutoDispatchBelowAutograd(), operators, EagerReads(), trace.tracing(),
    ):  # fmt: skip
        module(*(x.clone() for x in inputs))
    return trace


class _OperatorsUntraced(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Traces nothing within operators, such as the kernel of a custom one."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with untraced():
            return func(*args, **(kwargs or {}))
