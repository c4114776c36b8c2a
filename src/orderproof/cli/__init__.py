"""The command line: one file for each command."""

from __future__ import annotations

import atexit
import gc
import sys

from orderproof.cli.library_imports import spare_imports
from orderproof.signals import interrupt_on_termination

# The default is (700, 10, 10). Importing torch and transformers makes a million objects that live until the end.
COLLECTION_THRESHOLDS = (50_000, 20, 10)


is_program = False  # a command is all that this process does, so it may go on in a forked one


def program() -> None:
    """The program `orderproof`: the command line in a process of its own."""
    global is_program
    is_program = True
    main()


def main() -> None:
    """Run the command line in the process of the caller: see `orderproof.cli.application`."""
    try:
        interrupt_on_termination()
        _collect_garbage_rarely()
        spare_imports()
        from orderproof.cli.application import main as run
        from orderproof.cli.watched_process import send_end
    except KeyboardInterrupt:
        sys.stderr.write("orderproof: interrupted\n")
        raise SystemExit(130) from None
    try:
        run()
    finally:
        send_end()


def keep_until_the_end() -> None:
    """Spare all objects made so far; not in a process that runs more than one command, such as that of the tests."""
    if gc.get_threshold() == COLLECTION_THRESHOLDS:
        gc.freeze()


def _collect_garbage_rarely() -> None:
    """Spare the many objects that live until the end: an audit spent two of its seconds on looking at them."""
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    atexit.register(gc.freeze)  # the collections at the end of the process then have nothing to look at
