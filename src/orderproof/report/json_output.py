"""JSON: the report as a file, and data embedded in a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orderproof.records.audit import Report
from orderproof.report import file_output


def write_json(report: Report, target: str | Path) -> None:
    """Write the report (schema version 2) to a file in one step, or to standard output when the target is ``-``."""
    file_output.write_file(report.to_json() + "\n", target)


def script_safe_json(data: dict[str, Any]) -> str:
    """Compact JSON for a script element: ``<``, ``>`` and ``&`` are escaped, so that no text can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
