"""Load `file.py:step`: a function that returns a model, a batch and optionally a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from orderproof.errors import SubjectError
from orderproof.laws.training.training_step import Loss
from orderproof.models.python_objects import made_object
from orderproof.training.made_lines import MadeLines, note_shared_labels


def load_step(spec: str, *, seed: int = 0) -> tuple[nn.Module, Any, Loss | None]:
    """The model, the batch and the loss, None for that of the model. Raises `SubjectError`, `UsageError`."""
    with MadeLines():
        made = made_object(spec, seed)
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not isinstance(made[0], nn.Module):
        shown = f"a tuple of {len(made)}" if isinstance(made, tuple) else type(made).__name__
        raise SubjectError(f"{spec}: expected a function that returns model, batch and loss; it returned {shown}")
    note_shared_labels(made[1], lambda: made_object(spec, seed))
    return made[0], made[1], made[2] if len(made) == 3 else None


def load_samples(spec: str, *, seed: int = 0) -> tuple[Callable[[Any], Any], Sequence[Any]]:
    """The collator and the samples of a function that returns both. Raises `SubjectError`, `UsageError`."""
    made = made_object(spec, seed)
    if not isinstance(made, tuple) or len(made) != 2 or not callable(made[0]) or not isinstance(made[1], Sequence):
        shown = f"a tuple of {len(made)}" if isinstance(made, tuple) else type(made).__name__
        raise SubjectError(f"{spec}: expected a function that returns a collator and a list of samples; got {shown}")
    return made
