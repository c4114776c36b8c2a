"""Differences between a recording and a call that a model hides in C code, in containers, or in what asks its objects.

Each model is causal for fewer than 400 tokens, which are more than those that are compared.
"""

from __future__ import annotations

import abc
import enum
import functools
import gc
import inspect
import itertools
import json
import logging
import operator
import re
import weakref
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from types import MethodType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map, tree_map_only
from torch.utils.checkpoint import checkpoint
from torch.utils.weak import WeakIdKeyDictionary

from orderproof import prove
from orderproof.recording.instruction_trace import InstructionTrace
from orderproof.recording.value_stack import is_readable

F = torch.FloatTensor
KIND = int.__class__
MANY = 400
LARGE = 50.0
IS_INSTANCE = functools.partial(isinstance)
OPTIONS = {"default": [].count}


class Program(nn.Module):
    def __init__(self, function: Callable[..., Tensor], *handed: Any) -> None:
        super().__init__()
        self.function, self.handed = function, handed

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, x.shape[1], *self.handed)


def rolled(shift: Callable[..., int]) -> Callable[..., Tensor]:
    return lambda x, n, *handed: x.cumsum(1).roll(shift(x, n, *handed), 1)


def product(parts: Any) -> int:
    return int(sum(map(operator.mul, *parts)))


HIDDEN: dict[str, Program] = {
    "map": Program(rolled(lambda x, n: product([map(isinstance, [x], [F]), [n // MANY]]))),
    "unpacked arguments": Program(rolled(lambda x, n: product([map(*(isinstance, [x], [F])), [n // MANY]]))),
    "keywords": Program(rolled(lambda x, n: int(json.dumps(n // MANY, **OPTIONS)))),
    "an encoder of json": Program(rolled(lambda x, n: int(json.dumps(n // MANY, default=[].count)))),
    "a partial function": Program(
        rolled(lambda x, n: product([map(functools.partial(isinstance, x), [F]), [n // MANY]]))
    ),
    "a partial function that is called": Program(
        rolled(lambda x, n: product([functools.partial(map, isinstance)([x], [F]), [n // MANY]]))
    ),
    "a partial function of the module": Program(
        rolled(lambda x, n, both: product([both([x], [F]), [n // MANY]])), functools.partial(map, isinstance)
    ),
    "a bound function": Program(rolled(lambda x, n: product([map(MethodType(isinstance, x), [F]), [n // MANY]]))),
    "starmap": Program(rolled(lambda x, n: product([itertools.starmap(isinstance, [(x, F)]), [n // MANY]]))),
    "a function that calls": Program(
        rolled(lambda x, n: product([map(operator.call, [IS_INSTANCE], [x], [F]), [n // MANY]]))
    ),
    "attributes": Program(
        rolled(
            lambda x, n: product([map(len, map(operator.attrgetter("__class__.__name__"), [n // MANY])), [n // MANY]])
        )
    ),
    "a library": Program(rolled(lambda x, n: len(re.sub("a", "".format, "a" * (n // MANY))))),
}


class Spy:
    """An operand that notes who asks for its class."""

    def __init__(self, seen: deque[Any]) -> None:
        self.seen = seen

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        self.seen.append(ValueError)
        return Spy

    def __radd__(self, other: Any) -> int:
        return 0


def of_a_spy(x: Tensor, n: int) -> int:
    seen: deque[Any] = deque()
    n + Spy(seen)
    return dict.fromkeys(seen, 0).get(ValueError, n // MANY)


def of_a_decorator(x: Tensor, n: int) -> int:
    @defaultdict
    @lambda _: functools.partial(isinstance, x, F)
    def answers() -> None:
        pass

    answers[1] = x
    operator.itemgetter(0, 1)(answers)
    del answers[1]
    return product([answers.values(), [n // MANY]])


def of_a_factory(x: Tensor, n: int) -> int:
    answers: Any = defaultdict()
    answers.default_factory = functools.partial(isinstance, x, F)
    answers[1] = x
    operator.itemgetter(0, 1)(answers)
    del answers[1]
    return product([answers.values(), [n // MANY]])


def of_a_weak_reference(x: Tensor, n: int) -> int:
    kept: Any = weakref.WeakValueDictionary()
    kept["a"] = x + 1
    return {id(x): n // MANY}.get(id(kept.get("a", x)), 0)


def of_a_function(x: Tensor, n: int) -> int:
    def kept() -> None:
        pass

    kept.k = n // MANY  # type: ignore[attr-defined]
    return getattr(getattr(n, "node", kept), "k", 0)


def of_the_device(x: Tensor, n: int) -> int:
    with torch._C.DisableTorchFunction():
        found = operator.attrgetter("device", "data")(x)
    return dict(zip(found, [n // MANY, 0], strict=True)).get(torch.device("cpu"), 0)


def of_a_key(x: Tensor, n: int) -> int:
    kind = torch._C._dispatch_keys(x).highestPriorityTypeId()
    return {torch._C.DispatchKey.AutocastCPU: n // MANY, torch._C.DispatchKey.AutogradCPU: n // MANY}.get(kind, 0)


class Named(tuple):
    """A subclass of a container."""


def of_the_text_of_an_error(x: Tensor, n: int) -> int:
    try:
        len(n)  # type: ignore[arg-type]
    except TypeError as error:
        return {"object of type 'int' has no len()": n // MANY}.get(*map(str, [error]), 0)
    return 0


def of_a_weak_key(x: Tensor, n: int) -> int:
    kept = WeakIdKeyDictionary()
    kept[x + 1] = 0
    return next(iter(kept.values()), n // MANY)


def of_a_class_with_a_function(x: Tensor, n: int) -> int:
    class Answers:
        __call__ = isinstance

    return product([map(Answers(), [x], [F]), [n // MANY]])


def of_a_kept_function(x: Tensor, n: int) -> int:
    kept = nn.Module()
    kept.forward = F.__instancecheck__
    return product([map(kept, [x]), [n // MANY]])


def of_a_kept_list(x: Tensor, n: int) -> int:
    kept = logging.Filterer()
    kept.filters = [torch.SymInt.__instancecheck__]
    return n // MANY - product([map(bool, map(kept.filter, [n])), [n // MANY]])


def of_an_attribute_of_a_class(_: Tensor, n: int) -> int:
    class More:
        __contains__ = MANY.__gt__  # of a symbol it is NotImplemented, which is true

    return int(n not in More())


def of_a_comparison_of_a_class(_: Tensor, n: int) -> int:
    class Equal:
        __eq__ = (MANY + 1).__eq__  # type: ignore[assignment]
        __hash__ = None  # type: ignore[assignment]

    return [Equal()].count(n)  # type: ignore[arg-type]


def of_a_class_that_is_called(_: Tensor, n: int) -> int:
    class Called:
        __call__ = MANY.__gt__

    return int(not list(filter(Called(), [n])))


class FiltersItself(filter):  # type: ignore[type-arg]
    def __init__(self, *_: Any) -> None:
        pass


class IsPartial(functools.partial):  # type: ignore[type-arg]
    def __init__(self, *_: Any) -> None:
        pass


HANDED: dict[str, Callable[[Tensor, int], int]] = {
    "attribute of a class": of_an_attribute_of_a_class,
    "comparison of a class": of_a_comparison_of_a_class,
    "class that is called": of_a_class_that_is_called,
    "items of an iterator": lambda x, n: int(not list(filter(*iter([MANY.__gt__, [n]])))),
    "values of a dictionary": lambda x, n: int(not list(filter(*{"a": MANY.__gt__, "b": [n]}.values()))),
    "subclass of a class in C": lambda x, n: int(not list(FiltersItself(MANY.__gt__, [n]))),
    "subclass of partial": lambda x, n: int(not list(filter(IsPartial(MANY.__gt__), [n]))),
    "class made by a call": lambda x, n: int(n not in abc.ABCMeta("More", (), {"__contains__": MANY.__gt__})()),
}
SHIFTS: dict[str, Callable[[Tensor, int], int]] = {
    "types as keys": lambda x, n: dict(zip(map(KIND, [n]), [n // MANY], strict=True)).get(int, 0),
    "types as text": lambda x, n: dict.fromkeys(map(str, map(KIND, [n])), n // MANY).get("<class 'int'>", 0),
    "groups by type": lambda x, n: dict.fromkeys(dict(itertools.groupby([n], KIND)), n // MANY).get(int, 0),
    "types of a tree": lambda x, n: {torch.Tensor: n // MANY}.get(tree_map_only(F, KIND, x), 0),
    "integers of a tree": lambda x, n: (
        sum(itertools.islice(tree_map_only(int, bool, [2 * (n // MANY), x]), 1)) - 2 * (n // MANY)
    ),
    "attributes of a symbol": lambda x, n: dict.fromkeys(dir(n), 0).get("node", n // MANY),
    "attributes of a method": lambda x, n: dict.fromkeys(dir(n.__add__), 0).get("__func__", n // MANY),
    "dictionary of a symbol": lambda x, n: getattr(n, "__dict__", {"k": n // MANY}).get("k", 0),
    "documentation of a symbol": lambda x, n: (
        OrderedDict.fromkeys(operator.attrgetter("__doc__", "__add__")(n), n // MANY).get(int.__doc__, 0)
    ),
    "an exception as default": lambda x, n: getattr(getattr(n, "node", ValueError(n // MANY)), "args", (0,))[0],
    "a function as default": of_a_function,
    "the device": of_the_device,
    "an enumeration of torch": of_a_key,
    "the replaced type as key": lambda x, n: {type: n // MANY}.get(int.__class__, 0),
    "the replaced range as key": lambda x, n: {range: n // MANY}.get(range(3).__class__, 0),
    "a list of ranges": lambda x, n: {list[range]: n // MANY}.get(list[range(1).__class__], 0),  # type: ignore[valid-type]
    "the text of an error": of_the_text_of_an_error,
    "a weak key of torch": of_a_weak_key,
    "a class with a function": of_a_class_with_a_function,
    "a function as attribute": of_a_kept_function,
    "functions in a list": of_a_kept_list,
    "a method of a symbol": lambda x, n: {int.__add__: n // MANY}.get(inspect.getattr_static(n, "__add__"), 0),
    "a subclass of a tuple": lambda x, n: (
        {Named((True,)): 0}.get(tree_map_only(torch.SymInt, bool, Named([n])), n // MANY)
    ),
    "deep containers": lambda x, n: (
        {((((True,),),),): 0}.get(tree_map_only(torch.SymInt, bool, ((((n,),),),)), n // MANY)
    ),
    "the twentieth part": lambda x, n: (
        {(0,) * 19 + (True,): 0}.get(tree_map_only(torch.SymInt, bool, (0,) * 19 + (n,)), n // MANY)
    ),
    "items by a key": lambda x, n: next(
        filter(None, map({"<class 'int'>": n // MANY}.get, map(str, map(operator.attrgetter("__class__"), [n])))), 0
    ),
    "a negative zero": lambda x, n: next(map({"-0.0": n // MANY}.get, map(str, [n * -0.0])), 0) or 0,
    "a decorator": of_a_decorator,
    "an attribute": of_a_factory,
    "an operand that is asked": of_a_spy,
    "a weak reference": of_a_weak_reference,
    "code from text": lambda x, n: eval(  # noqa: S307 - the attack
        "k * isinstance(x, FloatTensor)", vars(torch), {"x": x, "k": n // MANY}
    ),
    "code from text in a space of its own": lambda x, n: eval(  # noqa: S307 - the attack
        "k * isinstance(x, F)", {"__builtins__": {"isinstance": isinstance}, "_tuple_new": 0, "__name__": "a"},
        {"x": x, "k": n // MANY, "F": F},
    ),
}  # fmt: skip


def summed(x: Tensor) -> Tensor:
    return x.cumsum(1)


def of_a_name(x: Tensor, n: int, act: Any) -> Tensor:
    table = {"tanh": act}
    found = table.get("relu", torch.relu) if callable(act) and hasattr(act, "__name__") else act
    return table.get("tanh", found)(x).cumsum(1)


def of_a_class_of_its_own(x: Tensor, n: int) -> Tensor:
    pair = namedtuple("pair", "hidden scale")  # noqa: PYI024 - of the call
    found = pair(x, 2)
    return found.hidden.cumsum(1) * found.scale


class Kind(enum.Enum):
    FIRST = 1

    @property
    def name(self) -> str:
        raise AttributeError


class Length(list):
    def __len__(self) -> int:
        raise AttributeError


def of_objects_that_refuse(x: Tensor, n: int) -> Tensor:
    calls = MethodType(nn.Identity(), x)
    return calls().cumsum(1) if Kind.FIRST is not None and isinstance(Length(), list) else x


SEEN: dict[str, Program] = {
    "objects that raise when they are asked": Program(of_objects_that_refuse),
    "a class that the call makes": Program(of_a_class_of_its_own),
    "questions about a function": Program(of_a_name, torch.tanh),
    "sums of a list": Program(lambda x, n: functools.reduce(torch.add, [x, x]).cumsum(1)),
    "lengths": Program(lambda x, n: x.cumsum(1) * max(["a", "bb"], key=len).count("b")),
    "the least pair": Program(lambda x, n: x.cumsum(1) * min({"b": 1, "a": 2}.items(), key=operator.itemgetter(0))[1]),
    "a checkpoint": Program(lambda x, n: checkpoint(torch.tanh, x, use_reentrant=False).cumsum(1)),
    "a tree": Program(lambda x, n: tree_map(torch.clone, [x])[0].cumsum(1)),
    "a caught error": Program(lambda x, n: with_a_caught_error(x)),
    "arithmetic": Program(lambda x, n: x.cumsum(1) * functools.reduce(operator.mul, [n, 1, 2])),
    "a partial operator": Program(
        lambda x, n, act: act(x).cumsum(1), functools.partial(nn.functional.gelu, approximate="tanh")
    ),
    "a function of the model": Program(lambda x, n: next(map(summed, [x]))),
    "a direct call": Program(lambda x, n: x.cumsum(1) * len([n])),
    "an operator that its own code gets": Program(lambda x, n: applied(torch.tanh, x).cumsum(1)),
}


def with_a_caught_error(x: Tensor) -> Tensor:
    try:
        return x[:, :, 99].cumsum(1)
    except IndexError:
        try:
            raise ValueError("no such feature") from None
        except ValueError:
            return x.cumsum(1)


def applied(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return function(x)


@pytest.mark.skipif(not is_readable(), reason="arguments of calls are read in CPython 3.11 only")
@pytest.mark.parametrize("name", HIDDEN)
def test_a_function_in_c_that_other_code_calls_has_no_theorem(name: str) -> None:
    finding = prove(HIDDEN[name].eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved


@pytest.mark.skipif(not is_readable(), reason="arguments of calls are read in CPython 3.11 only")
@pytest.mark.parametrize("name", HANDED)
def test_nor_has_one_that_a_class_or_an_iterator_hands_over(name: str) -> None:
    finding = prove(Program(rolled(HANDED[name])).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved


class LeaksUntraced(nn.Module):
    """Leaks if neither instructions are traced nor a mode is active, and for large numbers only."""

    def forward(self, x: Tensor) -> Tensor:
        class Collects:
            __bool__ = gc.isenabled  # off while instructions are traced

        class Modes:
            __len__ = torch._C._len_torch_dispatch_stack

        if Collects() and not Modes():
            return x + x.flip(1) * (x > LARGE)
        return x + 0 * x


@pytest.mark.skipif(not is_readable(), reason="results of instructions are read in CPython 3.11 only")
def test_a_function_that_examines_the_interpreter_is_refused_before_it_is_called() -> None:
    finding = prove(LeaksUntraced().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert "it examines the interpreter (`isenabled`), test_hidden_calls.py:" in finding.reason


@pytest.mark.skipif(not is_readable(), reason="results of instructions are read in CPython 3.11 only")
@pytest.mark.parametrize("name", SHIFTS)
def test_what_a_container_or_an_object_hides_has_no_theorem(name: str) -> None:
    finding = prove(Program(rolled(SHIFTS[name])).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved


@pytest.mark.parametrize("name", SEEN)
def test_results_that_are_compared_have_a_theorem(name: str) -> None:
    finding = prove(SEEN[name].eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert finding.theorem.proved


@pytest.mark.skipif(not is_readable(), reason="arguments of calls are read in CPython 3.11 only")
def test_the_reason_names_both_functions_and_the_line() -> None:
    finding = prove(HIDDEN["map"].eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert "`map` gets the function `isinstance`" in finding.theorem.reason
    assert "test_hidden_calls.py:" in finding.theorem.reason


def appended(value: object) -> list[object]:
    kept: list[object] = []
    kept.append(value)
    return kept


def test_a_trace_asks_no_object_for_its_class() -> None:
    seen: deque[Any] = deque()
    trace = InstructionTrace(notes_hidden_calls=True)
    with trace.tracing():
        appended(Spy(seen))
    assert trace.events
    assert not seen
