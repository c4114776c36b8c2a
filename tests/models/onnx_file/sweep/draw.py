"""Random calls of one operator: sizes, attributes and numbers of the types that are tried."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from tests.models.onnx_file.graphs import Array

ODD, EMPTY = (1, 3, 7), (0, 1, 3)
SPECIAL = (0.0, -0.0, 0.5, 1.5, -2.5, np.inf, -np.inf, np.nan)
MICROSOFT = "com.microsoft"
REAL = ("float", "double", "float16", "bfloat16")


def numpy_type(kind: str) -> np.dtype[Any]:
    """The type of numpy for a type of ONNX, as `float` or `int8`."""
    return helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind.upper()))


@dataclass(frozen=True)
class Call:
    """One call: inputs, attributes, names of outputs, and the places of the inputs that the file stores.

    `nodes` are those to run in the place of one node; they read `x0`, `x1` and so on, and give the outputs.
    """

    arrays: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("y",)
    stored: Sequence[int] = ()
    nodes: Sequence[NodeProto] = ()


class Draw:
    """A source of random choices for one call.

    Attributes:
        domain: The domain of the operator.
        name: The operator.
        kinds: The type of numbers by type variable.
        version: The version of the operator set.
        sizes: The sizes that were drawn.

    """

    def __init__(self, seed: int, drawer: Drawer, kinds: Mapping[str, str], version: int, *, empty: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.domain, self.name, self.kinds, self.version = drawer.domain, drawer.name, kinds, version
        self._sizes, self.sizes = EMPTY if empty else ODD, set[int]()

    def size(self, least: int = 0) -> int:
        """A size of an axis: odd, or perhaps 0."""
        found = int(self.random.choice([n for n in self._sizes if n >= least]))
        self.sizes.add(found)
        return found

    def shape(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        """Sizes of a number of axes."""
        return tuple(self.size() for _ in range(self.number(least, most)))

    def number(self, least: int, most: int) -> int:
        """An integer, both limits included."""
        return int(self.random.integers(least, most + 1))

    def flag(self) -> int:
        """0 or 1."""
        return self.number(0, 1)

    def pick(self, *options: Any) -> Any:
        """One of several values."""
        return options[self.number(0, len(options) - 1)]

    def some(self, **attributes: Any) -> dict[str, Any]:
        """Each attribute, or not."""
        return {key: value for key, value in attributes.items() if self.flag()}

    def maybe(self, array: Array) -> Array | None:
        """The array, or None."""
        return array if self.flag() else None

    def integers(self, least: int, most: int, *shape: int, kind: str = "int64") -> Array:
        """Integers, both limits included."""
        return self.random.integers(least, most + 1, shape).astype(numpy_type(kind))

    def tensor(self, *shape: int, of: str = "T", special: bool = False, positive: bool = False) -> Array:
        """Numbers of the type of a type variable; ``special``: perhaps also infinite ones, NaN and halves."""
        kind = self.kinds.get(of, of)
        if kind == "bool":
            return self.random.integers(0, 2, shape).astype(bool)
        if kind == "string":
            return self.random.integers(0, 10, shape).astype(str).astype(object)
        if kind not in REAL:
            least = 1 if positive else 0 if kind.startswith("u") else -9
            return self.random.integers(least, 10, shape).astype(numpy_type(kind))
        found = self.random.normal(size=shape)
        if positive:
            found = np.abs(found) + 0.5
        elif special and self.flag():
            found = np.where(self.random.random(shape) < 0.5, self.random.choice(SPECIAL, shape), found)
        return np.asarray(found).astype(numpy_type(kind))

    def full(self, *shape: int, of: str = "T") -> Array:
        """Integers over the whole range of a type."""
        limits = np.iinfo(numpy_type(self.kinds.get(of, of)))
        return self.random.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)

    def scale(self, *shape: int, of: str = "float") -> Array:
        """Positive scales."""
        return self.random.uniform(0.01, 0.1, shape).astype(numpy_type(self.kinds.get(of, of)))

    def parts(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to another one."""
        found = tuple(1 if self.number(0, 3) == 0 else n for n in shape)
        return found[self.number(0, len(found)) if self.number(0, 2) == 0 else 0 :]

    def axis(self, rank: int) -> int:
        """An axis, also counted from the end."""
        return self.number(-rank, rank - 1)


@dataclass(frozen=True)
class Drawer:
    """How calls of an operator are drawn: versions of the operator set, and the types by type variable."""

    domain: str
    name: str
    draw: Callable[[Draw], Call]
    versions: tuple[int, ...]
    types: Mapping[str, tuple[str, ...]] | None


_DRAWERS: dict[tuple[str, str], Drawer] = {}


def drawn(
    *names: str, domain: str = "", versions: tuple[int, ...] = (23,), types: Mapping[str, tuple[str, ...]] | None = None
) -> Callable[[Callable[[Draw], Call]], Callable[[Draw], Call]]:
    """Register how calls of operators are drawn; ``types`` are those of operators without a schema."""

    def register(function: Callable[[Draw], Call]) -> Callable[[Draw], Call]:
        for name in names:
            assert (domain, name) not in _DRAWERS, name
            _DRAWERS[domain, name] = Drawer(domain, name, function, versions, types)
        return function

    return register


@cache
def drawers() -> Mapping[tuple[str, str], Drawer]:
    """How calls are drawn, by domain and operator."""
    package = importlib.import_module("tests.models.onnx_file.sweep.drawn")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_DRAWERS.items()))
