"""The instructions that a model executes in an eager call, to be compared with those of a recording."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import CaptureError
from orderproof.kernel_switch import without_compiled_kernels
from orderproof.positions import without_value_checks
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.instruction_trace import InstructionTrace
from orderproof.recording.outside_calls import observed_outside_calls


def trace_eager_call(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Any, InstructionTrace]:
    """The outputs of a call and its instructions, under none of the modes of a recording.

    Raises `CaptureError` if it does what no recording can follow, and what the call raises.
    """
    trace = InstructionTrace()
    with (
        torch.no_grad(), without_value_checks(), without_compilation(), without_compiled_kernels(),
        observed_outside_calls() as calls, trace.tracing(),
    ):  # fmt: skip
        outputs = module(*(x.clone() for x in inputs))
    if calls.unfollowed:
        raise CaptureError(f"it {calls.unfollowed[0]}")
    return outputs, trace
