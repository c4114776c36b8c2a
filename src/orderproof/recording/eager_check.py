"""Compare a recording with the same call in eager mode, operator by operator.

A model may take another branch on meta tensors under torch's modes than on the tensors it usually gets: an error that
it catches, a fused implementation, a question about the class of a tensor. Instead of a list of such questions, the
call runs once more as it always does, on real tensors and without modes, while torch's profiler reports its operators.
A model that takes another branch calls other operators, and one that reads a value calls an operator to read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._autograd import _disable_profiler_legacy, _enable_profiler_legacy, _profiler_enabled
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig, _RecordFunctionFast

from orderproof.errors import CaptureError
from orderproof.kernel_switch import without_compiled_kernels
from orderproof.positions import without_value_checks
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.module_state import StateChanges, preserved_state
from orderproof.recording.outside_calls import OutsideCalls, observed_outside_calls
from orderproof.recording.owned_state import OwnedState
from orderproof.recording.refusal import NOT_RECORDED
from orderproof.recording.selected_rows import called
from orderproof.seeded_random import seeded_random

# The operators with which torch makes a tensor of Python numbers, and those that change neither values nor shape; torch
# calls some of them only under a mode.
_WITHOUT_EFFECT = {
    f"aten::{name}"
    for name in (
        "empty", "to", "lift_fresh", "scalar_tensor", "detach", "detach_", "alias", "set_", "contiguous",
        "_has_compatible_shallow_copy_type",
    )
}  # fmt: skip


NOT_THE_PROGRAM = "the recording is not the program that runs: "
_HIDDEN = "orderproof::hidden"


def hidden_from_profile() -> AbstractContextManager[Any]:
    """A block whose operators are not those of the model."""
    hidden: AbstractContextManager[Any] = _RecordFunctionFast(_HIDDEN)
    return hidden


@contextmanager
def profiled_operators(*, hiding: bool = False) -> Iterator[list[str]]:
    """The operators that the block calls, in order, without those that they call; filled when the block ends.

    Only names of registered operators count: a range that the model itself names hides no operator.

    Args:
        hiding: Leave out the blocks of `hidden_from_profile`, which only a recording contains.

    """
    operators: list[str] = []
    another = _profiler_enabled()
    settings = ProfilerConfig(ProfilerState.CPU, False, False, False, False, False, _ExperimentalConfig())
    try:  # a time limit may end the block right after the profiler was enabled
        _enable_profiler_legacy(settings)
        yield operators
    finally:
        if not another and _profiler_enabled():
            for thread in _disable_profiler_legacy():
                operators += _outermost(thread, hiding=hiding)


def _outermost(events: Sequence[Any], *, hiding: bool) -> Iterator[str]:
    """Names of the operators that no other operator called. Other ranges of the profiler are transparent."""
    stack: list[bool] = []  # for each open range: it is an operator
    for event in events:
        if event.kind() == "push":
            name = event.name()
            operator = (hiding and name == _HIDDEN) or (event.scope() == 0 and _is_operator(name))
            if operator and not any(stack) and name != _HIDDEN and name not in _WITHOUT_EFFECT:
                yield name
            stack.append(operator)
        elif event.kind() == "pop" and stack:
            stack.pop()


@cache
def _is_operator(name: str) -> bool:
    return "::" in name and bool(torch._C._jit_get_schemas_for_operator(name))


def can_compare(module: nn.Module, inputs: tuple[Tensor, ...]) -> bool:
    """True if every tensor of the call has values and no other profiler runs."""
    tensors = (*inputs, *module.parameters(), *module.buffers())
    return not _profiler_enabled() and not any(x.is_meta for x in tensors)


@dataclass(frozen=True)
class EagerCall:
    """An eager call that runs the recorded operators.

    Attributes:
        operators: The operators that it ran.
        calls: What it did besides.
        changed: The state that it changes besides tensors.
        output: What it returned, with torch's generators seeded by 0.
        without: The fused implementations that were off; empty if none was.

    """

    operators: list[str]
    calls: OutsideCalls
    changed: list[str]
    output: Any
    without: str = ""

    def runs(self, recorded: list[str]) -> bool:
        """True if the call ran these operators, and did nothing that no recording follows."""
        return self.operators == recorded and not self.calls.unfollowed


def compare_with_eager(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    recorded: list[str] | None,
    written: list[Tensor],
    reached: OwnedState,
) -> EagerCall:
    """Run the call in eager mode and compare its operators.

    Args:
        module: The module that was recorded.
        inputs: The inputs of the call.
        recorded: The operators of the recording. None: those of the call are others, as one of them runs functions of
            the model, which were recorded in its place.
        written: The tensors of the module that the call writes to; they get their values back.
        reached: The state of the module.

    Returns:
        The eager call, perhaps with fused implementations off.

    Raises:
        CaptureError: The call runs other operators, or does what no recording can follow.

    """
    with without_compilation() if recorded is None else nullcontext():
        eager = _run_eagerly(module, inputs, written, reached)
    recorded = eager.operators if recorded is None else recorded
    if eager.runs(recorded) and not eager.calls.compiled:
        return eager
    # What compiled code calls is not seen: only a call without it counts.
    for names in [c for c in _COMBINATIONS if "compilation" in c or not eager.calls.compiled]:
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(_FUSED[name][1]())
            without = _run_eagerly(module, inputs, written, reached)
        if without.runs(recorded):
            return replace(without, without=" and ".join(_FUSED[name][0] for name in names))
    if eager.calls.unfollowed:
        raise CaptureError(f"{NOT_RECORDED}the call {eager.calls.unfollowed[0]}")
    if eager.operators == recorded:
        raise CaptureError(f"{NOT_RECORDED}the call runs code of torch.compile, and another program without it")
    first, second = next(pair for pair in zip_longest(recorded, eager.operators) if pair[0] != pair[1])
    raise CaptureError(
        f"{NOT_THE_PROGRAM}an eager call runs {_described(second)} where the recording has {_described(first)}"
    )


def _run_eagerly(
    module: nn.Module, inputs: tuple[Tensor, ...], written: list[Tensor], reached: OwnedState
) -> EagerCall:
    with (
        seeded_random(0), prepared_call(module, inputs, written, reached) as (copies, changes),
        profiled_operators() as operators, observed_outside_calls() as calls,
    ):  # fmt: skip
        output = called(module, copies)
    return EagerCall(operators, calls, changes.names, output)


@contextmanager
def prepared_call(
    module: nn.Module, inputs: tuple[Tensor, ...], written: list[Tensor], reached: OwnedState
) -> Iterator[tuple[tuple[Tensor, ...], StateChanges]]:
    """A block for one eager call on copies of the inputs, which leaves no trace in the module; what it changed."""
    with (
        preserved_state(module, reached) as changes, _preserved_tensors(module, written),
        without_value_checks(), torch.no_grad(),
    ):  # fmt: skip
        yield tuple(x.clone() for x in inputs), changes


@contextmanager
def without_fast_path() -> Iterator[None]:
    """A block in which nn.MultiheadAttention and nn.TransformerEncoder compute with torch's operators one by one."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


# Implementations that replace several operators where no mode is active.
_FUSED: dict[str, tuple[str, Callable[[], AbstractContextManager[None]]]] = {
    "kernels": ("orderproof's compiled kernels", without_compiled_kernels),
    "attention": ("torch's fast path of nn.MultiheadAttention", without_fast_path),
    "compilation": ("torch.compile", without_compilation),
}
_COMBINATIONS = [names for count in range(1, len(_FUSED) + 1) for names in combinations(_FUSED, count)]


def _described(operator: str | None) -> str:
    return "no further operator" if operator is None else operator


@contextmanager
def _preserved_tensors(module: nn.Module, written: list[Tensor]) -> Iterator[None]:
    """Restore which tensors the module holds, and the values of those that are written to."""
    before = [(held, dict(held)) for part in module.modules() for held in (part._parameters, part._buffers)]
    values = [(x, x.detach().clone()) for x in written]
    try:
        yield
    finally:
        for held, tensors in before:
            held.clear()
            held.update(tensors)  # type: ignore[arg-type]
        for tensor, value in values:
            tensor.detach().copy_(value)
