"""The functions that an eager call uses besides operators: to reach memory, other threads, or what is outside.

A model can read the values of a tensor without an operator (by the address of its memory), or in a thread or process
that no recording follows. It can examine the interpreter, and so tell a recording from a run. Its answer may also
depend on what is no tensor at all: a file, the clock, the entropy of the operating system, a counter in a library that
is written in C. Python reports every call to a profile function, which sorts them here.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import inspect
import reprlib
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

import torch

from orderproof.recording.source import TORCH_FOLDER, is_model_code

_REACHES_MEMORY = {
    "data_ptr", "const_data_ptr", "_to_dlpack", "_to_dlpack_versioned", "to_dlpack", "from_address", "from_buffer",
    "string_at", "_storage_address",
}  # fmt: skip
_LEAVES_THE_THREAD = {
    "start_new_thread", "start_new", "start_joinable_thread", "fork", "forkpty", "fork_exec", "posix_spawn",
    "posix_spawnp", "system", "execv", "execve", "spawnv", "spawnve",
}  # fmt: skip
_OUTSIDE = ("time", "posix", "nt", "_io", "io", "_socket", "select", "resource", "mmap", "_ssl", "_sqlite3")
_OF_PYTHON = {"fspath", "getpid", "close", "write", "flush"}  # no answer that could change a result

# Modules in C whose functions depend on their arguments, and on objects whose state is compared before and after.
_OF_THE_PROGRAM = frozenset({
    "builtins", "math", "cmath", "_operator", "itertools", "functools", "_functools", "collections", "_collections",
    "_collections_abc", "_abc", "_contextvars", "contextvars", "_struct", "_heapq", "_bisect", "_string", "re", "_sre",
    "_random", "random", "_weakref", "weakref", "array", "types", "enum", "typing", "_typing", "fractions",
    "numbers", "unicodedata", "binascii", "_json", "_warnings", "_ast", "_opcode", "_codecs", "copyreg", "copy",
})  # fmt: skip
_PACKAGES_OF_THE_PROGRAM = ("torch", "numpy", "pybind11_builtins")
_COUNTS_REFERENCES = {"getweakrefcount", "getweakrefs"}
_OF_SYS = {"intern", "exc_info", "exception", "getdefaultencoding", "getfilesystemencoding"}

# Asked by the model itself, these show that a recording or a comparison runs.
_EXAMINES = {
    "_getframe", "_getframemodulename", "_current_frames", "_current_exceptions", "getprofile", "setprofile",
    "gettrace", "settrace", "getrefcount", "_profiler_enabled", "_profiler_type", "_has_torch_function",
    "_has_torch_function_unary", "_has_torch_function_variadic", "_len_torch_dispatch_stack",
    "_len_torch_function_stack", "_get_dispatch_stack_at", "_get_function_stack_at", "_get_dispatch_mode",
    "_is_torch_function_mode_enabled", "_is_torch_function_enabled", "_is_torch_function_all_disabled",
    "_dispatch_tls_local_include_set", "_dispatch_tls_local_exclude_set", "_dispatch_tls_is_dispatch_key_included",
    "_dispatch_tls_is_dispatch_key_excluded",
}  # fmt: skip
_EXAMINING_MODULES = ("gc", "_tracemalloc")
# These functions by identity: C code may call one for a model, which reports no call.
EXAMINING_FUNCTIONS = {
    id(function): name
    for module, names in ((sys, _EXAMINES), (torch._C, _EXAMINES), (torch._C._autograd, _EXAMINES), (gc, dir(gc)))
    for name in names
    if isinstance(function := getattr(module, name, None), BuiltinFunctionType)
}
_EXAMINING_FILES = {torch.overrides.__file__, torch.utils._python_dispatch.__file__, torch.utils._mode_utils.__file__}
_COMPILER, _OF_COMPILED = "torch/_dynamo/eval_frame.py", "compile_wrapper"  # around each compiled function
_ON_BEHALF = {  # their code calls, or examines frames, for the code that calls it
    inspect.__file__, traceback.__file__, contextlib.__file__, functools.__file__, reprlib.__file__,
    torch.utils._contextlib.__file__,
}  # fmt: skip
_IDENTITIES = {"id", "hash", "get_ident", "get_native_id"}  # another number in each process


@dataclass(slots=True)
class OutsideCalls:
    """The functions of one call that matter to its recording."""

    unfollowed: list[str] = field(default_factory=list)  # reads of memory, threads, processes, the interpreter
    outside: dict[str, None] = field(default_factory=dict)  # functions whose answers come from outside the program
    compiled: bool = False  # a function that torch.compile may have compiled

    def observe(self, frame: FrameType, event: str, function: Any) -> None:
        """The profile function."""
        if event == "c_call":
            self._observe_c_function(frame, function)
        elif event == "call" and frame.f_back is not None:
            file = frame.f_code.co_filename
            name = frame.f_code.co_name
            if examines_modes(frame):
                self.unfollowed.append(f"examines the modes of torch (`{name}`)")
            elif file == ctypes.__file__ and _is_of_model(frame.f_back):
                self.unfollowed.append(f"uses ctypes (`{name}`)")
            elif name == _OF_COMPILED and file.endswith(_COMPILER):
                self.compiled = True

    def _observe_c_function(self, frame: FrameType, function: Any) -> None:
        name, module = function.__name__, function.__module__
        if name in _REACHES_MEMORY:
            self.unfollowed.append(f"reads the memory of a tensor (`{name}`)")
        elif name in _LEAVES_THE_THREAD or (name == "put" and module is None and _is_queue(function)):
            self.unfollowed.append(f"leaves its thread (`{name}`)")
        elif name in _EXAMINES or module in _EXAMINING_MODULES:
            if _is_of_model(frame):
                self.unfollowed.append(f"examines the interpreter (`{name}`)")
        elif name in _IDENTITIES:
            if is_model_code(frame.f_code.co_filename):
                self.outside[f"{module}.{name}"] = None
        elif module in _OUTSIDE and name not in _OF_PYTHON:
            self.outside[f"{module}.{name}"] = None
        elif not _is_of_the_program(function, name) and _asks(frame, module):
            self.outside[f"{_defining_module(function, name)}.{name}"] = None


@contextmanager
def observed_outside_calls() -> Iterator[OutsideCalls]:
    """The calls of the block in this thread; a profile function that was set is silent meanwhile."""
    found = OutsideCalls()
    before, threads = sys.getprofile(), _positions_of_threads()
    sys.setprofile(found.observe)
    try:
        yield found
    finally:
        sys.setprofile(before)
        if _other_threads_ran(threads):
            found.outside["other threads"] = None


def examines_modes(frame: FrameType) -> bool:
    """True of a function of torch that looks at its modes, or switches one off, called by a model."""
    code = frame.f_code
    return code.co_filename in _EXAMINING_FILES and not code.co_name.startswith("__") and _is_of_model(frame.f_back)


def _is_of_the_program(function: Any, name: str) -> bool:
    """True if a function in C depends on nothing but its arguments and objects whose state is compared."""
    module = _defining_module(function, name)
    if module == "sys":
        return name in _OF_SYS
    known = module in _OF_THE_PROGRAM or module.partition(".")[0] in _PACKAGES_OF_THE_PROGRAM
    return known and name not in _COUNTS_REFERENCES


def _asks(frame: FrameType, module: str | None) -> bool:
    """True if the code of a frame may pass the answer on to the model: not that of torch, or of Python about `sys`."""
    file = frame.f_code.co_filename
    return is_model_code(file) if module == "sys" else not file.startswith(TORCH_FOLDER)


def _defining_module(function: Any, name: str) -> str:
    """The module of a function in C, or that of the class that defines it as a method."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        return function.__module__ or "builtins"
    kind = owner if isinstance(owner, type) else type(owner)
    made_in_c = (x for x in kind.__mro__ if name in vars(x) and not isinstance(vars(x)[name], FunctionType))
    return str(next((x.__module__ for x in made_in_c), kind.__module__))


def _is_queue(function: Any) -> bool:
    return type(function.__self__).__name__ == "SimpleQueue"


def _is_of_model(frame: FrameType | None) -> bool:
    """True if the code of a frame belongs to the model, or is called by it to examine a frame."""
    while frame is not None and frame.f_code.co_filename in _ON_BEHALF:
        frame = frame.f_back
    return frame is not None and is_model_code(frame.f_code.co_filename)


def _positions_of_threads() -> dict[int, tuple[FrameType, int]]:
    """Where the other threads are that run code of a model, which could answer the call."""
    if threading.active_count() == 1:
        return {}
    own = threading.get_ident()
    return {
        thread: (frame, frame.f_lasti)
        for thread, frame in sys._current_frames().items()
        if thread != own and _runs_model_code(frame)
    }


def _other_threads_ran(before: dict[int, tuple[FrameType, int]]) -> bool:
    """True if another thread went on, or does not wait: a short loop is found at the same place again."""
    now = _positions_of_threads()
    return any(
        thread in now and (now[thread] != position or _is_of_the_users(position[0]))
        for thread, position in before.items()
    )


def _is_of_the_users(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return is_model_code(file) and "site-packages" not in file


def _runs_model_code(frame: FrameType | None) -> bool:
    while frame is not None:
        if is_model_code(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False
