"""How far each claim about the modules of this folder is decided, and the page of counts."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from orderproof import audit
from tests.theorems.idioms.levels import worst_level
from tests.theorems.unseen.claims import WIDTH, Written

TIMEOUT = 120.0  # [s] for each law, on a machine that may be busy


@dataclass(frozen=True)
class Verdict:
    """What was decided about one law of one module."""

    file: str
    module: str
    law: str
    holds: bool
    level: str  # theorem, length, undecided or refuted
    reason: str

    @property
    def name(self) -> str:
        """The file and the module."""
        return f"{self.file}: {self.module}"

    @property
    def best_level(self) -> str:
        """The level at which nothing is left to decide."""
        return best_level(holds=self.holds)

    @property
    def best(self) -> bool:
        """Nothing is left to decide."""
        return self.level == self.best_level

    @property
    def wrong(self) -> bool:
        """The law was decided against the truth."""
        return self.level == "refuted" if self.holds else self.level in ("theorem", "length")


def best_level(*, holds: bool) -> str:
    """The level of a claim of which nothing is left to decide."""
    return "theorem" if holds else "refuted"


def all_written() -> dict[str, Written]:
    """The modules of every file, by `file: name`."""
    files = sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if m.name != "__main__")
    found = {name: getattr(importlib.import_module(f"tests.theorems.unseen.{name}"), "UNSEEN", {}) for name in files}
    return {f"{file}: {name}": one for file, modules in found.items() for name, one in modules.items()}


def verdicts(wanted: str, again: Collection[str] | None = None) -> Iterator[Verdict]:
    """The verdicts on the modules whose name contains a text; claims that are not among `again` count as decided."""
    for name, one in all_written().items():
        if wanted in name:
            for law, holds in one.truth.items():
                is_open = again is None or f"{name} {law}" in again
                level, reason = decided(one, law) if is_open else (best_level(holds=holds), "")
                yield Verdict(*name.split(": "), law, holds, level, reason)


def decided(one: Written, law: str) -> tuple[str, str]:
    """`theorem`, `length`, `undecided` or `refuted`, and the reason why it is no theorem."""
    torch.manual_seed(0)
    module, x = one.kind().eval(), torch.randn(2, 7, WIDTH)
    mask = torch.ones(2, 7, dtype=torch.long)
    options = {"inputs": {"x": x, "mask": mask}, "roles": {"mask": "mask"}} if one.masked else {"inputs": x}
    report = audit(module, laws=[law], timeout=TIMEOUT, **options)
    for note in () if one.right else report.notes:  # of a proof for pads on one side; the claim is about both
        if "it reads pads" in note:
            return "refuted", note
        if "it is not proved to ignore pads" in note:
            return "undecided", note
    return worst_level(report)
