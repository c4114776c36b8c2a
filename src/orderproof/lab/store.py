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
from orderproof.lab.configuration import fingerprint
from orderproof.lab.result import RunResult

SCHEMA = 1
BROKEN = "move the file away, and put back a copy or start anew"
TABLES = (
    "CREATE TABLE runs (id TEXT PRIMARY KEY, code TEXT NOT NULL, finished TEXT NOT NULL, result TEXT NOT NULL)",
    "CREATE TABLE proofs (cell TEXT, code TEXT, laws TEXT NOT NULL, PRIMARY KEY (cell, code))",
)


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
            if not self._made(held):
                held.execute("PRAGMA journal_mode = WAL")
                held.execute("BEGIN IMMEDIATE")  # one of several processes makes it, whole or not at all
                if not self._made(held):
                    for table in TABLES:
                        held.execute(table)
                    held.execute(f"PRAGMA user_version = {SCHEMA}")

    def _made(self, held: sqlite3.Connection) -> bool:
        """Whether the file holds our table; if not, it is empty. Raises `StoreError` for a file of other things."""
        (version,) = held.execute("PRAGMA user_version").fetchone()
        tables = [name for (name,) in held.execute("SELECT name FROM sqlite_master")]
        if version == SCHEMA and "runs" in tables:
            return True
        if version == 0 and not tables:
            return False
        what = f"schema {version}" if version else "tables of something else"
        raise StoreError(f"{self.file} has {what}, this version reads schema {SCHEMA}; give another --store")

    def results(self) -> dict[str, tuple[str, RunResult]]:
        """Every finished run by its name: the code that made it, and what it found."""
        found = {}
        with self._open() as held:
            for name, code, text in held.execute("SELECT id, code, result FROM runs ORDER BY id"):
                try:
                    found[name] = code, RunResult.model_validate_json(text)
                except ValidationError as error:
                    raise StoreError(f"{self.file}: the result of run {name} cannot be read; {BROKEN}") from error
                if name != fingerprint(found[name][1].config):
                    raise StoreError(f"{self.file}: the result of run {name} is of another run; {BROKEN}")
        return found

    def add(self, result: RunResult, *, code: str) -> None:
        """Keep a result, then remove the checkpoint it came from."""
        text = json.dumps(result.model_dump(mode="json"), allow_nan=False)
        with self._open() as held:
            row = (result.id, code, datetime.now(UTC).isoformat(timespec="seconds"), text)
            held.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", row)
        for file in self.checkpoints.glob(f"*{result.id}.safetensors*"):  # with what a killed worker was writing
            file.unlink(missing_ok=True)

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
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"{self.file}: {error}; see that it can be read and written, and that there is room"
            ) from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.file}: {error}; {BROKEN}") from error
