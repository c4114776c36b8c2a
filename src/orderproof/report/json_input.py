"""Reading the JSON files of this package; an invalid file gives an error of one line."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from orderproof.errors import UsageError
from orderproof.records.audit import SCHEMA_VERSION, Report

MAX_FILE_BYTES = 50_000_000  # [bytes] of a file that is read


def read_report(path: str | Path) -> Report:
    """Read a report from its JSON file. Raises `UsageError`."""
    text = read_text_file(path, "a report")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: expected a report as JSON, as orderproof audit --json writes it") from None
    if not isinstance(data, dict):
        raise UsageError(
            f"{path}: expected a report as JSON, as orderproof audit --json writes it; got {type(data).__name__}"
        )
    version = data.get("schema")
    if version != SCHEMA_VERSION:
        got = "none" if version is None else repr(version)
        raise UsageError(f"{path}: expected a report of schema version {SCHEMA_VERSION}, got {got}; audit again")
    try:
        return Report.model_validate(data)
    except ValidationError as error:
        raise UsageError(
            f"{path}: not a report of schema version {SCHEMA_VERSION}: {first_validation_error(error)}"
        ) from None


def read_text_file(path: str | Path, what: str) -> str:
    """The text of a UTF-8 file of at most `MAX_FILE_BYTES`; `what` names it in errors. Raises `UsageError`."""
    file = Path(path).expanduser()
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path}: expected {what} of at most {MAX_FILE_BYTES // 10**6} MB")
        return file.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except OSError as error:
        raise UsageError(f"{path}: {what} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: expected {what} as JSON in UTF-8, got other bytes") from None


def first_validation_error(error: ValidationError) -> str:
    """The first problem and the field that has it; a wrong schema version before any other."""
    problems = error.errors(include_url=False)
    first = next((e for e in problems if e["loc"][:1] == ("schema",)), problems[0])
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
