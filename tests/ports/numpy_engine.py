"""The numpy engine of the tests as an engine with an environment: this interpreter, and a difference by its name."""

from __future__ import annotations

import sys
from pathlib import Path

from orderproof.ports.engines.environment_engine import EnvironmentEngine
from orderproof.ports.environments.install import Requirements

SIDE = Path(__file__).with_name("numpy_side.py")


def numpy_engine(place: Path, difference: str = "", *, name: str = "numpy", side: Path = SIDE) -> EnvironmentEngine:
    """The engine; all that share a folder share a process."""
    file = place / "difference.txt"
    file.write_text(difference, encoding="utf-8")
    return EnvironmentEngine(
        name=name, title="an engine in numpy", distribution="numpy", side=str(side), interpreter=sys.executable,
        abilities=frozenset({"prefill", "chunks", "batch", "greedy", "prefix", "cached_prompt", "preemption"}),
        variables={"DIFFERENCE_FILE": str(file)}, requirements=Requirements("numpy", "2.4.6"),
    )  # fmt: skip
