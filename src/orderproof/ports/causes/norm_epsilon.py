"""The epsilon of some norms: at the value of another norm, or a usual one; that of all norms is in config.json."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.causes.precision import EPSILONS
from orderproof.ports.reference import Change, Reference

ATTRIBUTES = ("variance_epsilon", "eps", "epsilon")
OF_HEADS = ("k_layernorm", "k_norm", "key_layernorm", "q_layernorm", "q_norm", "query_layernorm")


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    stated = {value for key, value in reference.config.to_dict().items() if key.endswith(("_eps", "epsilon"))}
    found = _epsilons(reference.model)
    for own in sorted({value for _, value in found}):
        kinds = sorted({name for name, value in found if value == own})
        groups = [
            [] if own in stated else kinds,
            [kind for kind in kinds if kind in OF_HEADS],
            *([kind] for kind in kinds),
        ]
        for group in {tuple(group): group for group in groups if group}.values():
            for other in sorted({*(value for _, value in found), *EPSILONS} - {own}):
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
