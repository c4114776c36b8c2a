"""A finished atlas of ports as one JSON document, compressed where the name of the file ends with `.gz`."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from orderproof.atlas.document import COMPRESSED_SUFFIX
from orderproof.atlas.ports.row import SCHEMA_VERSION, PortRow
from orderproof.errors import UsageError
from orderproof.records.document import Record
from orderproof.report.file_output import write_file


class PortsDocument(Record):
    """The rows of an atlas of ports, by engine, name and variant."""

    ports: Literal[1] = SCHEMA_VERSION  # the schema version
    date: str  # of the last row
    machine: str
    rows: tuple[PortRow, ...] = ()

    def to_json(self) -> str:
        """The document as JSON, one row a line."""
        head = self.model_dump(mode="json", exclude={"rows"})
        lines = ",\n".join(row.to_json() for row in self.rows)
        return json.dumps(head)[:-1] + ', "rows": [\n' + lines + ("\n" if self.rows else "") + "]}\n"

    def write(self, target: str | Path) -> None:
        """Write the JSON, compressed where the name ends with `.gz`. Raises `UsageError`."""
        text = self.to_json()
        write_file(gzip.compress(text.encode(), mtime=0) if str(target).endswith(COMPRESSED_SUFFIX) else text, target)


def build_document(rows: Sequence[PortRow], *, machine: str) -> PortsDocument:
    """The document of these rows."""
    order = sorted(rows, key=lambda row: (row.engine, row.name))  # the variants stay in their order
    date = max((row.finished_on for row in rows), default="no row yet")
    return PortsDocument(date=date, machine=machine, rows=tuple(order))


def read_document(path: str | Path) -> PortsDocument:
    """Read a document that `orderproof ports --json` wrote. Raises `UsageError`."""
    try:
        data = Path(path).expanduser().read_bytes()
        return PortsDocument.model_validate(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))
    except ValidationError as error:
        reason = f"{error.error_count()} fields are missing, unknown or invalid; write it again with --json"
    except OSError as error:  # a damaged archive raises one as well
        reason = str(error.strerror or error)
    except (ValueError, EOFError, zlib.error) as error:
        reason = str(error)
    raise UsageError(f"{str(path)!r}: expected an atlas of ports of schema {SCHEMA_VERSION}: {reason}")
