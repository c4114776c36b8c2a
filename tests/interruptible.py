"""Start processes that react to Ctrl-C, also when the tests themselves ignore it.

A shell starts background jobs with SIGINT ignored, and child processes inherit that.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def start_interruptible(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen` with the default actions of the signals that end a command, also under nohup."""
    # exec resets a handler to the default action, and keeps a signal that is ignored
    inherited = {number: signal.signal(number, signal.default_int_handler) for number in ENDING}
    try:
        return subprocess.Popen(command, **options)
    finally:
        for number, handler in inherited.items():
            signal.signal(number, handler)
