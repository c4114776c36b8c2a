"""Compare the arguments of a recording's operators with those of an eager call.

`eager_check` runs the call as it always runs, and sees the names of operators. Here it runs once more on real tensors,
under a dispatch mode that sees their arguments. A custom operator must leave its operands as its schema says. Products
with the large matrices of a large module are made with matrices of low rank, as the arguments do not depend on their
numbers; `eager_check` runs the call with its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload

from orderproof.cast_on_use import is_large, product_of_low_rank
from orderproof.errors import CaptureError, first_line
from orderproof.kernel_switch import without_compiled_kernels
from orderproof.operator_mode import OperatorMode
from orderproof.recording.arguments import tensors_in
from orderproof.recording.autocast import Autocast
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.eager_check import NOT_THE_PROGRAM, prepared_call, without_fast_path
from orderproof.recording.eager_view import EagerReads
from orderproof.recording.low_rank import low_rank_matrices
from orderproof.recording.memory import same_bytes
from orderproof.recording.nested_calls import written_out
from orderproof.recording.operator_names import is_of_torch
from orderproof.recording.owned_state import OwnedState
from orderproof.recording.program import Program
from orderproof.recording.selected_rows import called

_DIFFERENT = f"{NOT_THE_PROGRAM}an eager call "


def compare_programs(
    module: nn.Module, inputs: tuple[Tensor, ...], recorded: Program, written: list[Tensor], reached: OwnedState
) -> None:
    """Run the call in eager mode and compare its operators and their arguments with those of a recording.

    Args:
        module: The module that was recorded.
        inputs: The inputs of the call.
        recorded: The program of the recording.
        written: The tensors of the module that the call writes to; they get their values back.
        reached: The state of the module.

    Raises:
        CaptureError: They differ, or a custom operator writes to an operand against its schema.

    """
    program = Program(recorded.name_of)
    replaced = low_rank_matrices(module)[0] if is_large(module) else {}
    with (
        prepared_call(module, inputs, written, reached) as (copies, _),
        without_compilation(),
        without_compiled_kernels(),
        without_fast_path(),
    ):
        for place, tensor in enumerate(copies):
            program.name(tensor, "input", place)
        mode = _Follow(program, Autocast(inputs[0].device.type if inputs else "cpu"), replaced)
        with torch._C._AutoDispatchBelowAutograd(), mode, EagerReads(mode.autocast):
            try:
                output = called(module, copies)
            except Exception as error:
                if mode.refusal:
                    raise CaptureError(mode.refusal) from None
                raise CaptureError(f"{_DIFFERENT}raises {first_line(error)}") from error
        program.end(leaves_by_name(output))
    if difference := recorded.difference(program):
        raise CaptureError(f"{_DIFFERENT}{difference}")


class _Follow(OperatorMode):
    """Adds each operator to a program, and the functions that one runs in its place."""

    def __init__(self, program: Program, autocast: Autocast, replaced: Mapping[int, Tensor]) -> None:
        super().__init__()
        self.program, self.autocast, self.replaced = program, autocast, replaced
        self.refusal = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, OpOverload):
            return self.program.follow(self._run, func, args, kwargs or {})
        function = written_out(func)
        if function is None:
            raise CaptureError(f"{_DIFFERENT}runs {func}")
        with self, EagerReads(self.autocast):
            return function(*args, **(kwargs or {}))

    def _run(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_of_torch(func):
            with self.autocast.again(func):
                product = None if kwargs else product_of_low_rank(func, args, self.replaced)
                return func(*args, **kwargs) if product is None else product
        operands = tensors_in((args, kwargs)) if not func._schema.is_mutable else []
        before = [x.clone() for x in operands]
        result = func(*args, **kwargs)
        if not all(map(same_bytes, operands, before)):
            self.refusal = f"the operator {func} writes to an operand, which its schema does not say"
            raise CaptureError(self.refusal)
        return result
