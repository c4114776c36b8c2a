"""What schedules ask of their numbers."""

from __future__ import annotations

from orderproof.errors import EncodingError


def check_positive(owner: str, **numbers: object) -> None:
    """Refuse a number that is not above zero; each is named by its keyword."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise EncodingError(f"{owner}: {name} must be a number above 0, got {value!r}")


def check_factor(owner: str, factor: float) -> None:
    """Refuse a factor that would shorten the sequence."""
    check_positive(owner, factor=factor)
    if factor < 1:
        raise EncodingError(f"{owner}: factor must be 1 or more, it says how many times longer, got {factor!r}")
