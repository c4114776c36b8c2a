"""All laws, found by listing the folders of this package: each file defines one law in a variable `LAW`."""

from __future__ import annotations

from functools import cache

from orderproof import registry
from orderproof.errors import UsageError
from orderproof.laws.measured.measured_law import MeasuredLaw
from orderproof.laws.ports.port_law import PortLaw
from orderproof.laws.proved.proved_law import ProvedLaw
from orderproof.laws.training.training_law import TrainingLaw

AnyLaw = ProvedLaw | MeasuredLaw | PortLaw | TrainingLaw


@cache
def proved_laws() -> tuple[ProvedLaw, ...]:
    """The laws that are proved on a graph, in the order of their codes."""
    found = registry.discover("orderproof.laws.proved", "LAW", ProvedLaw)  # type: ignore[type-abstract]
    return tuple(sorted(found, key=lambda law: law.code))


@cache
def measured_laws() -> tuple[MeasuredLaw, ...]:
    """The laws that are measured, in the order of their codes."""
    found = registry.discover("orderproof.laws.measured", "LAW", MeasuredLaw)  # type: ignore[type-abstract]
    return tuple(sorted(found, key=lambda law: law.code))


@cache
def port_laws() -> tuple[PortLaw, ...]:
    """The laws that compare an engine with the reference, in the order of their codes."""
    found = registry.discover("orderproof.laws.ports", "LAW", PortLaw)  # type: ignore[type-abstract]
    return tuple(sorted(found, key=lambda law: law.code))


@cache
def training_laws() -> tuple[TrainingLaw, ...]:
    """The laws of training steps, in the order of their codes."""
    found = registry.discover("orderproof.laws.training", "LAW", TrainingLaw)  # type: ignore[type-abstract]
    return tuple(sorted(found, key=lambda law: law.code))


def find_law(name: str) -> AnyLaw:
    """The law with this name or code. Raises `UsageError`."""
    laws: list[AnyLaw] = [*proved_laws(), *measured_laws(), *port_laws(), *training_laws()]
    return registry.lookup_by_code(name, laws, "a law")


def find_model_law(name: str) -> ProvedLaw | MeasuredLaw:
    """The law of one model with this name or code, proved or measured. Raises `UsageError`."""
    law = find_law(name)
    if isinstance(law, PortLaw):
        raise UsageError(f"law {law.name} compares the model with an engine: expected --against ENGINE with it")
    if isinstance(law, TrainingLaw):
        raise UsageError(f"law {law.name} is one of a training step: expected orderproof training file.py:step")
    return law


def find_port_law(name: str) -> PortLaw:
    """The law of ports with this name or code. Raises `UsageError`."""
    return registry.lookup_by_code(name, port_laws(), "a law of ports")


def find_training_law(name: str) -> TrainingLaw:
    """The law of training steps with this name or code. Raises `UsageError`."""
    return registry.lookup_by_code(name, training_laws(), "a law of training steps")


def find_proved_law(name: str) -> ProvedLaw:
    """The proved law with this name or code. Raises `UsageError`."""
    return registry.lookup_by_code(name, proved_laws(), "a proved law")


def entry_map_law() -> ProvedLaw:
    """The law whose breaks are the entry map: the places where order enters a model."""
    return next(law for law in proved_laws() if law.maps_entries)
