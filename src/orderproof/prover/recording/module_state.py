"""State outside the tensors of a call: what a forward call changes in its module or in random generators, undone after.

A module that counts its calls, or draws from Python's random generator, may behave differently at each call. A
recording shows one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

_TENSOR_DICTS = ("_parameters", "_buffers", "_modules")


@contextmanager
def preserved_state(module: nn.Module) -> Iterator[list[str]]:
    """Restore attributes and random generators afterwards; the list then names those that the block changed."""
    changed: list[str] = []
    before = [(path, part, _attributes(part)) for path, part in module.named_modules()]
    generators = _generators()
    try:
        yield changed
    finally:
        for path, part, attributes in before:
            changed += [f"{path}.{name}".removeprefix(".") for name in _restore(part, attributes)]
        changed += [name for name, state in _generators().items() if not _same_state(state, generators.get(name))]
        _restore_generators(generators)


def _attributes(part: nn.Module) -> dict[str, tuple[Any, Any]]:
    """Each attribute with a copy of its contents, if it is a list, a dictionary or a set."""
    return {name: (value, _contents(value)) for name, value in vars(part).items() if name not in _TENSOR_DICTS}


def _contents(value: Any) -> Any:
    return value.copy() if type(value) in (list, dict, set) else None


def _restore(part: nn.Module, attributes: dict[str, tuple[Any, Any]]) -> list[str]:
    changed = []
    now = vars(part)
    for name in [name for name in now if name not in attributes and name not in _TENSOR_DICTS]:
        changed.append(name)
        del now[name]
    for name, (value, contents) in attributes.items():
        if name not in now or now[name] is not value:
            changed.append(name)
            now[name] = value
        if contents is not None and not _same_contents(value, contents):
            changed.append(name)
            value.clear()
            (value.extend if isinstance(value, list) else value.update)(contents)
    return changed


def _same_contents(value: Any, contents: Any) -> bool:
    if isinstance(value, set):
        return bool(value == contents)
    pairs = (
        zip(value.items(), contents.items(), strict=False)
        if isinstance(value, dict)
        else zip(value, contents, strict=False)
    )
    return len(value) == len(contents) and all(
        a is b or (isinstance(a, tuple) and a[0] is b[0] and a[1] is b[1]) for a, b in pairs
    )


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
