"""Reading more than was trained, with a frequency schedule put into a trained RoPE: nothing is trained anew.

    factor = tokens of the row / tokens of the longest row trained

and the schedule is made for that factor, row length by row length, as one does who knows how long the text will be.
Sources stand with the schedules.
"""

from __future__ import annotations

from collections.abc import Callable

from orderproof.blocks import Transformer
from orderproof.encodings import Rotary
from orderproof.encodings._frequencies import Schedule
from orderproof.encodings.schedules import Linear, Llama3, NTKAware, Yarn

STRETCHES: dict[str, Callable[[float, int], Schedule]] = {
    "linear": lambda factor, trained: Linear(factor),
    "llama3": lambda factor, trained: Llama3(factor, original=trained),
    "ntk_aware": lambda factor, trained: NTKAware(factor),
    "yarn": lambda factor, trained: Yarn(factor, original=trained),
}


def stretch(model: Transformer, name: str | None, *, tokens: int, trained: int) -> None:
    """Let a model whose encoding is RoPE read rows of so many tokens; within the trained, as it is."""
    if name is None:
        return
    schedule = STRETCHES[name](tokens / trained, trained) if tokens > trained else None
    model.encoding = Rotary(model.width // model.heads, schedule=schedule)
