"""Run a script of tools/ as a user does."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.code_blocks import ROOT


def run_tool(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `python tools/NAME ARGUMENTS` in the repository root."""
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / name), *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
