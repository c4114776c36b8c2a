"""Forks of the reading of `config.json` of each installed engine: one key has another value when the engine reads it.

    python -m tests.ports.config_forks [ENGINE ...]     print and write docs/evidence/ports/forks.md

The engine itself is the library: it computes what its own reader would with one mistake. The audit knows nothing of it.
Outcomes are kept in `forks.json` in the folder of the page: an interrupted run continues, and runs an engine of another
version again. Without names all engines run; one that is not installed is left out with a line.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from orderproof import audit
from orderproof.atlas.counts import code_span
from orderproof.errors import UsageError
from orderproof.ports.engines.engine import InferenceEngine
from orderproof.ports.engines.registry import find_engine
from orderproof.records.audit import Finding
from orderproof.report.file_output import write_file
from tests.ports.config_mistakes import FORKS, Edit
from tests.ports.forks_page import BY_ITSELF, page, planted_in_tests

PAGE = Path(__file__).parents[2] / "docs/evidence/ports/forks.md"
STORE = PAGE.with_suffix(".json")
ENGINES = (
    "vllm", "onnxruntime-genai", "openvino", "mlx", "transformer-lens", "keras-hub", "curated-transformers",
    "xllamacpp", "mistralrs", "ctranslate2", "mlx-vlm",
)  # fmt: skip


def forked(engine: InferenceEngine, edit: Edit) -> InferenceEngine:
    """The engine, which reads the changed configuration."""

    class Forked(type(engine)):  # type: ignore[misc]
        def load(self, folder: Path) -> Any:
            return super().load(_edited(folder, edit))

        def open_process(self, request: Any) -> Any:
            return super().open_process(replace(request, folder=_edited(request.folder, edit)))

    return Forked(**{each.name: getattr(engine, each.name) for each in fields(engine)})


def _edited(folder: Path, edit: Edit) -> Path:
    """A folder with the files of this one, and the changed configuration."""
    place = Path(tempfile.mkdtemp(dir=folder))
    for file in folder.iterdir():
        if file.is_file() and file.name != "config.json":
            os.link(file, place / file.name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    edit(config)
    (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return place


def finding(engine: InferenceEngine, subject: str, law: str) -> Finding:
    """The finding of one law."""
    return audit(subject, against=engine, laws=[law]).findings[0]


@cache
def own_finding(engine: str, subject: str, law: str) -> Finding:
    """The finding on the engine without a fork."""
    return finding(find_engine(engine), subject, law)


def named_causes(found: Finding) -> str:
    """The settings that explain a difference, and their values."""
    causes = [] if found.port is None else found.port.causes
    return "; ".join(f"{code_span(each.setting)} is {each.assumed}" for each in causes) or "not explained"


def outcome(engine: str, name: str) -> str:
    """What an audit says of one fork in one engine."""
    fork = FORKS[name]
    own = own_finding(engine, fork.subject, fork.law)
    if own.verdict == "refuted":
        return BY_ITSELF + named_causes(own)
    if own.verdict != "held":
        return "not compared"
    found = finding(forked(find_engine(engine), fork.instead.get(engine, fork.edit)), fork.subject, fork.law)
    if found.verdict != "refuted":
        return "not read" if found.verdict == "held" else "refused"
    causes = [] if found.port is None else [(each.setting, each.assumed) for each in found.port.causes]
    named = found.port is not None and found.port.explained and causes == [(fork.setting, fork.assumed)]
    return "named" if named else f"found: {found.reason[:120]}"


Store = dict[str, dict[str, Any]]  # by engine: its version, and its outcomes by fork


def stored() -> Store:
    """What earlier runs found."""
    return dict(json.loads(STORE.read_text(encoding="utf-8"))) if STORE.exists() else {}


def run(names: Sequence[str], kept: Store) -> Iterator[str]:
    """Add the outcomes that are missing; a line for each, and for each engine that is not installed."""
    for engine in map(find_engine, names):
        if not engine.is_installed:
            yield f"{engine.name}: not installed; {engine.how_to_install}"
            continue
        if kept.get(engine.name, {}).get("version") != engine.version:
            kept[engine.name] = {"version": engine.version, "outcomes": {}}
        outcomes = kept[engine.name]["outcomes"]
        for fork in FORKS:
            if fork not in outcomes:
                outcomes[fork] = outcome(engine.name, fork)
                yield f"{engine.name}, {fork}: {outcomes[fork]}"


def page_of(kept: Store) -> str:
    """The page of all outcomes."""
    order = sorted(kept, key=ENGINES.index)
    outcomes = {name: kept[name]["outcomes"] for name in order}
    return page(outcomes, {name: kept[name]["version"] for name in order}, planted_in_tests())


def main(names: Sequence[str]) -> None:
    """Run each fork in each engine that is installed, and print and write the page."""
    kept = stored()
    for line in run(names or ENGINES, kept):
        sys.stderr.write(f"{line}\n")
        write_file(json.dumps(kept, indent=1) + "\n", STORE)
    write_file(page_of(kept), PAGE)
    sys.stdout.write(page_of(kept))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UsageError as error:
        sys.exit(f"config_forks: {error}")
