"""The inference engines, found by listing their folder."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from orderproof import registry
from orderproof.errors import UsageError
from orderproof.ports.engines.engine import InferenceEngine
from orderproof.ports.engines.subject_engine import names_a_subject, subject_engine


@cache
def engines() -> dict[str, InferenceEngine]:
    """All engines by name, in alphabetical order."""
    found = registry.discover("orderproof.ports.engines", "ENGINE", InferenceEngine)  # type: ignore[type-abstract]
    return {engine.name: engine for engine in sorted(found, key=lambda engine: engine.name)}


def find_engines(spec: str) -> tuple[InferenceEngine, ...]:
    """The engine of a text, or the two of ENGINE,ENGINE, which are compared with each other. Raises `UsageError`."""
    parts = spec.split(",")
    if len(parts) < 2 or not all(re.split("[:@]", part)[0] in engines() for part in parts[1:]):
        return (find_engine(spec),)  # its target may have a comma
    if len(parts) > 2:
        raise UsageError(f"expected one engine, or two as ENGINE,ENGINE; got {len(parts)} in {spec!r}")
    first, second = map(find_engine, parts)
    if not first.reads_checkpoint:
        raise UsageError(f"expected two engines that load a checkpoint; got {first.name}; compare it alone")
    if first == second:
        raise UsageError(f"expected two engines, or two versions as {first.name}@VERSION; got {first.name} twice")
    return first, second


def find_engine(spec: str) -> InferenceEngine:
    """The engine for NAME, NAME:TARGET, NAME@VERSION or NAME@VERSION:TARGET, installed or not; or a rewrite.

    Raises `UsageError` if it is unknown, or takes no target or no version.
    """
    name, _, target = spec.partition(":")
    name, _, version = name.partition("@")
    if name not in engines() and names_a_subject(spec):
        return subject_engine(spec)
    if name not in engines() and (path := Path(spec).expanduser()).exists():
        if path.is_dir():
            hint = f"a folder is the subject, or stands after the name of an engine that wrote it: 'mlx:{spec}'"
        else:
            hint = f"the name of an engine stands before its file: 'onnx:{spec}'"
        raise UsageError(f"expected an engine, one of {', '.join(engines())}; got {spec!r}; {hint}")
    engine = registry.lookup(name, engines(), "an engine")
    engine = engine.for_version(version) if version else engine
    return engine.for_target(target) if target or engine.needs_target else engine.or_another()
