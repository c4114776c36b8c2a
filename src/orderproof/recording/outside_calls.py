"""The functions that an eager call uses besides operators: clocks, files, chance of the system, threads and processes.

The answer of a model may depend on what is no tensor: the time, a file, the entropy of the operating system. Python
reports every call of a function in C to a profile function, which looks it up here. State in other libraries in C is
not seen.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from orderproof.recording.source import is_called_by_torch, is_model_code

_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
           "process_time_ns", "thread_time", "localtime", "gmtime", "ctime")  # fmt: skip
_FILES = ("open", "read", "stat", "lstat", "listdir", "scandir", "access", "urandom", "getrandom", "getloadavg")
_STARTS = {  # threads and processes, in which no recording follows the operators
    "start_new_thread", "start_joinable_thread", "fork", "forkpty", "fork_exec", "posix_spawn", "posix_spawnp",
    "system", "execv", "execve", "spawnv", "spawnve",
}  # fmt: skip
_NAMES = {
    id(function): f"{owner.__name__}.{name}"
    for owner, names in ((time, _CLOCKS), (os, _FILES))
    for name in names
    if (function := getattr(owner, name, None)) is not None
}
_METHODS: dict[tuple[type, str], str] = {  # of classes: a bound one is another object at each call
    (kind, name): f"datetime.{kind.__name__}.{name}"
    for kind in (dt.datetime, dt.date)
    for name in ("now", "utcnow", "today")
}
_IDENTITIES = {id(id): "builtins.id", id(hash): "builtins.hash"}  # other numbers in each process
_OPENS = {"open", "open_code"}
_NAMES_TO_LOOK_UP = frozenset({*_CLOCKS, *_FILES, *_STARTS, *_OPENS, "now", "utcnow", "today", "id", "hash"})
_COMPILER, _OF_COMPILED = "torch/_dynamo/eval_frame.py", "compile_wrapper"  # around each compiled function


@dataclass(slots=True)
class OutsideCalls:
    """The functions of one call that matter to its recording."""

    unfollowed: list[str] = field(default_factory=list)  # threads and processes
    outside: dict[str, None] = field(default_factory=dict)  # functions whose answers come from outside the program
    compiled: bool = False  # a function that torch.compile may have compiled

    def observe(self, frame: FrameType, event: str, function: Any) -> None:
        """The profile function."""
        if event == "c_call":
            name = function.__name__
            if name not in _NAMES_TO_LOOK_UP:  # most calls: this runs at each of them
                return
            if name in _STARTS:
                self.unfollowed.append(f"leaves its thread (`{name}`)")
            elif (found := self._outside(function, name)) and not is_called_by_torch(frame):
                self.outside[found] = None
            elif id(function) in _IDENTITIES and is_model_code(frame.f_code.co_filename):
                self.outside[_IDENTITIES[id(function)]] = None
        elif event == "call" and frame.f_code.co_name == _OF_COMPILED:
            self.compiled |= frame.f_code.co_filename.endswith(_COMPILER)

    def _outside(self, function: Any, name: str) -> str:
        if found := _NAMES.get(id(function)):
            return found
        owner = getattr(function, "__self__", None)
        if isinstance(owner, type) and (found := _METHODS.get((owner, name))):
            return found
        return f"{function.__module__}.{name}" if name in _OPENS and function.__module__ in ("io", "_io") else ""


@contextmanager
def observed_outside_calls() -> Iterator[OutsideCalls]:
    """The calls of the block in this thread. A profiler that runs is left alone: then nothing is seen, and said."""
    found = OutsideCalls()
    if sys.getprofile() is not None:
        found.outside["clocks and files (a profiler runs, so that their calls are not seen)"] = None
        yield found
        return
    sys.setprofile(found.observe)
    try:
        yield found
    finally:
        sys.setprofile(None)
