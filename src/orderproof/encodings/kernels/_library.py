"""The compiled kernel library; None where the package was built without one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

from torch import Tensor

KERNELS_ENV_VARIABLE = "ORDERPROOF_KERNELS"
_FILE = Path(__file__).with_name("rotary.so")
# From the first size on, a buffer contains a whole huge page of 2 MiB wherever it starts. Above the last, huge pages
# that a virtual machine has to request from its host were slower than small ones.
_HUGE_PAGE_BYTES = range(1 << 22, (1 << 25) + 1)


@cache
def library() -> ctypes.CDLL | None:
    """The loaded library; None if it is missing, was built for another version, or ORDERPROOF_KERNELS=0 is set."""
    if os.environ.get(KERNELS_ENV_VARIABLE) == "0":
        return None
    number, address = ctypes.c_int64, ctypes.c_void_p
    try:
        lib = ctypes.CDLL(str(_FILE))
        lib.rotate.argtypes = (address, ctypes.c_char_p)
        lib.rotate.restype = ctypes.c_int
        lib.cos_sin_table.argtypes = (address, address, number, address, address)
        lib.cos_sin_table.restype = None
        lib.advise_huge_pages.argtypes = (address, number)
        lib.advise_huge_pages.restype = None
    except (OSError, AttributeError):
        return None
    return lib


@cache
def small_rotate() -> Callable[..., int] | None:
    """`rotate_small` as a native function; None if there is no library, or it was built without Python's header."""
    if not hasattr(library(), "PyInit_rotary"):
        return None
    loader = ExtensionFileLoader("rotary", str(_FILE))
    spec = spec_from_loader("rotary", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module.rotate_small  # type: ignore[no-any-return]


def advise_huge_pages(lib: ctypes.CDLL, *buffers: Tensor) -> None:
    """Request huge pages for new, unwritten buffers."""
    for x in buffers:
        if (size := x.numel() * x.element_size()) in _HUGE_PAGE_BYTES:
            lib.advise_huge_pages(x.data_ptr(), size)


def kernels_available() -> bool:
    """True if the compiled kernels are available."""
    return library() is not None
