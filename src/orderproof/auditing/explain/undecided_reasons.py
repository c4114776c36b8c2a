"""The reason of an undecided law in words that claim no dependence: no rule excludes one, and no run shows it."""

from __future__ import annotations

import re

_MAY_DEPEND = re.compile(r"(?P<what>.*?),? (?:comes to|may) depend on (?P<on>.*)")
ANYTHING = "anything"  # what an element depends on after an operator of which no rule says what it reads


def in_words_of_undecided(reason: str) -> str:
    """The reason with *no rule shows that token 0 does not read token 6* for *token 0 comes to depend on token 6*."""
    *place, text = reason.rpartition(": ")
    found = _MAY_DEPEND.fullmatch(text)
    if found is None:
        return reason
    what, on = found["what"], found["on"]
    words = f"no rule says what {what} reads" if on == ANYTHING else f"no rule shows that {what} does not read {on}"
    return "".join((*place, words))
