"""Finished runs in one SQLite file: appended, never changed, shared by processes (write-ahead log).

A study's folder holds `results.sqlite` and, in `checkpoints/`, one file for each run under way. A run is in the store
or it is not: a result is written in one transaction, after which its checkpoint is removed. Two processes may finish
the same run; the first one's result stays.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from orderproof.errors import StoreError
from orderproof.lab.result import RunResult

SCHEMA = 1
TABLES = """
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, code TEXT NOT NULL, finished TEXT NOT NULL, result TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS proofs (cell TEXT, code TEXT, laws TEXT NOT NULL, PRIMARY KEY (cell, code));
"""


class Store:
    """The results of one folder. Raises `StoreError` where the file cannot be read or written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "results.sqlite"
        self.checkpoints = folder / "checkpoints"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make the folder {str(folder)!r}: {error.strerror}; give another --store"
            ) from error
        with self._open() as held:
            (version,) = held.execute("PRAGMA user_version").fetchone()
            if version not in (0, SCHEMA):
                raise StoreError(f"{self.file} has schema {version}, this version reads {SCHEMA}; give another --store")
            held.execute("PRAGMA journal_mode = WAL")
            held.executescript(TABLES)
            held.execute(f"PRAGMA user_version = {SCHEMA}")

    def results(self) -> dict[str, tuple[str, RunResult]]:
        """Every finished run by its name: the code that made it, and what it found."""
        found = {}
        with self._open() as held:
            for name, code, text in held.execute("SELECT id, code, result FROM runs ORDER BY id"):
                try:
                    found[name] = code, RunResult.model_validate_json(text)
                except ValidationError as error:
                    raise StoreError(
                        f"{self.file}: the result of run {name} cannot be read; remove that row"
                    ) from error
        return found

    def add(self, result: RunResult, *, code: str) -> None:
        """Keep a result, then remove the checkpoint it came from."""
        text = json.dumps(result.model_dump(mode="json"), allow_nan=False)
        with self._open() as held:
            row = (result.id, code, datetime.now(UTC).isoformat(timespec="seconds"), text)
            held.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", row)
        (self.checkpoints / f"{result.id}.safetensors").unlink(missing_ok=True)

    def laws(self, *, code: str) -> dict[str, tuple[str, ...]]:
        """For each cell, the laws this code proved of its model."""
        with self._open() as held:
            found = held.execute("SELECT cell, laws FROM proofs WHERE code = ?", (code,))
            return {cell: tuple(json.loads(text)) for cell, text in found}

    def add_laws(self, cell: str, laws: tuple[str, ...], *, code: str) -> None:
        """Keep what was proved."""
        with self._open() as held:
            held.execute("INSERT OR REPLACE INTO proofs VALUES (?, ?, ?)", (cell, code, json.dumps(laws)))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            held = sqlite3.connect(self.file, timeout=60)
            try:
                held.execute("PRAGMA synchronous = FULL")  # what is said to be stored outlives a power cut
                with held:
                    yield held
            finally:
                held.close()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.file}: {error}; free the disk, or move the file away and start anew") from error
