"""reverse: write the string backwards.

    x_1 ... x_n  SEP  x_n ... x_1  END          the argument and the ceiling are in `orderproof.lab.transcription`

The last letter read is the first to be written: unlike in `copy`, what comes next is not always as far back.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from orderproof.lab.transcription import TranscriptionQuestion


class Reverse(TranscriptionQuestion):
    """The string from its end."""

    name: ClassVar[str] = "reverse"
    statement: ClassVar[str] = "Write the string backwards, letter by letter, and stop."

    def written(self, string: torch.Tensor) -> torch.Tensor:
        return string.flip(1)


QUESTION = Reverse
