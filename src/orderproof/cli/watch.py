"""`orderproof audit --watch`: the audit again after each change of a file, until Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from orderproof.configuration.basis import FOLDER
from orderproof.report.phrases import pluralize

OPTION = "--watch"
SUFFIXES = (".py", ".toml", ".json", ".onnx", ".safetensors")
INTERVAL = 0.5  # [s] between looks at the files
_SKIPPED = {FOLDER, "__pycache__", "node_modules", "site-packages"}

State = dict[Path, tuple[int, int]]


def audit_again(arguments: Sequence[str], subject: str | None, written: Sequence[str | None]) -> int:
    """Run the command without `--watch` now and after each change; its last exit code after Ctrl-C.

    Args:
        arguments: Those of the command line, with `--watch`.
        subject: The subject; files of its folder count, else those of the current one.
        written: The files that the command writes, whose changes do not count.

    """
    command = [sys.executable, "-m", "orderproof", *(each for each in arguments if each != OPTION)]
    own = {Path(each).resolve() for each in written if each is not None}
    return repeat(lambda: subprocess.run(command, check=False).returncode, folder_of(subject), own)


def repeat(run: Callable[[], int], folder: Path, written: set[Path], *, wait: Callable[[], None] | None = None) -> int:
    """Call `run` now and after each change of a file below a folder; its last result after `KeyboardInterrupt`."""
    wait = wait or (lambda: time.sleep(INTERVAL))
    code = 0
    try:
        while True:
            seen = state(folder, written)
            code = run()
            sys.stderr.write(f"orderproof: watching {pluralize(len(seen), 'file')} below {folder}; Ctrl-C ends\n")
            while not (changed := changes(seen, state(folder, written))):
                wait()
            sys.stderr.write(f"orderproof: {changed[0].name} has changed\n")
    except KeyboardInterrupt:
        return code


def folder_of(subject: str | None) -> Path:
    """The folder of the file or of the checkpoint that a subject names; else the current one."""
    named = Path((subject or "").rpartition(":")[0] or subject or "")
    if subject and named.suffix and named.is_file():
        return named.resolve().parent
    return named.resolve() if subject and named.is_dir() else Path.cwd()


def state(folder: Path, written: set[Path]) -> State:
    """The time and the size of each file that may change an audit."""
    found: State = {}
    for path in _files(folder):
        try:
            status = path.stat()
        except OSError:  # deleted meanwhile
            continue
        if path.resolve() not in written:
            found[path] = (status.st_mtime_ns, status.st_size)
    return found


def changes(before: State, now: State) -> list[Path]:
    """The files that are new, gone or different."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def _files(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each not in _SKIPPED and not each.startswith(".")]
        yield from (Path(here, name) for name in names if name.endswith(SUFFIXES))
