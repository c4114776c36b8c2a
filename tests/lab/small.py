"""For each question settings and lengths small enough to look at every row."""

from __future__ import annotations

from typing import Any

from orderproof.lab.asking import make
from orderproof.lab.question import Question

Small = tuple[dict[str, Any], tuple[int, ...]]

SMALL: dict[str, tuple[Small, ...]] = {
    "copy": (({"letters": 2}, (1, 2, 3, 4)), ({"letters": 3}, (2, 3)), ({"letters": 3, "same": True}, (1, 3))),
    "even_pairs": (({}, (1, 2, 3, 4, 7)),),
    "extrapolate": (({}, (1, 2, 3, 8)), ({"noise": 0.35}, (2, 9))),
    "parity": (({}, (1, 2, 5)),),
    "reverse": (({"letters": 2}, (1, 2, 3, 4)), ({"letters": 3}, (2, 3))),
    "who_did_what": (({"nouns": 3, "verbs": 2}, (6,)), ({}, (6,))),
}


def small(name: str) -> list[tuple[Question, int]]:
    """The small questions of this name and their lengths."""
    return [(make(name, settings), length) for settings, lengths in SMALL[name] for length in lengths]
