"""The options of a measurement, which are checked before a model is loaded."""

from __future__ import annotations

from typing import get_args

from orderproof.errors import UsageError
from orderproof.records.sensitivity import Pooling

DEFAULT_SENTENCES = 100
MAX_SENTENCES = 1000


def check_options(pooling: str | None, limit: int) -> None:
    """Raises `UsageError` for an unknown pooling or a number of sentences out of range."""
    if pooling is not None and pooling not in get_args(Pooling):
        raise UsageError(f"expected --pooling {', '.join(get_args(Pooling))}; got {pooling!r}")
    if not 2 <= limit <= MAX_SENTENCES:
        raise UsageError(f"expected --limit from 2 to {MAX_SENTENCES} sentences; got {limit}")
