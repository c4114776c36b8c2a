"""An eager call of a model whose graph torch.export made: its state, and effects that no such graph shows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from orderproof.errors import CaptureError
from orderproof.recording.arguments import written_and_read
from orderproof.recording.eager_check import prepared_call
from orderproof.recording.elements import goes_by_element, reads_what_it_writes
from orderproof.recording.outside_calls import observed_outside_calls
from orderproof.recording.owned_state import owned_state
from orderproof.recording.refusal import NOT_RECORDED
from orderproof.recording.running_statistics import hidden_write


def observe_call(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Run the call in eager mode, for a graph that the recorder did not record.

    Args:
        module: The module.
        inputs: The inputs of the call.

    Returns:
        The state that it changes, and the functions that it calls whose answers come from outside the program.

    Raises:
        CaptureError: The call does what no recording can follow.

    """
    buffers = [(name, x) for name, x in module.named_buffers() if not x.is_meta]
    before = [x.detach().clone() for _, x in buffers]
    with (
        prepared_call(module, inputs, [x for _, x in buffers], owned_state(module)) as (copies, changes),
        observed_outside_calls() as calls,
    ):  # fmt: skip
        module(*copies)
        written = [name for (name, x), value in zip(buffers, before, strict=True) if not torch.equal(x, value)]
    if calls.unfollowed:
        raise CaptureError(f"{NOT_RECORDED}the call {calls.unfollowed[0]}")
    effects, reached = _HiddenEffects(), owned_state(module)
    prepared = prepared_call(module, inputs, [x for _, x in buffers], reached)
    with suppress(Exception), prepared as (copies, _), effects:
        module(*copies)
    if effects.found:
        raise CaptureError(f"{NOT_RECORDED}{effects.found}")
    return tuple(dict.fromkeys([*written, *changes.names])), tuple(calls.outside)


class _HiddenEffects(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the first operator whose effect no graph of torch.export shows."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, OpOverload) and not self.found:
            written, read = written_and_read(func, args, kwargs)
            self.found = (
                hidden_write(func, args, kwargs) or _write_to_array(func, written)
                or _write_to_operand(func, written, read)
            )  # fmt: skip
        return func(*args, **kwargs)


def _write_to_operand(func: OpOverload, written: list[Tensor], read: list[Tensor]) -> str:
    """How an operator writes to what it reads; empty if it does not."""
    by_element = goes_by_element(func)
    with torch._C.DisableTorchFunction():
        pairs = [(x, y) for x in written for y in read if _storage(x) == _storage(y) is not None]
        meets = any(reads_what_it_writes(x, y, by_element=by_element) for x, y in pairs)
    return f"it reads memory to which it writes ({func})" if meets else ""


def _storage(x: Tensor) -> int | None:
    return x.untyped_storage()._cdata if x.layout is torch.strided else None


def _write_to_array(func: OpOverload, written: list[Tensor]) -> str:
    """How an operator writes to a tensor whose memory an array may share; empty if it does not."""
    with torch._C.DisableTorchFunction():
        shared = any(x.layout is torch.strided and not x.untyped_storage().resizable() for x in written)
    return f"it writes to a tensor whose memory an array may share ({func})" if shared else ""
