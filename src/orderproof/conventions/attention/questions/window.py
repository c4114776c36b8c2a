"""The number of keys that a window of 2 shows."""

from typing import Any

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.question import OTHER, REFUSED, Question
from orderproof.models.own_errors import raise_own_error

TOKENS, PLACE = 8, 4  # the query is in the middle


def _ask(function: AttentionFunction) -> str:
    answers = [_seen(function, sided=False)]
    if "causal" in function.takes:
        answers = [f"{_seen(function, sided=True)} (causal)", f"{answers[0]} (both sides)"]
    return REFUSED if all(each.startswith(REFUSED) for each in answers) else "; ".join(answers)


def _seen(function: AttentionFunction, *, sided: bool) -> str:
    """The keys that a window of 2 shows, or a pair of 2 before and 2 after; `sided`: with a causal flag, none after."""
    options: dict[str, Any] = {"causal": True} if sided else {}
    for window in (2, (2, 0 if sided else 2)):
        try:
            weights = function.weights(TOKENS, TOKENS, window=window, **options)[0, 0, PLACE]
            break
        except Exception as error:  # noqa: BLE001 - the function: it may take a pair of numbers, or one side only
            raise_own_error(error)
    else:
        return REFUSED
    seen = (weights > 0).nonzero().flatten().tolist()
    if not seen or seen != list(range(seen[0], seen[-1] + 1)) or not seen[0] <= PLACE <= seen[-1]:
        return OTHER
    if len(seen) == (PLACE + 1 if sided else TOKENS):
        return "ignored"
    return f"itself, {PLACE - seen[0]} before and {seen[-1] - PLACE} after"


QUESTION = Question(
    "window", "attention", "Which keys does a window of 2 show to a query in the middle?",
    "A window counted with or without the token itself is one key too wide or too narrow, which no short test shows.",
    _ask, frozenset({"window"}),
)  # fmt: skip
