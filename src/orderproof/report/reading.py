"""Reading back the JSON files that this package wrote, and saying in one line what is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from orderproof.errors import UsageError
from orderproof.record import SCHEMA, Report

LARGEST = 50_000_000  # [bytes] of a file that is read


def read_report(path: str | Path) -> Report:
    """A report from its JSON file. Raises `UsageError`."""
    text = text_of(path, "a report")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: expected a report as JSON, as orderproof audit --json writes it") from None
    if not isinstance(data, dict):
        raise UsageError(
            f"{path}: expected a report as JSON, as orderproof audit --json writes it; got a list or a value"
        )
    version = data.get("schema")
    if version != SCHEMA:
        got = "none" if version is None else repr(version)
        raise UsageError(f"{path}: expected a report of schema version {SCHEMA}, got {got}; audit again")
    try:
        return Report.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{path}: not a report of schema version {SCHEMA}: {problem_of(error)}") from None


def text_of(path: str | Path, what: str) -> str:
    """The text of a file. Raises `UsageError`."""
    file = Path(path).expanduser()
    try:
        if file.stat().st_size > LARGEST:
            raise UsageError(f"{path}: expected {what} of at most {LARGEST // 10**6} MB")
        return file.read_text(encoding="utf-8-sig")  # some systems put a mark of the byte order first
    except OSError as error:
        raise UsageError(f"{path}: {what} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: expected {what} as JSON in UTF-8, got other bytes") from None


def problem_of(error: ValidationError) -> str:
    """The first thing wrong, and where; a wrong schema version before all else."""
    found = error.errors(include_url=False)
    first = next((e for e in found if e["loc"][:1] == ("schema",)), found[0])
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
