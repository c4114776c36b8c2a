"""The value on top of the stack of a frame of Python, which a trace function can see in no other way.

Python gives a trace function the local variables of a frame, but not the results that an expression has not stored yet.
They are read from the memory of the frame, whose layout differs between versions of CPython. A version whose layout is
not known here, or does not prove right in a check, has no value to show.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any

EMPTY = object()  # no value: the stack is empty, or has a mark of the interpreter on top
_FRAME = 24  # offset in a frame object: the address of the interpreter's frame
_VERSION = sys.version_info[:2]
_OFFSETS = {(3, 11): (32, 64, 72)}  # offsets in the interpreter's frame: its code, the number of its values, the values

_ADDRESS, _NUMBER = ctypes.c_void_p.from_address, ctypes.c_int.from_address
_VALUE = ctypes.py_object.from_address


def stack_reader(frame: FrameType) -> Callable[[], Any]:
    """A function that reads the value on top of the stack of a frame; `EMPTY` if there is none.

    For the trace function of the frame, until it returns or yields: the frame does not move meanwhile.
    """
    _, count, values = _OFFSETS[_VERSION]
    address: int = _ADDRESS(id(frame) + _FRAME).value  # type: ignore[assignment]
    size, before, variables = _NUMBER(address + count), address + values - 8, _variables(frame.f_code)

    def top() -> Any:
        number = size.value
        return EMPTY if number <= variables else _value(before + 8 * number)

    return top


def values_on_stack(frame: FrameType, number: int) -> list[Any]:
    """The values on top of the stack of a frame, of which the last one is the top; as many as are asked for.

    For the trace function of the frame. The stack has this many before an instruction that takes them.
    """
    _, count, values = _OFFSETS[_VERSION]
    address: int = _ADDRESS(id(frame) + _FRAME).value  # type: ignore[assignment]
    size = _NUMBER(address + count).value
    if size - _variables(frame.f_code) < number:
        raise IndexError(f"expected {number} values on the stack, found {size - _variables(frame.f_code)}")
    return [_value(address + values + 8 * (size - number + k)) for k in range(number)]


def _value(address: int) -> Any:
    try:
        return _VALUE(address).value
    except ValueError:  # a null pointer: the interpreter's mark of a call
        return EMPTY


@cache
def is_readable() -> bool:
    """True if the stack of this Python can be read: a check of values that are known."""
    if sys.implementation.name != "cpython" or _VERSION not in _OFFSETS or sys.maxsize != 2**63 - 1:
        return False
    found: list[Any] = []

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code is not _checked.__code__:
            return None
        address = _ADDRESS(id(frame) + _FRAME).value
        if address is None or _ADDRESS(address + _OFFSETS[_VERSION][0]).value != id(frame.f_code):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            found.append(stack_reader(frame)())
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = _checked(_ANSWER)
    finally:
        sys.settrace(before)
    return result in found and any(value is _ANSWER for value in found) and any(value is EMPTY for value in found)


_ANSWER = ("an object", "that is found again")


def _checked(value: tuple[str, ...]) -> list[int]:
    """A function with a cell, whose values are known."""
    inner = [len(value) for _ in value]
    return [*inner, 5]


def _variables(code: CodeType) -> int:
    """The number of values of a frame before its stack: its local variables and cells."""
    found = _counted.get(id(code))  # equal code objects may be of different files, and take long to compare
    if found is None or found[0] is not code:
        found = _counted[id(code)] = code, _count(code)
    return found[1]


_counted: dict[int, tuple[CodeType, int]] = {}


def _count(code: CodeType) -> int:
    own = [name for name in code.co_cellvars if name not in code.co_varnames]
    return code.co_nlocals + len(own) + len(code.co_freevars)
