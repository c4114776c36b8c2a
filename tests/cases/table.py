"""Small modules after public reports, and the result of the plain command for each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "modules"
TABLE = Path(__file__).parent / "cases.toml"


@dataclass(frozen=True)
class Case:
    """A subject, how it is audited, and the result.

    Attributes:
        file: The file in `modules` without its suffix.
        name: The function in it.
        kind: As after `--as`; empty for none.
        law: As after `--law`; empty for all laws.
        fails: A law that fails; empty if the command ends with exit code 0.
        line: A part of the line that the failure names.
        mode: As after `--mode`.

    """

    file: str
    name: str
    kind: str = ""
    law: str = ""
    fails: str = ""
    line: str = ""
    mode: str = "eval"

    @property
    def spec(self) -> str:
        """The subject as on the command line."""
        return f"{MODULES / self.file}.py:{self.name}"

    @property
    def title(self) -> str:
        """The case in a few words."""
        return " ".join(filter(None, (f"{self.file}:{self.name}", self.kind, self.law, self.mode)))


CASES = tuple(Case(**case) for case in tomllib.loads(TABLE.read_text(encoding="utf-8"))["case"])
