"""Places where a model can count its calls: attributes of functions and classes, objects in C, libraries, settings.

Each class adds one to a number that it keeps there, and returns it; a model that reverses its tokens after 60 calls
is not the function that a proof of one call is about.
"""

from __future__ import annotations

import contextvars
import copyreg
import csv
import datetime as dt
import decimal
import enum
import functools
import hashlib
import io
import itertools
import logging
import math
import random
import re
import string
import sys
import threading
import types
import warnings
import weakref
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn


def function(x: int, k: int = 0, *, n: int = 0) -> int:
    return x + k + n


def other_function(x: int, k: int = 0, *, n: int = 0) -> int:
    return x + k + n + 1


class Holder:
    """An object with attributes."""


class Number(enum.IntEnum):
    ONE = 1


class Whole(int):
    """A number with attributes."""


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


class Chained:
    """Another class after each call."""

    n = 0


CHAIN = [Chained, *(type(f"Chained{k}", (Chained,), {"n": k}) for k in range(1, 99))]


class Metaclass(type):
    n = 0


class OfMetaclass(metaclass=Metaclass):
    pass


class HidesAttributes:
    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return {}


class AnswersItself:
    def __getattribute__(self, name: str) -> Any:
        return {} if name == "__dict__" else object.__getattribute__(self, name)


class HidesItsClass:
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return types.BuiltinFunctionType

    __self__ = math


class MetaclassThatHides(type):
    @property
    def __dict__(cls) -> dict[str, Any]:  # type: ignore[override]
        return {}

    @property
    def __mro__(cls) -> tuple[type, ...]:  # type: ignore[override]
        return ()


class OfMetaclassThatHides(metaclass=MetaclassThatHides):
    pass


class HidesVariables(types.ModuleType):
    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return {}


class HidesItems(list[int]):
    def __iter__(self) -> Any:
        return iter(())

    def clear(self) -> None:
        pass


class HidesMembers(tuple[Any, ...]):
    def __iter__(self) -> Any:
        return iter(())


class HidesPosition(random.Random):
    def getstate(self) -> Any:
        return ()


class AlwaysEqual(int):
    def __eq__(self, _: object) -> bool:
        return True

    __hash__ = int.__hash__


class MetaclassEqualToAll(type):
    def __eq__(cls, _: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(int)


class OfMetaclassEqualToAll(metaclass=MetaclassEqualToAll):
    pass


class StatesALibrary:
    __module__ = "sympy.core.basic"


def of_equal_numbers() -> Any:
    kept = Holder()
    kept.n = AlwaysEqual(0)
    return kept


def next_equal(kept: Any) -> int:
    kept.n = AlwaysEqual(int(kept.n) + 1)
    return int(kept.n)


class WithAttributes(float):
    """Equal to others, with another attribute."""


def of_nodes() -> Any:
    kept = Holder()
    kept.n = WithAttributes(0.0)
    kept.n.count = 0
    return kept


def next_node(kept: Any) -> int:
    count, kept.n = kept.n.count + 1, WithAttributes(0.0)
    kept.n.count = count
    return int(count)


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


REFERENCED = Holder()


class HasASetter:
    count = 0
    held = Holder()

    def _set(self, value: int) -> None:
        HasASetter.held.n = value

    number = property(lambda self: 0, _set)


def set_once_more(kept: Any) -> int:
    kept.number = HasASetter.held.__dict__.get("n", 0) + 1
    return int(HasASetter.held.__dict__["n"])


class TensorThatHides(Tensor):
    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return {}


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


def filtered_by_an_import(_: Any) -> int:
    import warnings as imported

    imported.filters.append(("ignore", None, Warning, None, 0))  # type: ignore[attr-defined]
    return len(imported.filters)


def longer(kept: Any, name: str = "__doc__") -> int:
    setattr(kept, name, (getattr(kept, name) or "") + "x")
    return len(getattr(kept, name))


def in_the_defaults(_: Any) -> int:
    function.__defaults__ = (function.__defaults__[0] + 1,)  # type: ignore[index]
    return function(0)


def in_the_keyword_defaults(_: Any) -> int:
    function.__kwdefaults__ = {"n": function.__kwdefaults__["n"] + 1}
    return function(0)


def in_the_code(_: Any) -> int:
    code = function.__code__
    function.__code__ = code.replace(co_firstlineno=code.co_firstlineno + 1)
    return function.__code__.co_firstlineno - 50


def in_annotations(of: Callable[[Any], Any]) -> Callable[[Any], int]:
    def tick(kept: Any) -> int:
        found = of(kept).__annotations__
        found["calls"] = found.get("calls", 0) + 1
        return int(found["calls"])

    return tick


def in_the_class(kept: Any) -> int:
    kept.__class__ = CHAIN[type(kept).n + 1]
    return int(type(kept).n)


def entered(kept: Entered) -> int:
    with kept as n:
        return n


def constructed(_: Any) -> int:
    KINDS["constructed"]()
    return CONSTRUCTED[0]


def in_a_partial(kept: functools.partial[int]) -> int:
    n = kept.args[0] + 1
    kept.__setstate__((function, (n,), {}, {}))
    return int(n)


def in_arguments(kept: Exception) -> int:
    kept.args = (*kept.args, 1)
    return len(kept.args)


def in_the_level(_: Any) -> int:
    LOGGER.setLevel(LOGGER.level + 1)
    return LOGGER.level


def in_a_handler(_: Any) -> int:
    HANDLED.error("counted")
    return Emitted.n


def called(kept: mock.Mock) -> int:
    kept()
    return int(kept.call_count)


def in_a_context(kept: decimal.Context) -> int:
    kept.prec += 1
    return kept.prec


def resized(kept: torch.UntypedStorage) -> int:
    kept.resize_(kept.nbytes() + 1)
    return int(kept.nbytes())


def deeper(_: Any) -> int:
    sys.setrecursionlimit(sys.getrecursionlimit() + 1)
    return sys.getrecursionlimit() - 1000


def filtered(_: Any) -> int:
    warnings.filters.append(("ignore", None, Warning, None, 0))  # type: ignore[attr-defined]
    return len(warnings.filters)


def dispatched(_: Any) -> int:
    copyreg.dispatch_table[types.new_class("New")] = len  # type: ignore[assignment]
    return len(copyreg.dispatch_table)


def printed(_: Any) -> int:
    precision = torch._tensor_str.PRINT_OPTS.precision + 1
    torch.set_printoptions(precision=precision)
    return precision


def next_of_async(kept: Any) -> int:
    try:
        kept.__anext__().send(None)
    except StopIteration as end:
        return int(end.value)
    return 0


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
    "defaults of a function": (nothing, in_the_defaults),
    "keyword defaults of a function": (nothing, in_the_keyword_defaults),
    "code of a function": (nothing, in_the_code),
    "name of a function": (nothing, lambda _: longer(function, "__name__")),
    "documentation of a function": (nothing, lambda _: longer(function)),
    "annotations of a function": (nothing, in_annotations(lambda _: other_function)),
    "name of a class": (nothing, lambda _: longer(Holder, "__name__")),
    "documentation of a class": (nothing, lambda _: longer(Holder)),
    "annotations of a class": (nothing, in_annotations(lambda _: Holder)),
    "attribute of a class with underscores": (nothing, lambda _: one_more(Holder, "__calls__")),
    "class of an object": (Chained, in_the_class),
    "attribute of a metaclass": (nothing, lambda _: one_more(type(OfMetaclass))),
    "special method": (Entered, entered),
    "constructor": (nothing, constructed),
    "member of an enumeration": (nothing, lambda _: one_more(Number.ONE)),
    "attribute of a number": (lambda: Whole(1), one_more),
    "attribute of a tuple": (lambda: Pair((1,)), one_more),
    "object in a tuple": (lambda: ((Holder(),),), lambda kept: one_more(kept[0][0])),
    "object in a read-only mapping": (
        lambda: types.MappingProxyType({"a": Holder()}),
        lambda kept: one_more(kept["a"]),
    ),
    "partial function": (lambda: functools.partial(function, 1), in_a_partial),
    "arguments of an exception": (ValueError, in_arguments),
    "precision of decimal numbers": (lambda: decimal.Context(prec=1), in_a_context),
    "iterators in an iterator": (zipped, lambda kept: next(kept)[0]),
    "iterator over matches": (lambda: re.compile("x").finditer("x" * 99), lambda kept: next(kept).start()),
    "generator with await": (counted, next_of_async),
    "level of a logger": (nothing, in_the_level),
    "attribute of a logger": (nothing, lambda _: one_more(LOGGER)),
    "handler of a logger": (nothing, in_a_handler),
    "mock": (mock.Mock, called),
    "global mock": (nothing, lambda _: called(MOCK)),
    "attribute of a module of Python": (nothing, lambda _: one_more(string, "calls")),
    "table of a module of Python": (nothing, dispatched),
    "attribute of a class of torch": (nothing, lambda _: one_more(nn.Linear, "calls")),
    "attribute of a function of torch": (nothing, lambda _: one_more(nn.functional.relu, "calls")),
    "object of torch": (lambda: torch.distributions.Normal(0.0, 1.0), one_more),
    "optimizer": (lambda: torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0), in_a_group),
    "print options of torch": (nothing, printed),
    "size of a storage": (lambda: torch.UntypedStorage(1), resized),
    "size of a tensor": (lambda: [torch.zeros(1)], grown),
    "filters of warnings": (nothing, filtered),
    "module that a function imports": (nothing, filtered_by_an_import),
    "attribute of an array": (lambda: np.ma.zeros(3), one_more),
    "object that hides its attributes": (HidesAttributes, one_more),
    "object that answers for its attributes": (AnswersItself, one_more),
    "object that hides its class": (HidesItsClass, one_more),
    "class that hides its attributes": (nothing, lambda _: one_more(OfMetaclassThatHides)),
    "instance of such a class": (OfMetaclassThatHides, one_more),
    "module that hides its variables": (lambda: HidesVariables("hides"), one_more),
    "tensor that hides its attributes": (lambda: torch.zeros(1).as_subclass(TensorThatHides), one_more),
    "number that is equal to all": (of_equal_numbers, next_equal),
    "object whose class is equal to all": (OfMetaclassEqualToAll, one_more),
    "object of a library that does not have its class": (StatesALibrary, one_more),
    "attribute of an equal number": (of_nodes, next_node),
    "signs of zeros": (lambda: [0j], in_signs_of_zeros),
    "loop in a generator": (advanced_to_its_loop, next),
    "named default": (nothing, in_a_named_default),
    "array of objects": (lambda: np.array([0], dtype=object), in_an_array),
    "object in a context variable": (in_a_variable, lambda kept: one_more(kept.get())),
    "object of a weak reference": (lambda: weakref.ref(REFERENCED), lambda kept: one_more(kept())),
    "attribute of a thread": (threading.local, one_more),
    "method of a class of torch": (nothing, lambda _: one_more(nn.Linear.forward, "calls")),
    "setter of a property": (HasASetter, set_once_more),
    "list that hides its items": (HidesItems, appended),
    "tuple that hides its members": (lambda: HidesMembers([Holder()]), lambda kept: one_more(kept[0])),
    "generator that hides its position": (lambda: HidesPosition(0), lambda kept: kept.random()),
}


def written(kept: io.StringIO) -> int:
    kept.write("x")
    return kept.tell()


def hashed(kept: Any) -> int:
    kept.update(b"x")
    return 0 if kept.digest()[0] < 250 else 99


def acquired(kept: Any) -> int:
    kept.acquire()
    return int(repr(kept).partition("count=")[2].partition(" ")[0] or 0)


def in_the_global_context(_: Any) -> int:
    decimal.getcontext().prec += 1
    return decimal.getcontext().prec


def compressed(kept: Any) -> int:
    kept.compress(b"abcdefgh" * 50)
    return len(kept.copy().flush())


def in_the_size_of_fields(_: Any) -> int:
    return csv.field_size_limit(csv.field_size_limit() + 1) - 131072


def switched(_: Any) -> float:
    sys.setswitchinterval(sys.getswitchinterval() + 0.001)
    return sys.getswitchinterval() * 1000 - 5


# Objects and settings in C that nothing shows: the calls of their functions are assumptions.
IN_C: dict[str, tuple[Callable[[], Any], Callable[[Any], float]]] = {
    "text in memory": (io.StringIO, written),
    "hash": (hashlib.sha1, hashed),
    "lock": (threading.RLock, acquired),
    "compression": (zlib.compressobj, compressed),
    "global precision of decimal numbers": (nothing, in_the_global_context),
    "limit of a module in C": (nothing, in_the_size_of_fields),
    "recursion limit": (nothing, deeper),
    "interval between threads": (nothing, switched),
    "date": (nothing, lambda _: 99 if dt.datetime.now(dt.UTC).microsecond == 999_999 else 0),
}
