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

from orderproof.prover.recording.source import is_model_code
from orderproof.prover.recording.value_stack import EMPTY, values_on_stack

_IN_C = (
    BuiltinFunctionType, ClassMethodDescriptorType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType,
    operator.attrgetter, operator.itemgetter, operator.methodcaller,
)  # fmt: skip
_NEVER_CALL = (isinstance, issubclass, callable, hasattr, getattr, setattr, dict, partial)
_NEVER_CALLING_METHODS: dict[Any, set[str]] = {
    dict: {"get", "setdefault", "pop", "update", "__setitem__"}, list: {"append", "insert", "extend"},
}  # fmt: skip
# These answer to a symbol as to a number, and to a meta tensor as to another one.
_EQUAL_ANSWERS = (
    operator.add,
    operator.mul,
    operator.sub,
    operator.neg,
    operator.floordiv,
    operator.mod,
    max,
    min,
    len,
)
_USERS_OF_EQUAL_ANSWERS = (reduce, map, sorted, max, min, filter)
_MAKE_CODE = (eval, exec, compile, FunctionType, CodeType)
_WEAK = ("weakref", "_weakrefset")  # modules of classes


class _Call(NamedTuple):
    """An instruction that calls, and the number of values on the stack that it takes."""

    values: int
    unpacks: bool  # the arguments are a tuple and perhaps a dictionary


def hidden_call(frame: FrameType) -> str:
    """The part of the call that the next instruction of a frame makes which nothing compares; empty if there is none.

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
    if any(called is x for x in _MAKE_CODE):
        return f"`{_name(called)}` makes code, which nothing compares"
    handed = next((x for x in arguments if _answers_unseen(x)), None)
    if handed is None or _never_calls(called) or _runs_code_of_the_model(called) or _is_harmless(called, arguments):
        return ""
    return f"`{_name(called)}` gets the function `{_name(handed)}`, whose results nothing compares"


def is_weak(value: Any) -> bool:
    """True of a weak reference: a recording keeps temporary objects alive, which an eager call frees."""
    return type(value).__module__ in _WEAK


def _unpacked(arguments: Any) -> Iterable[Any]:
    if isinstance(arguments, dict):
        return arguments.values()
    return arguments if isinstance(arguments, tuple | list) else ()  # an iterator must not be advanced


def _answers_unseen(value: Any) -> bool:
    """True of a function in C that may answer otherwise in a recording; `type` is one."""
    if type(value) is partial:
        return any(map(_answers_unseen, (value.func, *value.args, *value.keywords.values())))
    if type(value) is MethodType:
        return _answers_unseen(value.__func__)
    if isinstance(value, type):
        return issubclass(value, type)
    return isinstance(value, _IN_C) and not _is_operator(value)


def _never_calls(called: Any) -> bool:
    """True of a function that calls none of its arguments."""
    if any(called is x for x in _NEVER_CALL):
        return True
    owner: Any = getattr(called, "__objclass__", type(getattr(called, "__self__", None)))
    name = str(getattr(called, "__name__", ""))
    if name in _NEVER_CALLING_METHODS.get(owner, ()):
        return True
    return getattr(called, "__module__", "") == "inspect" and name.startswith("is")


def _is_harmless(called: Any, arguments: Iterable[Any]) -> bool:
    """True of `reduce(operator.mul, ...)` and others, which do with numbers and tensors what they do in eager mode."""
    functions = [x for x in arguments if _answers_unseen(x)]
    return any(called is x for x in _USERS_OF_EQUAL_ANSWERS) and all(map(_has_equal_answers, functions))


def _has_equal_answers(function: Any) -> bool:
    if type(function) is BuiltinFunctionType and type(function.__self__) is dict:
        return function.__name__ == "get"
    return type(function) is operator.itemgetter or any(function is x for x in _EQUAL_ANSWERS)


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
    if instruction.opname == "PRECALL":
        return _Call(2 + (instruction.arg or 0), unpacks=False)
    if instruction.opname == "CALL_FUNCTION_EX":
        return _Call(3 + (instruction.arg or 0) % 2, unpacks=True)
    return None
