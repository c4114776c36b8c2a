"""The store of a run: a file with one row a line.

A row is appended with one write and flushed with fsync. If a process is killed while it writes, the next one removes
the incomplete last line. A file that is not a store is refused and left unchanged.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from pydantic import ValidationError

from orderproof.atlas.row import SCHEMA_VERSION, AtlasRow
from orderproof.errors import UsageError

Key = tuple[str, ...]


class Row(Protocol):
    """A row of a store."""

    @property
    def key(self) -> Key:
        """The names and versions that determine the row."""

    def to_line(self) -> str:
        """The row as JSON, with the schema version first."""

    @classmethod
    def model_validate(cls, obj: object) -> Self:
        """The row of a JSON object."""


R = TypeVar("R", bound=Row)


class RowStore(Generic[R]):
    """The rows by key, and their file. One process at a time may open it."""

    row_class: type[R]
    version_key: ClassVar[str]  # the first key of every line, whose value is the schema version
    version: ClassVar[int]
    command: ClassVar[str]  # that writes it

    def __init__(self, path: str | Path) -> None:
        """Open or create the file. Raises `UsageError` if it cannot be written, is in use or is not a store."""
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
                f"the store {str(self.path)!r} is in use by another run; wait for it, or name another file with --store"
            ) from error

    @property
    def _line_prefix(self) -> bytes:
        return f'{{"{self.version_key}":'.encode()

    def _read(self) -> dict[Key, R]:
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        incomplete, prefix = content[end:], self._line_prefix
        if incomplete and not (incomplete.startswith(prefix) or prefix.startswith(incomplete)):
            raise self._invalid_store_error(content.count(b"\n") + 1)
        rows = {}
        for number, line in enumerate(content[:end].splitlines(), 1):
            row = self._row(line, number)
            if row is not None:
                rows[row.key] = row
        if incomplete:
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        return rows

    def _row(self, line: bytes, number: int) -> R | None:
        """The row of a line; None if its schema version is another one."""
        try:
            fields = json.loads(line)
            if fields[self.version_key] != self.version:
                return None
            return self.row_class.model_validate(fields)
        except (ValueError, TypeError, LookupError, ValidationError) as error:
            raise self._invalid_store_error(number) from error

    def _invalid_store_error(self, line: int) -> UsageError:
        return UsageError(
            f"{str(self.path)!r}: expected a store of {self.command}; line {line} is not one of its rows; "
            "name another file with --store"
        )

    def append(self, row: R) -> None:
        """Write a row to disk. Raises `UsageError` if that fails."""
        line = (row.to_line() + "\n").encode()
        assert line.startswith(self._line_prefix)
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            raise UsageError(f"cannot write to the store {str(self.path)!r}: {error.strerror or error}") from error
        self.rows[row.key] = row

    def close(self) -> None:
        """Close the file and release its lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AtlasStore(RowStore[AtlasRow]):
    """The rows of an atlas."""

    row_class = AtlasRow
    version_key, version, command = "atlas", SCHEMA_VERSION, "orderproof atlas"
