"""The compiled library, where the package was built with one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

from torch import Tensor

SWITCH = "ORDERPROOF_KERNELS"
_FILE = Path(__file__).with_name("turn.so")
# From here on a buffer holds a large page of 2 MiB wherever it begins; and past the last, large pages that a virtual
# machine has to ask back from its host took longer than small ones.
_LARGE_BYTES = range(1 << 22, (1 << 25) + 1)


@cache
def library() -> ctypes.CDLL | None:
    """The library; None where there is none for this version, or ORDERPROOF_KERNELS=0 asks for the torch path."""
    if os.environ.get(SWITCH) == "0":
        return None
    number, address = ctypes.c_int64, ctypes.c_void_p
    try:
        found = ctypes.CDLL(str(_FILE))
        found.turn.argtypes = (address, ctypes.c_char_p)
        found.turn.restype = ctypes.c_int
        found.turn_few.argtypes = (address, number, *(address,) * 5, *(number,) * 4)
        found.turn_few.restype = ctypes.c_int
        found.table.argtypes = (address, address, number, address, address)
        found.table.restype = None
        found.large_pages.argtypes = (address, number)
        found.large_pages.restype = None
    except (OSError, AttributeError):
        return None
    return found


@cache
def few() -> Callable[..., int] | None:
    """`turn_few` as a function of Python's own, or through ctypes where the library was built without its header."""
    found = library()
    if found is None or not hasattr(found, "PyInit_turn"):
        return None if found is None else found.turn_few
    loader = ExtensionFileLoader("turn", str(_FILE))
    spec = spec_from_loader("turn", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module.few  # type: ignore[no-any-return]


def on_large_pages(found: ctypes.CDLL, *fresh: Tensor) -> None:
    """Ask for large pages under buffers that nothing was written to yet."""
    for x in fresh:
        if (size := x.numel() * x.element_size()) in _LARGE_BYTES:
            found.large_pages(x.data_ptr(), size)


def available() -> bool:
    """Whether the compiled kernels are there."""
    return library() is not None
