"""Activation checkpointing: count its calls, or leave it out, so that activations are kept and not computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.utils.checkpoint

from orderproof.recording.source import Line, model_lines

_GENERATOR, _FUNCTION = "_checkpoint_without_reentrant_generator", "CheckpointFunction"


@contextmanager
def without_recomputation() -> Iterator[list[Line]]:
    """Run checkpointed functions as if they were not, whatever name calls them; the lines that checkpoint one, so far.

    Both ways of torch to checkpoint a function go through these two names of its module.
    """
    lines: list[Line] = []

    def note() -> None:
        lines.extend([line for line in model_lines() if line[0] != __file__][-1:])

    def keeping(*_: Any, **__: Any) -> Iterator[None]:
        note()
        yield

    class Keeping:
        @staticmethod
        def apply(function: Callable[..., Any], _preserve: object, *given: Any) -> Any:
            note()
            return function(*given)

    module = torch.utils.checkpoint
    before = {name: getattr(module, name) for name in (_GENERATOR, _FUNCTION)}
    setattr(module, _GENERATOR, keeping)
    setattr(module, _FUNCTION, Keeping)
    try:
        yield lines
    finally:
        for name, value in before.items():
            setattr(module, name, value)
