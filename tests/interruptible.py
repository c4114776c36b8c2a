"""Start processes that react to Ctrl-C, also when the tests themselves ignore it.

A shell starts background jobs with SIGINT ignored, and child processes inherit that.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any


def start_interruptible(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen` with the default action of SIGINT in the new process."""
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)  # exec resets a handler to the default action
    try:
        return subprocess.Popen(command, **options)
    finally:
        signal.signal(signal.SIGINT, inherited)
