"""State outside the tensors of a call: what a forward call changes besides its tensors, undone after.

A module that counts its calls, or draws from Python's random generator, may behave differently at each call. A
recording shows one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from orderproof.prover.recording.reachable_state import reachable_state

_SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch's number of threads": (torch.get_num_threads, torch.set_num_threads),
    "torch's choice of deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms,
    ),
}  # fmt: skip


@contextmanager
def preserved_state(module: nn.Module) -> Iterator[list[str]]:
    """Restore what a module can reach, settings and random generators; the list then names what the block changed."""
    changed: list[str] = []
    states = reachable_state(module)
    settings = {name: read() for name, (read, _) in _SETTINGS.items()}
    generators = _generators()
    try:
        yield changed
    finally:
        changed += [name for state in states for name in state.changes()]
        for name, (read, restore) in _SETTINGS.items():
            if read() != settings[name]:
                changed.append(name)
                restore(settings[name])
        changed += [name for name, state in _generators().items() if not _same_state(state, generators.get(name))]
        _restore_generators(generators)


def _generators() -> dict[str, Any]:
    found: dict[str, Any] = {
        "Python's random generator": random.getstate(),
        "torch's random generator": torch.get_rng_state(),
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found["numpy's random generator"] = numpy.random.get_state(legacy=False)
    return found


def _same_state(first: Any, second: Any) -> bool:
    return repr(first) == repr(second) if not isinstance(first, torch.Tensor) else torch.equal(first, second)


def _restore_generators(states: dict[str, Any]) -> None:
    random.setstate(states["Python's random generator"])
    torch.set_rng_state(states["torch's random generator"])
    if "numpy's random generator" in states:
        sys.modules["numpy"].random.set_state(states["numpy's random generator"])
