"""From what a user types to a subject."""

from __future__ import annotations

import re
from pathlib import Path

from orderproof.errors import CheckpointError, UsageError
from orderproof.subjects import architectures, checkpoints, hub, python_objects
from orderproof.subjects.subject import Subject

FORMS = "a checkpoint folder, a hub id, arch:NAME, file.py:name or package.module:name"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def load(
    spec: str,
    *,
    tiny: bool = False,
    attention: str | None = None,
    seed: int = 0,
    allow_network: bool = False,
) -> Subject:
    """Load a checkpoint folder, a hub id, `arch:NAME?key=value`, `file.py:name` or `package.module:name`."""
    if not spec:
        raise UsageError(f"a subject is {FORMS}; got nothing")
    if attention not in (None, "sdpa", "eager"):
        raise UsageError(f"attention must be 'sdpa' or 'eager'; got {attention!r}")
    if spec.startswith(architectures.PREFIX):
        return architectures.load_architecture(spec, tiny=tiny, attention=attention, seed=seed)
    if tiny:
        raise UsageError(f"--tiny shrinks an architecture, written arch:NAME; got {spec}")
    path = Path(spec).expanduser()
    if path.exists():
        return checkpoints.load_checkpoint(path, attention=attention)
    if python_objects.is_python_name(spec):
        if attention is not None:
            raise UsageError(f"attention can be chosen for transformers models only; got {spec}")
        return python_objects.load_object(spec)
    if _HUB_ID.fullmatch(spec) and path.suffix.lower() not in checkpoints.SUFFIXES:
        return hub.load_from_hub(spec, attention=attention, allow_network=allow_network)
    raise CheckpointError(f"{spec}: no such folder; a subject is {FORMS}")
