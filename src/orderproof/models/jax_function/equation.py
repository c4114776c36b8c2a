"""Equations of a program of JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orderproof.models.jax_function.lines import Frame
from orderproof.models.jax_function.primitive import Primitive


@dataclass(frozen=True)
class Atom:
    """An input of an equation that is no variable: a number, or the name of a constant."""

    number: Any = None
    constant: str = ""


@dataclass(frozen=True)
class Equation:
    """One equation, ready to run."""

    name: str
    inputs: tuple[int | Atom, ...]
    input_dtypes: tuple[str, ...]
    outputs: tuple[int, ...]
    params: Mapping[str, Any]
    open_params: tuple[str, ...]
    shapes: tuple[tuple[Any, ...], ...]
    dtypes: tuple[str, ...]
    frames: tuple[Frame, ...]
    function: Callable[[Primitive], Any] | None

    @property
    def line(self) -> str:
        """`, file.py:12`: its innermost line."""
        return f", {Path(self.frames[-1][0]).name}:{self.frames[-1][2]}" if self.frames else ""


def read_equations(equations: Sequence[Equation], outputs: Sequence[int | Atom]) -> list[Equation]:
    """Equations without those whose results nothing reads."""
    read = {x for x in outputs if isinstance(x, int)}
    kept = []
    for e in reversed(equations):
        if not read.isdisjoint(e.outputs):
            kept.append(e)
            read |= {x for x in e.inputs if isinstance(x, int)}
    return kept[::-1]
