"""Finished runs in one SQLite file: append-only, shared by processes (write-ahead log).

The folder holds `results.sqlite` and, in `checkpoints/`, one file for each unfinished run. A result is written in one
transaction, after which its checkpoint is deleted. If two processes finish the same run, the first result stays.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from orderproof.errors import StoreError
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import config_digest

SCHEMA_VERSION = 1
LOCK_TIMEOUT = 60  # [s] for a lock of another process
CORRUPT_FILE_HINT = "move the file away, then restore a copy or start again"
TABLES = (
    "CREATE TABLE runs (id TEXT PRIMARY KEY, code TEXT NOT NULL, finished TEXT NOT NULL, result TEXT NOT NULL)",
    "CREATE TABLE proofs (cell TEXT, code TEXT, laws TEXT NOT NULL, PRIMARY KEY (cell, code))",
)


class ResultStore:
    """The results in one folder. Raises `StoreError` if the file cannot be read or written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "results.sqlite"
        self.checkpoints = folder / "checkpoints"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot create the folder {str(folder)!r}: {error.strerror}; pass another --store"
            ) from error
        with self._connect() as connection:
            connection.execute("BEGIN")  # the version and the tables of one moment, while another process creates them
            has_schema = self._has_schema(connection)
            connection.execute("COMMIT")
            if not has_schema:
                _use_write_ahead_log(connection)
                connection.execute("BEGIN IMMEDIATE")  # one of several processes creates the tables, in one transaction
                if not self._has_schema(connection):
                    for table in TABLES:
                        connection.execute(table)
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _has_schema(self, connection: sqlite3.Connection) -> bool:
        """True if the file holds our tables; False if it is empty. Raises `StoreError` for any other content."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        if version == SCHEMA_VERSION and "runs" in tables:
            return True
        if version == 0 and not tables:
            return False
        content = f"schema {version}" if version else "tables of another program"
        raise StoreError(f"{self.file}: expected schema {SCHEMA_VERSION}, got {content}; pass another --store")

    def results(self) -> dict[str, tuple[str, RunResult]]:
        """Every finished run by its id: the version of the code, and the result."""
        results = {}
        with self._connect() as connection:
            for run_id, code, text in connection.execute("SELECT id, code, result FROM runs ORDER BY id"):
                try:
                    results[run_id] = code, RunResult.model_validate_json(text)
                except ValidationError as error:
                    raise StoreError(
                        f"{self.file}: the result of run {run_id} cannot be read; {CORRUPT_FILE_HINT}"
                    ) from error
                if run_id != config_digest(results[run_id][1].config):
                    raise StoreError(f"{self.file}: the result of run {run_id} is of another run; {CORRUPT_FILE_HINT}")
        return results

    def add(self, result: RunResult, *, code: str) -> None:
        """Store a result, then delete the checkpoint of its run."""
        text = json.dumps(result.model_dump(mode="json"), allow_nan=False)
        with self._connect() as connection:
            row = (result.id, code, datetime.now(UTC).isoformat(timespec="seconds"), text)
            connection.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", row)
        self.delete_checkpoint(result.id)

    def delete_checkpoint(self, run_id: str) -> None:
        """Delete the checkpoint of a stored run, which an interruption during `add` can leave."""
        for file in self.checkpoints.glob(f"*{run_id}.safetensors*"):  # and the partial file of a killed worker
            file.unlink(missing_ok=True)

    def laws(self, *, code: str) -> dict[str, tuple[str, ...]]:
        """For each cell id, the names of the laws that this code proved of its model."""
        with self._connect() as connection:
            rows = connection.execute("SELECT cell, laws FROM proofs WHERE code = ?", (code,))
            return {cell_id: tuple(json.loads(text)) for cell_id, text in rows}

    def add_proved_laws(self, cell_id: str, laws: tuple[str, ...], *, code: str) -> None:
        """Store the laws proved of a cell."""
        with self._connect() as connection:
            connection.execute("INSERT OR REPLACE INTO proofs VALUES (?, ?, ?)", (cell_id, code, json.dumps(laws)))

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.file, timeout=LOCK_TIMEOUT)
            try:
                connection.execute("PRAGMA synchronous = FULL")  # a stored result survives a power failure
                with connection:
                    yield connection
            finally:
                connection.close()
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self.file}: {error}; check its permissions and the free space on the disk") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.file}: {error}; {CORRUPT_FILE_HINT}") from error


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Choose the journal; SQLite does not wait for a lock in this statement while other processes choose it too."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
