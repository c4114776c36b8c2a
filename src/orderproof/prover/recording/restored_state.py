"""The state that calls of a module change, undone after a block: attributes, buffers and tensors in attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from orderproof.prover.captured_graph import CapturedGraph
from orderproof.prover.recording.module_state import RANDOM_GENERATOR, preserved_state
from orderproof.prover.recording.reachable_state import ReachableState


def changes_state(captured: CapturedGraph | None) -> bool:
    """True if the recorded call changes state besides torch's random generator, which is seeded for each run."""
    return captured is not None and bool(set(captured.changed_state) - {RANDOM_GENERATOR})


@contextmanager
def restored_state(module: nn.Module, reached: ReachableState | None = None) -> Iterator[None]:
    """Undo what calls in the block change in a module; ``reached`` is its state if it is known already."""
    buffers = [(part, dict(part._buffers)) for part in module.modules()]
    values = [(x, x.detach().clone()) for x in _tensors(module)]
    try:
        with preserved_state(module, reached):
            yield
    finally:
        for part, named in buffers:
            part._buffers = named
        with torch.no_grad():
            for tensor, value in values:
                if tensor.shape != value.shape:
                    tensor.data = value
                elif not torch.equal(tensor.detach(), value):
                    tensor.detach().copy_(value)


def _tensors(module: nn.Module) -> list[Tensor]:
    """The buffers of a module and the tensors in attributes; not its parameters."""
    held = (x for part in module.modules() for x in vars(part).values() if isinstance(x, Tensor))
    return [x for x in (*module.buffers(), *held) if not x.is_meta and not torch.nn.parameter.is_lazy(x)]
