"""Numbers of rows that a mask selects: a call that computes every row knows of them only that they are not negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from orderproof.errors import CaptureError
from orderproof.recording.refusal import NOT_RECORDED

refusals = list[str]()  # of the call that runs


def refuse(reason: str) -> NoReturn:
    """Raise `CaptureError`: the call cannot be recorded so. It is remembered, for a model that catches the error."""
    refusals.append(reason)
    raise CaptureError(f"{NOT_RECORDED}{reason}")


class Count:
    """A number of selected rows, of which is only known that it is not negative; it is taken to be positive."""

    asks: Callable[[], bool]  # called where it is compared with zero; true if it is taken to be positive
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self._compared(is_with_zero=other == 0, result=False)

    def __ne__(self, other: object) -> bool:
        return self._compared(is_with_zero=other == 0, result=True)

    def __gt__(self, other: object) -> bool:
        return self._compared(is_with_zero=other == 0, result=True)

    def __ge__(self, other: object) -> bool:
        return self._compared(is_with_zero=other == 1, result=True)

    def __lt__(self, other: object) -> bool:
        return self._compared(is_with_zero=other == 1, result=False)

    def __le__(self, other: object) -> bool:
        return self._compared(is_with_zero=other == 0, result=False)

    def __bool__(self) -> bool:
        return self._compared(is_with_zero=True, result=True)

    def _compared(self, *, is_with_zero: bool, result: bool) -> bool:
        if not is_with_zero:
            refuse("it computes with the number of rows that a mask selects")
        return result is self.asks()

    def _computed(self, *_operands: object) -> NoReturn:
        refuse("it computes with the number of rows that a mask selects")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _computed
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _computed
    __divmod__ = __rdivmod__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _computed
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __pos__ = bit_length = bit_count = _computed
    __int__ = __float__ = __index__ = __round__ = __ceil__ = __floor__ = __trunc__ = _computed


class SomeCount(Count, int):  # type: ignore[misc]
    """A number of selected rows that torch takes as a size: that of all rows."""


class OpenCount(Count):
    """A number of selected rows in a recording with open sizes."""


class Counts(list[Count]):
    """The numbers of selected rows, as `torch.bincount` gives them."""

    def tolist(self) -> list[Count]:
        """The numbers."""
        return list(self)

    def cpu(self) -> Counts:
        """The same."""
        return self


def is_counted(argument: object) -> bool:
    """True of a number of selected rows, and of a slice with one."""
    if isinstance(argument, slice):
        return any(map(is_counted, (argument.start, argument.stop, argument.step)))
    return isinstance(argument, Count)
