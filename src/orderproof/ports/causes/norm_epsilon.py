"""The epsilon of norms that have one of their own, which no key of config.json states: at the value of another norm."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

ATTRIBUTES = ("variance_epsilon", "eps", "epsilon")


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    stated = {value for key, value in reference.config.to_dict().items() if key.endswith(("_eps", "epsilon"))}
    found = _epsilons(reference.model)
    for own in sorted({value for _, value in found} - stated):
        kinds = sorted({name for name, value in found if value == own})
        groups = [kinds, *([kind] for kind in kinds if len(kinds) > 1)]
        for group in groups:
            for other in sorted({value for _, value in found} - {own}):
                change = Change(prepare=partial(_set_epsilons, kinds=tuple(group), own=own, other=other))
                setting = f"epsilon of {', '.join(group)}"
                yield Candidate("norm or constant precision", setting, f"{own:g}", f"{other:g}", change)


def _epsilons(model: Any) -> list[tuple[str, float]]:
    """The kind of each norm, which is the last part of its name, and its epsilon."""
    values = [
        (name.rpartition(".")[2], getattr(part, attribute, None))
        for name, part in model.named_modules()
        for attribute in ATTRIBUTES
    ]
    return [(kind, value) for kind, value in values if isinstance(value, float)]


def _set_epsilons(model: Any, kinds: tuple[str, ...], own: float, other: float) -> None:
    for name, part in model.named_modules():
        for attribute in ATTRIBUTES if name.rpartition(".")[2] in kinds else ():
            if getattr(part, attribute, None) == own:
                setattr(part, attribute, other)


CAUSE = Cause("norm or constant precision", 101, _candidates)
