"""The store of the atlas: one row a line, each on the disk before the next is begun.

A row is appended by one write and flushed with fsync. A process killed while it writes leaves a torn last line,
which the next one cuts off. A file that is no store is refused and left as it is.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from orderproof.auditing.atlas_rows import SCHEMA, Key, Row
from orderproof.errors import UsageError

HEAD = b'{"atlas":'  # every line begins with it


class Store:
    """Rows by key, and the file they are in; one process at a time."""

    def __init__(self, path: str | Path) -> None:
        """Open or create it. Raises `UsageError` where it cannot be written, is in use or is no store."""
        self.path = Path(path).expanduser()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(
                f"cannot open the store {str(path)!r}: {error.strerror or error}; "
                "give a file name in an existing, writable folder"
            ) from error
        try:
            self._lock()
            self.rows = self._read()
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(
                f"the store {str(self.path)!r} is in use by another run; wait for it, or name another with --store"
            ) from error

    def _read(self) -> dict[Key, Row]:
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        torn = content[end:]
        if torn and not (torn.startswith(HEAD) or HEAD.startswith(torn)):
            raise self._no_store(content.count(b"\n") + 1)
        rows = {}
        for number, line in enumerate(content[:end].splitlines(), 1):
            row = self._row(line, number)
            if row is not None:
                rows[row.key] = row
        if torn:
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        return rows

    def _row(self, line: bytes, number: int) -> Row | None:
        """The row of a line; None for one of another version of this format."""
        try:
            found = json.loads(line)
            if found["atlas"] != SCHEMA:
                return None
            return Row.model_validate(found)
        except (ValueError, TypeError, LookupError, ValidationError) as error:
            raise self._no_store(number) from error

    def _no_store(self, line: int) -> UsageError:
        return UsageError(
            f"{str(self.path)!r} is no store of the atlas: line {line} is not one of its rows; "
            "name another with --store"
        )

    def append(self, row: Row) -> None:
        """Put a row on the disk. Raises `UsageError` where that fails."""
        line = (row.to_line() + "\n").encode()
        assert line.startswith(HEAD)
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            raise UsageError(f"cannot write to the store {str(self.path)!r}: {error.strerror or error}") from error
        self.rows[row.key] = row

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
