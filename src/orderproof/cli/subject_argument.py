"""From the arguments of a command to a subject."""

from __future__ import annotations

from orderproof.errors import UsageError
from orderproof.models import Subject, bundled, load


def load_subject(
    spec: str | None, *, tiny: bool, attention: str | None, seed: int, token_axis: int | None, allow_network: bool
) -> Subject:
    """The named subject, or the bundled model. Raises `UsageError` and `SubjectError`."""
    if spec is None:
        if tiny:
            raise UsageError("expected an architecture, arch:NAME, with --tiny; the bundled model has one size")
        return bundled(attention=attention)
    if token_axis is None:
        return load(spec, tiny=tiny, attention=attention, seed=seed, allow_network=allow_network)
    from orderproof.models.python_objects import load_object

    return load_object(spec, token_axis=token_axis)
