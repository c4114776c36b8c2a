"""reverse: write the string backwards.

    x_1 ... x_n  SEP  x_n ... x_1  END

`orderproof.lab.transcription_question` has the protocol and the ceiling. Unlike in `copy`, the distance to the letter
to be written is not constant.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from orderproof.lab.transcription_question import TranscriptionQuestion


class Reverse(TranscriptionQuestion):
    """The reversed string."""

    name: ClassVar[str] = "reverse"
    statement: ClassVar[str] = "Write the string backwards, letter by letter, then stop."

    def target_string(self, string: torch.Tensor) -> torch.Tensor:
        return string.flip(1)


QUESTION = Reverse
