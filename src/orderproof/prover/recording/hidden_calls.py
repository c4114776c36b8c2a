"""Calls by which a model hands a function in C to other code that is not its own, such as `map(isinstance, ...)`.

Results of functions in C are compared where the model's code gets them. What such a function answers to other C code is
seen nowhere, and it may tell a symbol from a number, or the meta tensor of a recording from another one.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Iterable
from functools import partial, reduce
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

from torch import nn

from orderproof.prover.recording.source import is_model_code
from orderproof.prover.recording.value_stack import EMPTY, values_on_stack

_IN_C = (
    BuiltinFunctionType, ClassMethodDescriptorType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType,
    operator.attrgetter, operator.itemgetter, operator.methodcaller,
)  # fmt: skip
# These answer to a symbol as to a number, and raise for nothing else.
_ARITHMETIC = (operator.add, operator.mul, operator.sub, operator.neg, operator.floordiv, operator.mod, max, min)
_USERS_OF_ARITHMETIC = (reduce, map)


class _Call(NamedTuple):
    """An instruction that calls, and the number of values on the stack that it takes."""

    values: int
    unpacks: bool  # the arguments are a tuple and perhaps a dictionary


def hidden_call(frame: FrameType) -> str:
    """How the next instruction of a frame hands a function in C to code that is not the model's; empty if it does not.

    For a trace function that an instruction calls, if `value_stack.is_readable()`.
    """
    call = _calls(frame.f_code).get(frame.f_lasti)
    if call is None:
        return ""
    values = values_on_stack(frame, call.values)
    if values[0] is EMPTY:
        del values[0]
    called: Any = values[0]
    arguments = values[1:]
    if call.unpacks:
        arguments = [x for part in arguments for x in _unpacked(part)]
    while type(called) is partial:
        called, arguments = called.func, [*called.args, *called.keywords.values(), *arguments]
    handed = next((x for x in arguments if _is_in_c(x)), None)
    if handed is None or called is partial or _runs_code_of_the_model(called) or _is_arithmetic(called, arguments):
        return ""
    return f"`{_name(called)}` gets the function `{_name(handed)}`, whose results nothing compares"


def _unpacked(arguments: Any) -> Iterable[Any]:
    if isinstance(arguments, dict):
        return arguments.values()
    return arguments if isinstance(arguments, tuple | list) else ()  # an iterator must not be advanced


def _is_arithmetic(called: Any, arguments: Iterable[Any]) -> bool:
    functions = [x for x in arguments if _is_in_c(x)]
    return any(called is x for x in _USERS_OF_ARITHMETIC) and all(any(x is y for y in _ARITHMETIC) for x in functions)


def _is_in_c(value: Any) -> bool:
    if type(value) is partial:
        return any(map(_is_in_c, (value.func, *value.args, *value.keywords.values())))
    return isinstance(value, _IN_C) or (type(value) is MethodType and _is_in_c(value.__func__))


def _runs_code_of_the_model(called: Any) -> bool:
    """True if calling an object runs a function of the model, whose own calls are seen."""
    function: Any = called
    if isinstance(called, nn.Module):
        function = type(called).forward
    elif isinstance(called, type):
        function = called.__init__  # type: ignore[misc]
    elif not isinstance(called, FunctionType | MethodType):
        function = getattr(type(called), "__call__", None)  # noqa: B004 - the function, not if there is one
    function = getattr(function, "__func__", function)
    return isinstance(function, FunctionType) and is_model_code(function.__code__.co_filename)


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", None) or type(value).__qualname__)


def _calls(code: CodeType) -> dict[int, _Call]:
    """The calls of a code object by their offset."""
    found = _known.get(id(code))  # equal code objects take long to compare
    if found is None or found[0] is not code:
        found = _known[id(code)] = code, {i.offset: call for i in dis.get_instructions(code) if (call := _call(i))}
    return found[1]


_known: dict[int, tuple[CodeType, dict[int, _Call]]] = {}


def _call(instruction: dis.Instruction) -> _Call | None:
    if instruction.opname == "PRECALL" and instruction.arg:
        return _Call(2 + instruction.arg, unpacks=False)
    if instruction.opname == "CALL_FUNCTION_EX":
        return _Call(3 + (instruction.arg or 0) % 2, unpacks=True)
    return None
