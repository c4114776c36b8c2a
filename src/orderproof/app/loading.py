"""Reading the JSON files that a reader names, and saying in one line what is wrong with one."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from orderproof.errors import UsageError

LARGEST = 50_000_000  # [bytes] of a file that is read


def text_of(path: str | Path, what: str) -> str:
    """The text of a file. Raises `UsageError`."""
    file = Path(path).expanduser()
    try:
        if file.stat().st_size > LARGEST:
            raise UsageError(f"{path}: expected {what} of at most {LARGEST // 10**6} MB")
        return file.read_text(encoding="utf-8")
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
