"""Load `file.py:step`: a function that returns a model, a batch and optionally a loss."""

from __future__ import annotations

from typing import Any

from torch import nn

from orderproof.errors import SubjectError
from orderproof.laws.training.training_step import Loss
from orderproof.models.python_objects import made_object


def load_step(spec: str, *, seed: int = 0) -> tuple[nn.Module, Any, Loss | None]:
    """The model, the batch and the loss, None for that of the model. Raises `SubjectError`, `UsageError`."""
    made = made_object(spec, seed)
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not isinstance(made[0], nn.Module):
        shown = f"a tuple of {len(made)}" if isinstance(made, tuple) else type(made).__name__
        raise SubjectError(f"{spec}: expected a function that returns model, batch and loss; it returned {shown}")
    return made[0], made[1], made[2] if len(made) == 3 else None
