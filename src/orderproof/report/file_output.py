"""Atomic writing of files: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path

from orderproof.errors import UsageError


def write_file(content: str | bytes, target: str | Path) -> None:
    """Write bytes, or text as UTF-8, to a path, or to standard output when the path is ``-``.

    Raises UsageError when the path cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    if str(target) == "-":
        _to_standard_output(data)
        return
    path = Path(target).expanduser()
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)  # a pipe or device: nothing to replace
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise _write_error(target, error) from error


def check_writable(*targets: str | Path | None, source: str | None = None) -> None:
    """Check before long work that the files can be written.

    Raises `UsageError` where the folder is missing or read-only, where the target is a folder or the file of the
    subject ``source``, and where two targets are one file or standard output.
    """
    if (count := sum(str(target) == "-" for target in targets)) > 1:
        raise UsageError(f"expected at most one output on standard output (-); got {count}")
    read = _files_of(source or "")
    seen: set[Path] = set()
    for target in targets:
        if target is None or str(target) == "-":
            continue
        path = Path(target).expanduser()
        try:
            if path.resolve() in seen and not path.is_char_device():
                raise UsageError(f"expected another file for each output; got {str(target)!r} twice")
            seen.add(path.resolve())
            if path.resolve() in read:
                raise UsageError(f"expected another file for the output; got {str(target)!r}, which holds the subject")
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            if path.exists() and not path.is_file():
                continue  # a pipe or device
            folder = path.resolve().parent
            if not folder.is_dir():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            if not os.access(folder, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise _write_error(target, error) from error


def _files_of(source: str) -> set[Path]:
    """The file of a subject, written as the file itself or as file.py:name."""
    names = (source, source.rpartition(":")[0])
    return {Path(name).expanduser().resolve() for name in names if name and Path(name).expanduser().is_file()}


def _write_error(target: str | Path, error: OSError) -> UsageError:
    where = f"cannot write {str(target)!r}: {error.strerror or error}"
    return UsageError(f"{where}; give a file name in an existing, writable folder")


def _replace(path: Path, data: bytes) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _to_standard_output(data: bytes) -> None:
    sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:
        sys.stdout.write(data.decode())
    else:  # a report is UTF-8 in every locale
        raw.write(data)
    sys.stdout.flush()
