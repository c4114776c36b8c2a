"""A bound on the size of a model, kept while it is being built: no parameter beyond it ever gets its memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from orderproof.errors import SubjectError
from orderproof.subjects.quieting import replaced

LARGEST = 30_000_000  # [numbers] in a tiny model: 120 MB in float32


class TooLarge(SubjectError):
    """A tiny model that is not tiny."""


@contextmanager
def bounded(most: int = LARGEST) -> Iterator[None]:
    """Raise `TooLarge` as soon as more parameters are registered; an uninitialised tensor has no memory yet."""
    register = nn.Module.register_parameter
    count = 0

    def counted(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal count
        if parameter is not None and parameter.device.type != "meta":
            count += parameter.numel()
            if count > most:
                raise TooLarge(f"a tiny version has more than {most:,} parameters")
        register(module, name, parameter)

    with replaced(nn.Module, "register_parameter", counted):
        yield
