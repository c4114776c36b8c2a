"""Settings of the process that a model may change: of torch, of Python and of the operating system."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn


class Setting(NamedTuple):
    """A setting of the process. `restore` is None where only the model itself could undo the change."""

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], object] | None = None


def _set_deterministic(value: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def _set_streams(value: tuple[Any, Any]) -> None:
    sys.stdout, sys.stderr = value


def _streams() -> tuple[Any, Any]:
    return sys.stdout, sys.stderr


def _is_open(stream: Any) -> bool:
    return stream is not None and not stream.closed


def _file(descriptor: int) -> tuple[int, int] | None:
    """The identity of an open file; None if it is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _set_signal_handlers(value: tuple[Any, ...]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in zip(_SIGNALS, value, strict=True):
            if handler is not None:  # None: not installed by Python
                signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM) if hasattr(signal, "SIGALRM") else (signal.SIGINT,)
_HOOKS = [name for name in vars(nn.modules.module) if name.startswith("_global_") and name.endswith("hooks")]

SETTINGS = (
    Setting("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("the default device", torch.get_default_device),
    Setting(
        "the deterministic algorithms",
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        _set_deterministic,
    ),
    Setting("the number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting("the gradient mode", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting("autocast", lambda: (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))),
    Setting("the matmul precision", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    Setting("the hooks of all modules", lambda: [len(getattr(nn.modules.module, name)) for name in _HOOKS]),
    Setting("the working directory", os.getcwd, os.chdir),
    Setting("the handlers of signals", lambda: tuple(map(signal.getsignal, _SIGNALS)), _set_signal_handlers),
    Setting("the standard streams", _streams, _set_streams),
    Setting(
        "the files of the standard streams",
        lambda: [(_is_open(stream), _file(k + 1)) for k, stream in enumerate(_streams())],
    ),
)


def read_settings() -> dict[str, Any]:
    """The value of each setting, by name."""
    return {setting.name: setting.read() for setting in SETTINGS}


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of what differs."""
    return [name for name, value in before.items() if name in after and after[name] != value]


def restore_settings(before: dict[str, Any]) -> None:
    """Restore what `read_settings` gave, where that is possible."""
    for setting in SETTINGS:
        value = before[setting.name]
        if setting.restore is not None and setting.read() != value:
            setting.restore(value)
