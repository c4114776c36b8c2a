"""State outside the tensors of a call: what a forward call changes besides its tensors, undone after.

A module that counts its calls, or draws from Python's random generator, may behave differently at each call. A
recording shows one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from orderproof.recording.owned_state import OwnedState, owned_state
from orderproof.recording.process_settings import changes, read_settings, restore_settings

RANDOM_GENERATOR = "torch's random generator"


@dataclass(slots=True)
class StateChanges:
    """The state besides tensors that a block changed, and objects that could not be followed."""

    names: list[str] = field(default_factory=list)  # filled when the block ends
    complete: bool = True  # False: a module owns more objects than are compared
    shared_memory: tuple[str, ...] = ()  # arrays that read the memory of a parameter


@contextmanager
def preserved_state(module: nn.Module, reached: OwnedState | None = None) -> Iterator[StateChanges]:
    """Restore what a module can reach, settings and random generators, after the block; name what the block changed.

    `reached` is the state of the module if it is known already: the walk takes as long as a call.
    """
    reached = owned_state(module) if reached is None else reached
    changed = StateChanges([], reached.complete, tuple(reached.arrays_of_parameters))
    settings = read_settings()
    generators = _generators()
    try:
        yield changed
    finally:
        changed.names += reached.put_back()
        changed.names += changes(settings, read_settings())
        restore_settings(settings)
        changed.names += [name for name, state in _generators().items() if not _same_state(state, generators.get(name))]
        _restore_generators(generators)


def _generators() -> dict[str, Any]:
    found: dict[str, Any] = {
        "Python's random generator": random.getstate(),
        RANDOM_GENERATOR: torch.get_rng_state(),
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found["numpy's random generator"] = numpy.random.get_state(legacy=False)
    return found


def _same_state(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_same_state(value, second[key]) for key, value in first.items())
    if hasattr(first, "tobytes"):  # an array of numpy
        return bool(first.tobytes() == second.tobytes())
    return bool(first == second)


def _restore_generators(states: dict[str, Any]) -> None:
    random.setstate(states["Python's random generator"])
    torch.set_rng_state(states[RANDOM_GENERATOR])
    if "numpy's random generator" in states:
        sys.modules["numpy"].random.set_state(states["numpy's random generator"])
