"""Load a subject from a specification, as on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orderproof.errors import CheckpointError, UsageError
from orderproof.models import python_objects
from orderproof.models.hf import architectures, checkpoint, hub
from orderproof.models.subject import Subject

SPEC_FORMS = "a checkpoint folder, a hub id, arch:NAME, file.py:name or package.module:name"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def load(
    spec: str,
    *,
    tiny: bool = False,
    attention: str | None = None,
    seed: int = 0,
    allow_network: bool = False,
    assume: Mapping[str, Any] | None = None,
) -> Subject:
    """Load a checkpoint folder, a hub id, `arch:NAME?key=value`, `file.py:name` or `package.module:name`.

    Args:
        spec: One of these forms.
        tiny: Build a tiny random model of an architecture on the CPU, not one of full size without weights.
        attention: "sdpa" or "eager"; by default the best backend of the model.
        seed: Of the random weights of a tiny model.
        allow_network: Download a hub id that is not in the local cache.
        assume: Values that replace inferred ones, by the names in `orderproof.models.hf.assumptions.ASSUMABLE`; see
            also `from_module`.

    Raises:
        SubjectError: The model is not found or cannot be loaded, built or called.
        UsageError: An argument does not exist or does not fit.

    """
    if not spec:
        raise UsageError(f"expected a subject, {SPEC_FORMS}; got an empty text")
    if attention not in (None, "sdpa", "eager"):
        raise UsageError(f"attention must be 'sdpa' or 'eager'; got {attention!r}")
    if spec.startswith(architectures.ARCH_PREFIX):
        return architectures.load_architecture(spec, tiny=tiny, attention=attention, seed=seed, assume=assume)
    if tiny:
        raise UsageError(f"--tiny shrinks an architecture, written arch:NAME; got {spec}")
    path = Path(spec).expanduser()
    if path.exists():
        return checkpoint.load_checkpoint(path, attention=attention, assume=assume)
    if python_objects.is_python_spec(spec):
        if attention is not None:
            raise UsageError(f"attention can be chosen for transformers models only; got {spec}")
        return python_objects.load_object(spec, assume=assume)
    if _HUB_ID.fullmatch(spec) and path.suffix.lower() not in checkpoint.CHECKPOINT_SUFFIXES:
        return hub.load_from_hub(spec, attention=attention, allow_network=allow_network, assume=assume)
    raise CheckpointError(f"{spec}: no such folder; a subject is {SPEC_FORMS}")
