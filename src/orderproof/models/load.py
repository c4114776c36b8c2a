"""Load a subject from a specification, as on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orderproof.models import python_objects
from orderproof.models.hf import architectures, checkpoint, hub
from orderproof.models.subject import Subject
from orderproof.subject_spec import check_spec


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
    form = check_spec(spec, tiny=tiny, attention=attention, allow_network=allow_network)
    if form == "architecture":
        return architectures.load_architecture(spec, tiny=tiny, attention=attention, seed=seed, assume=assume)
    if form == "folder":
        return checkpoint.load_checkpoint(Path(spec).expanduser(), attention=attention, assume=assume)
    if form == "object":
        return python_objects.load_object(spec, assume=assume)
    return hub.load_from_hub(spec, attention=attention, allow_network=allow_network, assume=assume)
