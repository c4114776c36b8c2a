"""Compare the arguments of a recording's operators with those of an eager call.

`eager_check` runs the call as it always runs, and sees the names of operators. Here it runs once more on real tensors,
under a dispatch mode that sees their arguments. A model could notice the mode, but only by calls that the first run
refuses. A custom operator must leave its operands as its schema says. The weights have other numbers in this run, which
no instruction of the model may notice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from orderproof.errors import CaptureError, first_line
from orderproof.kernel_switch import without_compiled_kernels
from orderproof.recording.arguments import tensors_in
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.eager_check import NOT_THE_PROGRAM, prepared_call
from orderproof.recording.eager_view import EagerReads
from orderproof.recording.instruction_trace import InstructionTrace, untraced
from orderproof.recording.memory import same_bytes
from orderproof.recording.operator_names import is_of_torch
from orderproof.recording.other_weights import other_weights
from orderproof.recording.program import Program
from orderproof.recording.reachable_state import ReachableState

_DIFFERENT = f"{NOT_THE_PROGRAM}an eager call "


def compare_programs(
    module: nn.Module, inputs: tuple[Tensor, ...], recorded: Program, written: list[Tensor], reached: ReachableState,
    eager: InstructionTrace,
) -> str:  # fmt: skip
    """Run the call in eager mode with other weights and compare it with a recording: operators, arguments and results.

    Args:
        module: The module that was recorded.
        inputs: The inputs of the call.
        recorded: The program of the recording.
        written: The tensors of the module that the call writes to; they get their values back.
        reached: The state of the module.
        eager: The instructions of a call with its own weights.

    Returns:
        How the call computes with the numbers of its weights; empty if it does not.

    Raises:
        CaptureError: They differ also with its own weights, or a custom operator writes to an operand against its
            schema.

    """
    parameters = (*module.parameters(), *reached.trained)
    difference, with_others = "", InstructionTrace()
    for mildly in (False, True):
        with_others = InstructionTrace()
        try:
            with other_weights(parameters, mildly=mildly):
                program = _followed(module, inputs, recorded, written, reached, with_others)
        except CaptureError as error:  # the model may refuse weights of the other sign
            difference = str(error).removeprefix(_DIFFERENT)
            continue
        difference = recorded.difference(program)
        if not difference and not (eager.other_instruction(with_others) or eager.other_result(with_others)):
            return ""
        break
    with_own = InstructionTrace()  # results that change from call to call are not those of weights
    if own_difference := recorded.difference(_followed(module, inputs, recorded, written, reached, with_own)):
        raise CaptureError(f"{_DIFFERENT}{own_difference}")
    if difference or eager.other_instruction(with_own):
        return difference
    return eager.other_instruction(with_others) or eager.other_result(with_others, steady=with_own)


def _followed(
    module: nn.Module, inputs: tuple[Tensor, ...], recorded: Program, written: list[Tensor], reached: ReachableState,
    trace: InstructionTrace,
) -> Program:  # fmt: skip
    """The program of an eager call whose instructions are traced. Raises `CaptureError` if it fails."""
    program = Program(recorded.name_of)
    with (
        prepared_call(module, inputs, written, reached) as (copies, _),
        without_compilation(),
        without_compiled_kernels(),
    ):
        for place, tensor in enumerate(copies):
            program.name(tensor, "input", place)
        mode = _Follow(program)
        with torch._C._AutoDispatchBelowAutograd(), mode, EagerReads():
            try:
                with trace.tracing():
                    output = module(*copies)
            except Exception as error:
                if mode.refusal:
                    raise CaptureError(mode.refusal) from None
                raise CaptureError(f"{_DIFFERENT}raises {first_line(error)}") from error
        program.end(leaves_by_name(output))
    return program


class _Follow(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds each operator to a program."""

    def __init__(self, program: Program) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.program = program
        self.refusal = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with untraced():
            return self.program.follow(self._run, func, args, kwargs or {})

    def _run(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_of_torch(func):
            return func(*args, **kwargs)
        operands = tensors_in((args, kwargs)) if not func._schema.is_mutable else []
        before = [x.clone() for x in operands]
        result = func(*args, **kwargs)
        if not all(map(same_bytes, operands, before)):
            self.refusal = f"the operator {func} writes to an operand, which its schema does not say"
            raise CaptureError(self.refusal)
        return result
