"""How far a law of a small module is decided."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from orderproof import audit
from orderproof.records.audit import Finding, Report
from tests.theorems.idioms.idiom import WIDTH, Idiom

LEVELS = ("theorem", "length", "undecided", "refuted")


def all_idioms() -> dict[str, Idiom]:
    """The idioms of every file, by `file: name`."""
    files = sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = {name: importlib.import_module(f"tests.theorems.idioms.{name}") for name in files if name != "__main__"}
    return {f"{file}: {name}": one for file, m in modules.items() for name, one in getattr(m, "IDIOMS", {}).items()}


def subjects(idiom: Idiom) -> Iterator[tuple[str, type[nn.Module]]]:
    """The modules of an idiom."""
    yield "good", idiom.good
    if idiom.bad is not None:
        yield "bad", idiom.bad


def decided(kind: type[nn.Module], idiom: Idiom) -> tuple[str, str]:
    """`theorem`, `length`, `undecided` or `refuted`, and the reason why it is no theorem."""
    torch.manual_seed(0)
    module, x = kind().eval(), torch.randn(2, 7, WIDTH)
    mask = torch.ones(2, 7, dtype=torch.long)
    options = {"inputs": {"x": x, "mask": mask}, "roles": {"mask": "mask"}} if idiom.masked else {"inputs": x}
    return worst_level(audit(module, laws=[idiom.law], **options))


def worst_level(report: Report) -> tuple[str, str]:
    """The worst level of the findings of a report, and its reason."""
    found = [_level(finding) for finding in report.findings if finding.verdict != "not_applicable"]
    return max(found, key=lambda one: LEVELS.index(one[0]))


def _level(finding: Finding) -> tuple[str, str]:
    if finding.verdict != "proved":
        return finding.verdict, "" if finding.verdict == "refuted" else finding.reason
    if finding.theorem is not None and finding.theorem.proved:
        return "theorem", ""
    return "length", "" if finding.theorem is None else finding.theorem.reason
