"""Places where a model can count its calls: attributes of functions and classes, objects in C, libraries, settings.

Each class adds one to a number that it keeps there, and returns it; a model that reverses its tokens after 60 calls
is not the function that a proof of one call is about.
"""

from __future__ import annotations

import contextvars
import copyreg
import io
import itertools
import logging
import math
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch


def function(x: int, k: int = 0, *, n: int = 0) -> int:
    return x + k + n


class Holder:
    """An object with attributes."""


class Pair(tuple[int, ...]):
    """A tuple with attributes."""


ENTERED = [0]


class Entered:
    def __enter__(self) -> int:
        ENTERED[0] += 1
        return ENTERED[0]

    def __exit__(self, *_: object) -> None:
        pass


CONSTRUCTED = [0]


class Constructed:
    def __init__(self) -> None:
        CONSTRUCTED[0] += 1


KINDS = {"constructed": Constructed}


class MetaclassThatHides(type):
    @property
    def __dict__(cls) -> dict[str, Any]:  # type: ignore[override]
        return {}

    @property
    def __mro__(cls) -> tuple[type, ...]:  # type: ignore[override]
        return ()


class OfMetaclassThatHides(metaclass=MetaclassThatHides):
    pass


class AlwaysEqual(int):
    def __eq__(self, _: object) -> bool:
        return True

    __hash__ = int.__hash__


class StatesALibrary:
    __module__ = "sympy.core.basic"


def of_equal_numbers() -> Any:
    kept = Holder()
    kept.n = AlwaysEqual(0)
    return kept


def next_equal(kept: Any) -> int:
    kept.n = AlwaysEqual(int(kept.n) + 1)
    return int(kept.n)


def in_signs_of_zeros(kept: list[complex]) -> float:
    kept[0] = -kept[0]
    return math.copysign(1.0, kept[0].real)


def in_a_loop() -> Iterator[int]:
    yield from (0,)
    for number in [*range(99)]:  # the iterator is on the stack of the frame
        del number
        yield 0


def advanced_to_its_loop() -> Iterator[int]:
    generator = in_a_loop()
    next(generator)
    next(generator)
    return generator


def with_a_named_default(*, count: int = 0) -> int:
    return count


def in_a_named_default(_: Any) -> int:
    defaults: Any = with_a_named_default.__kwdefaults__
    defaults["count"] += 1
    return with_a_named_default()


def in_an_array(kept: Any) -> int:
    kept[0] = kept[0] + 1
    return int(kept[0])


VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE", default=None)


def in_a_variable() -> Any:
    VARIABLE.set(Holder())
    return VARIABLE


class HasASetter:
    count = 0
    held = Holder()

    def _set(self, value: int) -> None:
        HasASetter.held.n = value

    number = property(lambda self: 0, _set)


def set_once_more(kept: Any) -> int:
    kept.number = HasASetter.held.__dict__.get("n", 0) + 1
    return int(HasASetter.held.__dict__["n"])


def appended(kept: Any) -> int:
    kept.append(0)
    return len(kept)


class Emitted(logging.Handler):
    n = 0

    def emit(self, _record: logging.LogRecord) -> None:
        Emitted.n += 1


LOGGER = logging.getLogger("orderproof.attacks_state")
HANDLED = logging.getLogger("orderproof.attacks_state.handled")
HANDLED.addHandler(Emitted())
HANDLED.propagate = False
LOGGER.setLevel(1)
MOCK = mock.MagicMock()


async def counted() -> AsyncIterator[int]:
    for k in itertools.count():
        yield k


def one_more(kept: Any, name: str = "n") -> int:
    setattr(kept, name, getattr(kept, name, 0) + 1)
    return int(getattr(kept, name))


def entered(kept: Entered) -> int:
    with kept as n:
        return n


def constructed(_: Any) -> int:
    KINDS["constructed"]()
    return CONSTRUCTED[0]


def in_the_level(_: Any) -> int:
    LOGGER.setLevel(LOGGER.level + 1)
    return LOGGER.level


def in_a_handler(_: Any) -> int:
    HANDLED.error("counted")
    return Emitted.n


def called(kept: mock.Mock) -> int:
    kept()
    return int(kept.call_count)


def dispatched(_: Any) -> int:
    copyreg.dispatch_table[types.new_class("New")] = len  # type: ignore[assignment]
    return len(copyreg.dispatch_table)


def in_a_group(kept: torch.optim.Optimizer) -> int:
    kept.param_groups[0]["lr"] += 1
    return int(kept.param_groups[0]["lr"])


def grown(kept: list[torch.Tensor]) -> int:
    kept[0] = torch.zeros(kept[0].numel() + 1)
    return kept[0].numel()


def enlarged(kept: torch.Tensor) -> int:
    kept.data = torch.zeros(kept.numel() + 1)
    return kept.numel()


def nothing() -> None:
    return None


def zipped() -> Iterator[Any]:
    return zip(iter(list(range(99))), iter(list(range(99))), strict=True)


STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], float]]] = {
    "attribute of a class with underscores": (nothing, lambda _: one_more(Holder, "__calls__")),
    "special method": (Entered, entered),
    "constructor": (nothing, constructed),
    "attribute of a tuple": (lambda: Pair((1,)), one_more),
    "object in a tuple": (lambda: ((Holder(),),), lambda kept: one_more(kept[0][0])),
    "object in a read-only mapping": (
        lambda: types.MappingProxyType({"a": Holder()}),
        lambda kept: one_more(kept["a"]),
    ),
    "iterators in an iterator": (zipped, lambda kept: next(kept)[0]),
    "level of a logger": (nothing, in_the_level),
    "attribute of a logger": (nothing, lambda _: one_more(LOGGER)),
    "handler of a logger": (nothing, in_a_handler),
    "mock": (mock.Mock, called),
    "global mock": (nothing, lambda _: called(MOCK)),
    "object of torch": (lambda: torch.distributions.Normal(0.0, 1.0), one_more),
    "optimizer": (lambda: torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0), in_a_group),
    "size of a tensor": (lambda: [torch.zeros(1)], grown),
    "attribute of an array": (lambda: np.ma.zeros(3), one_more),
    "instance of such a class": (OfMetaclassThatHides, one_more),
    "number that is equal to all": (of_equal_numbers, next_equal),
    "object of a library that does not have its class": (StatesALibrary, one_more),
    "signs of zeros": (lambda: [0j], in_signs_of_zeros),
    "named default": (nothing, in_a_named_default),
    "array of objects": (lambda: np.array([0], dtype=object), in_an_array),
    "object in a context variable": (in_a_variable, lambda kept: one_more(kept.get())),
    "attribute of a thread": (threading.local, one_more),
    "setter of a property": (HasASetter, set_once_more),
}


def written(kept: io.StringIO) -> int:
    kept.write("x")
    return kept.tell()


# Objects and settings in C that nothing shows: the calls of their functions are assumptions.
