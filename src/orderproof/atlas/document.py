"""A finished atlas as one JSON document: the rows of a run, with date, machine and operator counts.

A file whose name ends with `.gz` is compressed. Fields with their default value are left out.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from orderproof.atlas.row import SCHEMA_VERSION, AtlasRow
from orderproof.errors import UsageError
from orderproof.records.document import Record
from orderproof.report.file_output import write_file

COMPRESSED_SUFFIX = ".gz"


class AtlasDocument(Record):
    """The rows of an atlas, sorted by name, and the circumstances of the run."""

    atlas: Literal[4] = SCHEMA_VERSION  # the schema version
    date: str  # of the last row, or as stated by the user
    machine: str
    requested: int  # number of architectures; larger than the number of rows while a run is incomplete
    operators: dict[str, int] = Field(default_factory=dict)  # operator -> architectures with it, descending
    rows: tuple[AtlasRow, ...] = ()

    def to_json(self) -> str:
        """The document as JSON, one row a line."""
        head = self.model_dump(mode="json", exclude={"rows"})
        lines = ",\n".join(row.to_json() for row in self.rows)
        return json.dumps(head)[:-1] + ', "rows": [\n' + lines + ("\n" if self.rows else "") + "]}\n"

    def write(self, target: str | Path) -> None:
        """Write the JSON, compressed where the name ends with `.gz`. Raises `UsageError`."""
        text = self.to_json()
        write_file(gzip.compress(text.encode(), mtime=0) if str(target).endswith(COMPRESSED_SUFFIX) else text, target)


def build_document(rows: Sequence[AtlasRow], *, requested: int, date: str, machine: str) -> AtlasDocument:
    """The document of these rows; their operator lists are replaced by one count per operator."""
    counts = Counter(name for row in rows for name in row.operators)
    return AtlasDocument(
        date=date,
        machine=machine,
        requested=requested,
        operators=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        rows=tuple(row.model_copy(update={"operators": ()}) for row in rows),
    )


def read_document(path: str | Path) -> AtlasDocument:
    """Read a document that `orderproof atlas --json` wrote. Raises `UsageError`."""
    file = Path(path).expanduser()
    try:
        data = file.read_bytes()
        return AtlasDocument.model_validate(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))
    except ValidationError as error:
        reason = (
            f"{error.error_count()} fields are missing, unknown or invalid; write it again with orderproof atlas --json"
        )
    except OSError as error:  # a damaged archive raises one as well
        reason = str(error.strerror or error)
    except (ValueError, EOFError, zlib.error) as error:
        reason = str(error)
    raise UsageError(f"{str(path)!r}: expected an atlas of schema {SCHEMA_VERSION}: {reason}")
