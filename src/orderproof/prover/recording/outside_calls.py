"""The C functions that an eager call uses besides operators: to reach memory, other threads, or what is outside.

A model can read the values of a tensor without an operator (by the address of its memory), or in a thread or process
that no recording follows. Its answer may also depend on what is no tensor at all: a file, the clock, the entropy of the
operating system. Python reports every call of a C function to a profile function, which sorts them here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

_REACHES_MEMORY = {
    "data_ptr", "const_data_ptr", "_to_dlpack", "_to_dlpack_versioned", "to_dlpack", "from_address", "from_buffer",
    "string_at", "_storage_address",
}  # fmt: skip
_LEAVES_THE_THREAD = {
    "start_new_thread", "start_new", "start_joinable_thread", "fork", "forkpty", "fork_exec", "posix_spawn",
}  # fmt: skip
_OUTSIDE = ("time", "posix", "nt", "_io", "io", "_socket", "select")
_OF_PYTHON = {"fspath", "getpid", "close", "write", "flush"}  # no answer that could change a result


@dataclass(slots=True)
class OutsideCalls:
    """The C functions of one call that matter to its recording."""

    unfollowed: list[str] = field(default_factory=list)  # reads of memory, threads and processes
    outside: dict[str, None] = field(default_factory=dict)  # functions whose answers come from outside the program

    def observe(self, _frame: FrameType, event: str, function: Any) -> None:
        """The profile function."""
        if event != "c_call":
            return
        name, module = function.__name__, function.__module__
        if name in _REACHES_MEMORY:
            self.unfollowed.append(f"reads the memory of a tensor (`{name}`)")
        elif name in _LEAVES_THE_THREAD or (name == "put" and module is None and _is_queue(function)):
            self.unfollowed.append(f"leaves its thread (`{name}`)")
        elif module in _OUTSIDE and name not in _OF_PYTHON:
            self.outside[f"{module}.{name}"] = None


@contextmanager
def observed_outside_calls() -> Iterator[OutsideCalls]:
    """The calls of the block in this thread; a profile function that was set is silent meanwhile."""
    found = OutsideCalls()
    before = sys.getprofile()
    sys.setprofile(found.observe)
    try:
        yield found
    finally:
        sys.setprofile(before)


def _is_queue(function: Any) -> bool:
    return type(function.__self__).__name__ == "SimpleQueue"
