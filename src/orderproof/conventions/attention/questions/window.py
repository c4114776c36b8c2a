"""The number of keys that a window of 2 shows."""

from typing import Any

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.question import OTHER, Question

PLACE = 4  # of the query, in 8 tokens


def _ask(function: AttentionFunction) -> str:
    causal: dict[str, Any] = {"causal": True} if "causal" in function.takes else {}
    answers = []
    for name, options in {"causal": causal, "both sides": {}}.items():
        if name == "causal" and not causal:
            continue
        try:
            weights = function.weights(8, 8, window=2, **options)[0, 0, PLACE]
        except Exception:  # noqa: BLE001 - the user's function: it may take a pair of numbers
            weights = function.weights(8, 8, window=(2, 0 if options else 2), **options)[0, 0, PLACE]
        seen = (weights > 0).nonzero().flatten().tolist()
        if not seen or seen != list(range(seen[0], seen[-1] + 1)) or not seen[0] <= PLACE <= seen[-1]:
            answers.append(OTHER)
        else:
            answers.append(
                f"itself, {PLACE - seen[0]} before and {seen[-1] - PLACE} after" + f" ({name})" * bool(causal)
            )
    return "; ".join(answers)


QUESTION = Question(
    "window", "attention", "Which keys does a window of 2 show to a query in the middle?",
    "A window counted with or without the token itself is one key too wide or too narrow, which no short test shows.",
    _ask, frozenset({"window"}),
)  # fmt: skip
