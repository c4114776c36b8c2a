"""A library whose functions are asked by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.positions.function import PositionTable
from orderproof.conventions.rotation.function import RotaryFunction

AnyFunction = AttentionFunction | RotaryFunction | PositionTable


@dataclass(frozen=True)
class Library:
    """A library.

    Attributes:
        name: The part of the names of its functions before the dot.
        package: The package that must be installed.
        functions: Imports the package, and gives the functions by the part of their names after the dot.

    """

    name: str
    package: str
    functions: Callable[[], tuple[AnyFunction, ...]]
