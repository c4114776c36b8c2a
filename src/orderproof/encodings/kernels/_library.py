"""The compiled library, where the package was built with one."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

SWITCH = "ORDERPROOF_KERNELS"


@cache
def library() -> ctypes.CDLL | None:
    """The library; None where there is none, it cannot be loaded, or ORDERPROOF_KERNELS=0 asks for the torch path."""
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        found = ctypes.CDLL(str(Path(__file__).with_name("turn.so")))
    except OSError:
        return None
    found.turn.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    found.turn.restype = ctypes.c_int
    number, address = ctypes.c_int64, ctypes.c_void_p
    found.turn_few.argtypes = (address, number, *(address,) * 5, *(number,) * 4)
    found.turn_few.restype = ctypes.c_int
    found.table.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    found.table.restype = None
    return found


def available() -> bool:
    """Whether the compiled kernels are there."""
    return library() is not None
