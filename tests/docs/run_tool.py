"""Run a script of tools/ as a user does, but in this process, which has torch imported."""

from __future__ import annotations

import contextlib
import io
import runpy
import subprocess
import sys
from unittest import mock

from tests.docs.code_blocks import ROOT


def run_tool(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `python tools/NAME ARGUMENTS` in the repository root."""
    command = [str(ROOT / "tools" / name), *map(str, arguments)]
    shown, errors, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(ROOT), contextlib.redirect_stdout(shown), contextlib.redirect_stderr(errors),
        mock.patch.object(sys, "argv", command), mock.patch.object(sys, "path", [str(ROOT / "tools"), *sys.path]),
    ):  # fmt: skip
        try:
            runpy.run_path(command[0], run_name="__main__")
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
            if isinstance(left.code, str):
                errors.write(f"{left.code}\n")
    return subprocess.CompletedProcess(command, code, shown.getvalue(), errors.getvalue())
