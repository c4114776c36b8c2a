"""Open sizes that look to a model like Python's numbers.

Torch's symbolic numbers differ from those of Python where a model asks what they are: `isinstance(n, int)` is false,
`hash(n)` raises an error, a comparison gives a symbol, `copy.deepcopy(n)` copies what was asked so far. A model that
asks so would take another branch than in eager mode, and no condition would say so. Within this block its questions get
the answers of Python's numbers. An answer that is the value itself, such as text or a hash, fixes the size.

`PythonType` answers `type(n)` in the modules of Python that define the model. Not answered: `type(n)` elsewhere, and
functions in C that look at the type, such as the encoder of `json`. Where that has an effect on the outputs, an eager
call of another length gives others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

import numpy as np
import sympy
import torch
from torch.utils._sympy.functions import IntTrueDiv

from orderproof.recording.size_environment import SizeEnvironment

_PYTHON_TYPES: dict[Any, Any] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_VALUES = ("__repr__", "__str__", "__format__", "__hash__")
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
# Sympy computes with floats as with real numbers, and takes some bits of integers for others.
_OF_FLOATS = (*_COMPARISONS, "__float__", "__bool__", "__trunc__", "__floor__", "__ceil__", "__round__", "__int__",
              "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__")  # fmt: skip
_RELATIONS = {
    "__eq__": sympy.Eq, "__ne__": sympy.Ne, "__lt__": sympy.Lt, "__le__": sympy.Le, "__gt__": sympy.Gt,
    "__ge__": sympy.Ge,
}  # fmt: skip
_FEW = 2**20
_TO_INTEGERS = ("__trunc__", "__floor__", "__ceil__", "__round__", "__int__")
_OF_BITS = tuple(f"__{side}{name}__" for name in ("and", "or", "xor") for side in ("", "r"))
_ARITHMETIC = tuple(f"__{side}{name}__" for name in ("add", "sub", "mul", "truediv", "pow") for side in ("", "r"))
_DIVISIONS = ("__floordiv__", "__mod__", "__rfloordiv__", "__rmod__")
_OTHERS = ("__getattribute__", "__array__", "__deepcopy__", "__copy__", "__reduce_ex__")
_MISSING = object()
_LIBRARIES = ("torch", "sympy", "mpmath", "einops")  # they compute with symbols; einops asks by `hash` what a size is
_OURS = ("orderproof.recording", "orderproof.models")
_INTERPRETERS = ("orderproof.models.torchscript",)  # they run the code of a model, which asks what they ask


class _TypeOfTypes(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = type(*args, **kwargs)
        return _PYTHON_TYPES.get(found, found) if len(args) == 1 else found

    def __eq__(cls, other: object) -> bool:
        return other is type or other is cls

    def __hash__(cls) -> int:
        return hash(type)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, type)


class PythonType(type, metaclass=_TypeOfTypes):
    """The builtin `type`, for which a symbolic number is one of Python."""


@contextmanager
def python_numbers() -> Iterator[None]:
    """Under this, symbolic numbers answer a model as numbers of Python do."""
    names = (*_VALUES, *_COMPARISONS, *_OTHERS)
    before = [
        (kind, name, vars(kind).get(name, _MISSING))
        for kind in _PYTHON_TYPES
        for name in {*names, *(key for key, value in vars(kind).items() if isinstance(value, FunctionType))}
    ]
    for kind, python_type in _PYTHON_TYPES.items():
        _patch(kind, python_type)
    try:
        yield
    finally:
        for kind, name, method in before:
            if method is not _MISSING:
                setattr(kind, name, method)
            elif name in vars(kind):
                delattr(kind, name)


def _patch(kind: Any, python_type: Any) -> None:
    for name, value in list(vars(kind).items()):
        if isinstance(value, FunctionType) and name != "__init__":
            setattr(kind, name, _of_torch(value, getattr(python_type, name, None)))
    for name in _VALUES:
        setattr(kind, name, _by_value(getattr(kind, name), getattr(python_type, name)))
    for name in _COMPARISONS:
        if name in vars(kind):
            setattr(kind, name, _decided(getattr(kind, name)))
    if kind is torch.SymFloat:
        for name in _OF_FLOATS:
            setattr(kind, name, _of_float(name, getattr(kind, name), getattr(python_type, name)))
        for name in _ARITHMETIC:
            setattr(kind, name, _without_cancellation(getattr(kind, name), getattr(python_type, name)))
    if kind is torch.SymInt:
        for name in _OF_BITS:
            setattr(kind, name, _by_value(getattr(kind, name), getattr(python_type, name)))
        for name in _DIVISIONS:
            setattr(kind, name, _divided(name, getattr(kind, name), getattr(python_type, name)))
    kind.__getattribute__ = _with_class(kind, python_type)
    kind.__array__ = lambda symbol, *args, **options: np.array(_value(symbol), *args, **options)
    kind.__deepcopy__ = lambda symbol, _: symbol
    kind.__copy__ = lambda symbol: symbol
    kind.__reduce_ex__ = lambda symbol, _: (python_type, (_value(symbol),))


def _of_torch(original: Callable[..., Any], of_number: Callable[..., Any] | None) -> Callable[..., Any]:
    """A method of a symbol; with an object of a class of the model that of its value: torch asks what it is."""

    def method(symbol: Any, *args: Any) -> Any:
        if of_number is not None and any(map(_is_of_another_class, args)) and _is_asked_by_model():
            return of_number(_value(symbol), *args)
        return original(symbol, *args)

    return method


def _is_of_another_class(value: Any) -> bool:
    """True of an object whose class neither Python, torch nor numpy defines."""
    library = str(type(value).__module__).partition(".")[0]
    return library not in sys.stdlib_module_names and library not in (*_LIBRARIES, "numpy", "orderproof")


def _by_value(original: Callable[..., Any], of_number: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a symbol that for a model is that of its value."""

    def method(symbol: Any, *args: Any) -> Any:
        if not _is_asked_by_model():
            return original(symbol, *args)
        return of_number(_value(symbol), *(_value(x) for x in args))

    return method


def _of_float(name: str, original: Callable[..., Any], of_number: Callable[..., Any]) -> Callable[..., Any]:
    """A comparison or conversion of a symbolic float, which for a model is that of its value."""

    def method(symbol: Any, *args: Any) -> Any:
        if not _is_asked_by_model() or (name in _TO_INTEGERS and _is_quotient_of_integers(symbol)):
            return original(symbol, *args)
        if name in _RELATIONS and (answer := _compared_quotient(name, symbol, args[0])) is not None:
            return answer
        return of_number(_value(symbol), *(_value(x) for x in args))

    return method


def _compared_quotient(name: str, symbol: Any, other: Any) -> bool | None:
    """The answer about n / k and an integer c, as that about n and c k; None for other numbers.

    Both are integers, and k is positive: n / k is c, or differs from it by more than rounding if all are below 2 ** 20.
    """
    environment = symbol.node.shape_env
    if not _is_quotient_of_integers(symbol) or not isinstance(environment, SizeEnvironment):
        return None
    if isinstance(other, bool) or not isinstance(other, int | float) or not float(other).is_integer():
        return None
    dividend, divisor = symbol.node._expr.args
    if not divisor.is_positive or abs(other) >= _FEW or any(abs(x) >= _FEW for x in (dividend, divisor) if x.is_number):
        return None
    return bool(environment.evaluate_expr(_RELATIONS[name](dividend, divisor * int(other))))


def _without_cancellation(original: Callable[..., Any], of_number: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on a symbolic float; where real numbers may cancel and floats do not, that of its value."""

    def method(symbol: Any, other: Any) -> Any:
        if not _is_asked_by_model():
            return original(symbol, other)
        if isinstance(other, torch.Tensor):
            return NotImplemented  # an operator of the tensor, with the symbol as a number
        if type(other) is not torch.SymFloat:
            result = original(symbol, other)
            if type(result) is torch.SymFloat and result.node._expr.free_symbols:
                return result
        return of_number(_value(symbol), _value(other))

    return method


def _is_quotient_of_integers(symbol: Any) -> bool:
    """True of n / k, of which float division rounds no value past an integer where n is below 2 ** 53."""
    expression = symbol.node._expr
    return isinstance(expression, IntTrueDiv) and all(part.is_integer for part in expression.args)


def _divided(name: str, original: Callable[..., Any], of_number: Callable[..., Any]) -> Callable[..., Any]:
    """A division with remainder of a symbol, which by a negative number is that of its value."""

    def method(symbol: Any, other: Any) -> Any:
        divisor = symbol if name.startswith("__r") else other
        sign = divisor.node.hint if isinstance(divisor, torch.SymInt) else divisor
        if isinstance(sign, int) and sign < 0 and _is_asked_by_model():
            return of_number(_value(symbol), _value(other))
        return original(symbol, other)

    return method


def _value(symbol: Any) -> Any:
    """The value of a symbol, which fixes it; that of a float fixes the sizes of which it is computed."""
    if type(symbol) not in _PYTHON_TYPES:
        return symbol
    if type(symbol) is not torch.SymInt and isinstance(symbol.node.shape_env, SizeEnvironment):
        symbol.node.shape_env.fix(symbol.node._expr)
    return _PYTHON_TYPES[type(symbol)](symbol)


def _decided(original: Callable[..., Any]) -> Callable[..., Any]:
    """A comparison of a symbol that for a model is true or false."""

    def compare(symbol: Any, other: Any) -> Any:
        result = original(symbol, other)
        return bool(result) if type(result) is torch.SymBool and _is_asked_by_model() else result

    return compare


def _with_class(kind: Any, python_type: Any) -> Callable[[Any, str], Any]:
    """Attributes of a symbol: for a model its class, by which `isinstance` goes, and its methods are of its value."""
    of_values = {name for name in dir(python_type) if not name.startswith("_") or not hasattr(kind, name)}

    def attribute(symbol: Any, name: str) -> Any:
        if name == "__class__" and _is_asked_by_model():
            return python_type
        if name in of_values and _is_asked_by_model():
            return getattr(_value(symbol), name)
        return object.__getattribute__(symbol, name)

    return attribute


def _is_asked_by_model() -> bool:
    """True if the innermost code that belongs neither to Python's library nor to these methods is not of torch."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        library = name.partition(".")[0]
        if library not in sys.stdlib_module_names or name == "__main__":
            is_ours = name.startswith(_OURS) and not name.startswith(_INTERPRETERS)
            return library not in _LIBRARIES and not is_ours
        frame = frame.f_back
    return False
