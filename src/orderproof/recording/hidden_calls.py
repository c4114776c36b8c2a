"""Calls of a model in a recording with open sizes whose results no comparison of instructions sees.

Results of functions are compared where the model's code gets them. What a function in C answers to other code is seen
nowhere, as in `map(isinstance, ...)`, and it may tell a symbol from a number, or the meta tensor of a recording from
another one. Nor is code seen that a model makes from text, or how long its temporary objects live.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Iterable
from functools import cache, partial, reduce
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

import torch
from torch import nn

from orderproof.recording.real_attributes import bases_of, class_attributes
from orderproof.recording.source import is_model_code
from orderproof.recording.value_stack import EMPTY, values_on_stack

_IN_C = (
    BuiltinFunctionType, ClassMethodDescriptorType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType,
    operator.attrgetter, operator.itemgetter, operator.methodcaller,
)  # fmt: skip
_NEVER_CALL = (isinstance, issubclass, callable, hasattr, getattr, dict, partial)
_NEVER_CALLING_METHODS_OF_DICTIONARIES = ("get", "pop")
# These answer to a symbol as to a number, and to a meta tensor as to another one.
_EQUAL_ANSWERS = (
    operator.add, operator.mul, operator.sub, operator.neg, operator.floordiv, max, min, len, callable
)  # fmt: skip
_USERS_OF_EQUAL_ANSWERS = (reduce, map, sorted, max, min, filter)
_SORTING = (sorted, max, min)  # by an item of each value
_MAKE_CODE = (eval, exec, compile, FunctionType, CodeType)
_WEAK = ("weakref", "_weakrefset", "torch.utils.weak", "torch.multiprocessing.reductions")  # modules of classes
_SYMBOLIC = ("sympy", "mpmath")
_UNPACKED: tuple[type, ...] = (tuple, list, dict, type({}.values()), type({}.keys()), range, str)


class _Call(NamedTuple):
    """An instruction that calls, and the number of values on the stack that it takes."""

    values: int
    unpacks: bool = False  # the arguments are a tuple and perhaps a dictionary
    stores: bool = False  # no call: the first value becomes an attribute or an item


def hidden_call(frame: FrameType) -> str:
    """The part of the call that the next instruction of a frame makes which nothing compares; empty if there is none.

    For a trace function that an instruction calls, if `value_stack.is_readable()`.
    """
    call = calls_of(frame.f_code).get(frame.f_lasti)
    if call is None:
        return ""
    values = values_on_stack(frame, call.values)
    if call.stores:
        kept = next((x for x in (values[0], *_unpacked(values[0])) if _answers_unseen(x)), None)
        return "" if kept is None else f"it keeps the function `{_name(kept)}`, whose results nothing compares"
    if values[0] is EMPTY:
        del values[0]
    called: Any = values[0]
    arguments = values[1:]
    if call.unpacks:
        unknown = next((x for x in arguments if not issubclass(type(x), _UNPACKED)), None)
        if unknown is not None and not (_never_calls(called) or called is zip or _is_operator(called)):
            return f"`{_name(called)}` gets the items of an iterator, which nothing shows before the call"
        arguments = [x for part in arguments for x in _unpacked(part)]
    if issubclass(type(called), type) and issubclass(called, type):  # which makes a class
        arguments += [x for part in arguments if type(part) is dict for x in part.values()]
    while issubclass(type(called), partial):
        called, arguments = called.func, [*called.args, *called.keywords.values(), *arguments]
    if any(called is x for x in _MAKE_CODE):
        return f"`{_name(called)}` makes code, which nothing compares"
    handed = next((x for x in arguments if _answers_unseen(x)), None)
    if handed is None or _never_calls(called) or _runs_code_of_the_model(called) or _is_harmless(called, arguments):
        return ""
    return f"`{_name(called)}` gets the function `{_name(handed)}`, whose results nothing compares"


def hidden_class(kind: type) -> str:
    """Why nothing compares what a model does with objects of a class; empty if their results are compared."""
    modules = [one.__module__ for one in bases_of(kind)]
    if any(module in _WEAK for module in modules):
        return "it has a weak reference, and a recording keeps alive what an eager call frees"
    if str(modules[0]).partition(".")[0] in _SYMBOLIC:
        return "it has an expression of torch's symbolic sizes"
    return ""


def _unpacked(arguments: Any) -> Iterable[Any]:
    if type(arguments) is dict:
        return arguments.values()
    return arguments if type(arguments) in _UNPACKED else ()  # an iterator must not be advanced


def _answers_unseen(value: Any) -> bool:
    """True of a function in C that may answer otherwise in a recording; `type` is one.

    No code of a model runs here: `isinstance` would ask an object for its class.
    """
    kind = type(value)
    if issubclass(kind, partial):
        return any(map(_answers_unseen, (value.func, *value.args, *value.keywords.values())))
    if kind is MethodType:
        return _answers_unseen(value.__func__)
    if issubclass(kind, type):
        return issubclass(value, type)
    special = next((held["__call__"] for x in bases_of(kind) if "__call__" in (held := class_attributes(x))), None)
    if issubclass(type(special), (*_IN_C, partial)) and getattr(special, "__name__", "") != "__call__":
        return True
    return issubclass(kind, _IN_C) and not _is_operator(value)


def _never_calls(called: Any) -> bool:
    """True of a function that calls none of its arguments."""
    if any(called is x for x in _NEVER_CALL):
        return True
    owner = getattr(called, "__objclass__", type(getattr(called, "__self__", None)))
    name = str(getattr(called, "__name__", ""))
    if owner is dict and name in _NEVER_CALLING_METHODS_OF_DICTIONARIES:
        return True
    return getattr(called, "__module__", "") == "inspect" and name.startswith("is")


def _is_harmless(called: Any, arguments: Iterable[Any]) -> bool:
    """True of `reduce(operator.mul, ...)` and others, which do with numbers and tensors what they do in eager mode."""
    functions = [x for x in arguments if _answers_unseen(x)]
    if any(called is x for x in _SORTING) and all(type(x) is operator.itemgetter for x in functions):
        return True
    equal = all(any(x is y for y in _EQUAL_ANSWERS) for x in functions)
    return equal and any(called is x for x in _USERS_OF_EQUAL_ANSWERS)


def _is_operator(function: Any) -> bool:
    """True of an operator of torch whose results are tensors, which are compared."""
    name = getattr(function, "__name__", None)
    places = (torch, torch.Tensor, torch._C._nn)
    return name is not None and any(getattr(x, name, None) is function for x in places) and _returns_tensors(name)


@cache
def _returns_tensors(name: str) -> bool:
    tensors = ("Tensor", "List[Tensor]")
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    own = [schema for schema in schemas if schema.arguments and str(schema.arguments[0].type) in tensors]
    return bool(own) and all(str(result.type) in tensors for schema in own for result in schema.returns)


def _runs_code_of_the_model(called: Any) -> bool:
    """True if calling an object runs a function of the model, whose own calls are seen."""
    function: Any = called
    if isinstance(called, nn.Module):
        function = type(called).forward
    elif isinstance(called, type):
        if isinstance(called.__new__, BuiltinFunctionType) and called.__new__ is not object.__new__:
            return False  # a class in C, of which this one is a subclass
        function = called.__init__  # type: ignore[misc]
    elif not isinstance(called, FunctionType | MethodType):
        function = getattr(type(called), "__call__", None)  # noqa: B004 - the function, not if there is one
    function = getattr(function, "__func__", function)
    return isinstance(function, FunctionType) and is_model_code(function.__code__.co_filename)


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", None) or type(value).__qualname__)


def calls_of(code: CodeType) -> dict[int, _Call]:
    """The instructions of a code object by their offset at which `hidden_call` looks."""
    found = _known.get(id(code))  # equal code objects take long to compare
    if found is None or found[0] is not code:
        found = _known[id(code)] = code, {i.offset: call for i in dis.get_instructions(code) if (call := _call(i))}
    return found[1]


_known: dict[int, tuple[CodeType, dict[int, _Call]]] = {}


def _call(instruction: dis.Instruction) -> _Call | None:
    if instruction.opname == "PRECALL":
        return _Call(2 + (instruction.arg or 0))
    if instruction.opname == "CALL_FUNCTION_EX":
        return _Call(3 + (instruction.arg or 0) % 2, unpacks=True)
    if instruction.opname == "STORE_NAME":  # an attribute of a class whose body is executed
        return _Call(1, stores=True)
    if instruction.opname in ("STORE_ATTR", "STORE_SUBSCR"):  # on the stack: the value, the object, and the key
        return _Call(2 + (instruction.opname == "STORE_SUBSCR"), stores=True)
    return None
