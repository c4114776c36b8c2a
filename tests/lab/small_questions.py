"""For each question settings and lengths small enough to look at every row.

Those of a new question are in a file of its own, `tests/lab/questions/NAME.py`, in a variable `SMALL`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from orderproof.lab.question import Question
from orderproof.lab.registry import make_question

Small = tuple[dict[str, Any], tuple[int, ...]]

SMALL: dict[str, tuple[Small, ...]] = {
    "bucket_sort": (({}, (1, 2, 4)), ({"letters": 3}, (3, 6)), ({"letters": 2}, (5,))),
    "copy": (({"letters": 2}, (1, 2, 3, 4)), ({"letters": 3}, (2, 3)), ({"letters": 3, "same": True}, (1, 3))),
    "cycle_navigation": (({}, (1, 2, 5)),),
    "duplicate_string": (({}, (1, 2, 3, 6)), ({"letters": 3}, (4,))),
    "even_pairs": (({}, (1, 2, 3, 4, 7)),),
    "extrapolate": (({}, (1, 2, 3, 8)), ({"noise": 0.35}, (2, 9))),
    "flip_flop": (({}, (2, 3, 5)), ({"ignored": 0.2}, (3, 4)), ({"ignored": 0.0}, (5,))),
    "missing_duplicate": (({}, (1, 2, 5)),),
    "odds_first": (({}, (1, 2, 3, 7)), ({"letters": 3}, (4,))),
    "parity": (({}, (1, 2, 5)),),
    "passkey": (
        ({"digits": 2, "size": 2, "phrase": 2}, (1, 3)),
        ({"digits": 2, "size": 3, "phrase": 1}, (2,)),
        ({"digits": 3, "size": 2, "phrase": 3}, (1,)),
    ),
    "reverse": (({"letters": 2}, (1, 2, 3, 4)), ({"letters": 3}, (2, 3))),
    "reverse_string": (({}, (1, 2, 3, 8)), ({"letters": 4}, (4,))),
    "who_did_what": (({"nouns": 3, "verbs": 2}, (6,)), ({}, (6,))),
}

_folder = importlib.import_module("tests.lab.questions")
for _file in pkgutil.iter_modules(_folder.__path__):
    if not _file.name.startswith("test_"):
        SMALL[_file.name] = importlib.import_module(f"{_folder.__name__}.{_file.name}").SMALL


def small(name: str) -> list[tuple[Question, int]]:
    """The small questions of this name and their lengths."""
    return [(make_question(name, settings), length) for settings, lengths in SMALL[name] for length in lengths]
