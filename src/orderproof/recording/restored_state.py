"""The state that calls of a module change, undone after a block: attributes, buffers and other tensors within reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.module_state import RANDOM_GENERATOR, preserved_state
from orderproof.recording.owned_state import OwnedState, owned_state

MOST_BYTES = 1 << 26  # of tensors that are copied to restore them: 64 MB


def changes_state(captured: CapturedGraph | None) -> bool:
    """True if the recorded call changes state besides torch's random generator, which is seeded for each run."""
    return captured is not None and bool(set(captured.changed_state) - {RANDOM_GENERATOR})


@contextmanager
def restored_state(module: nn.Module, reached: OwnedState | None = None) -> Iterator[None]:
    """Undo what calls in the block change in a module; ``reached`` is its state if it is known already.

    Parameters stay as they are, see `unchanged_module`.
    """
    reached = owned_state(module) if reached is None else reached
    buffers = [(part, dict(part._buffers)) for part in module.modules()]
    values = _values(_tensors(module, reached))
    try:
        with preserved_state(module, reached):
            yield
    finally:
        for part, named in buffers:
            _restore_names(part._buffers, named)
        _restore(values)


@contextmanager
def unchanged_module(module: nn.Module) -> Iterator[None]:
    """Undo what calls in the block change in a module and its state, its parameters included.

    Parameters and buffers of more than `MOST_BYTES` together are not copied, and stay as they are then. A lazy module
    is left as its first call makes it.
    """
    tensors = [*module.parameters(), *module.buffers()]
    if any(map(torch.nn.parameter.is_lazy, tensors)):
        yield
        return
    tensors = [x for x in tensors if _has_values(x)]
    small = sum(x.numel() * x.element_size() for x in tensors) <= MOST_BYTES
    values = _values(tensors) if small else []
    named = [(part, dict(part._parameters)) for part in module.modules()]
    try:
        with restored_state(module):
            yield
    finally:
        for part, parameters in named:
            _restore_names(part._parameters, parameters)
        _restore(values)


def _tensors(module: nn.Module, reached: OwnedState) -> list[Tensor]:
    """The buffers of a module and the tensors within its reach; not its parameters."""
    held = (x for part in module.modules() for x in vars(part).values() if isinstance(x, Tensor))
    others = (x for x in reached.tensors if _has_values(x) and x.numel() * x.element_size() <= MOST_BYTES)
    found = {id(x): x for x in (*module.buffers(), *held, *others)}
    return [x for x in found.values() if _has_values(x)]


def _restore_names(held: dict[str, Any], before: dict[str, Any]) -> None:
    """Let a module hold the same tensors under the same names as before."""
    if [(name, id(x)) for name, x in held.items()] != [(name, id(x)) for name, x in before.items()]:
        held.clear()
        held.update(before)


def _has_values(x: Tensor) -> bool:
    # Sparse tensors cannot be compared by `torch.equal`.
    return not x.is_meta and x.layout is torch.strided and not torch.nn.parameter.is_lazy(x)


def _values(tensors: Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return [(x, x.detach().clone()) for x in tensors]


def _restore(values: Iterable[tuple[Tensor, Tensor]]) -> None:
    with torch.no_grad():
        for tensor, value in values:
            if (tensor.shape, tensor.dtype, tensor.device) != (value.shape, value.dtype, value.device):
                tensor.data = value
            elif not _are_equal(tensor.detach(), value):
                tensor.detach().copy_(value)


def _are_equal(first: Tensor, second: Tensor) -> bool:
    if first.is_complex():  # `torch.equal` knows no complex32
        first, second = (torch.view_as_real(x.resolve_conj()) for x in (first, second))
    return torch.equal(first, second)
