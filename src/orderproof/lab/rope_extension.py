"""Longer rows than in training for a trained RoPE: frequency scaling without further training.

    factor = tokens of the row / tokens of the longest training row

The schedule is built with that factor for each row length, as is usual when the length of the text is known in advance.
The schedules name their sources.
"""

from __future__ import annotations

from collections.abc import Callable

from orderproof.blocks import Transformer
from orderproof.encodings import Rotary, Schedule
from orderproof.encodings.schedules import LinearScaling, Llama3, NTKAware, Yarn

ROPE_EXTENSIONS: dict[str, Callable[[float, int], Schedule]] = {
    "linear": lambda factor, trained: LinearScaling(factor),
    "llama3": lambda factor, trained: Llama3(factor, original=trained),
    "ntk_aware": lambda factor, trained: NTKAware(factor),
    "yarn": lambda factor, trained: Yarn(factor, original=trained),
}
"""For each value of `RunConfig.stretch`, the schedule from the factor and the tokens of the longest training row."""


def extend_rope(model: Transformer, name: str | None, *, tokens: int, trained: int) -> None:
    """Set the schedule for rows of ``tokens`` tokens in a model with RoPE; within the trained length, remove it."""
    if name is None:
        return
    schedule = ROPE_EXTENSIONS[name](tokens / trained, trained) if tokens > trained else None
    model.encoding = Rotary(model.width // model.heads, schedule=schedule)
