"""odds_first: the letters at odd positions, then those at even positions.

    s_1 ... s_n  e ... e          targets at the e: s_1 s_3 s_5 ... s_2 s_4 s_6 ...

The answer is a permutation of the string, so the ceiling is the share of the most frequent letter
(`orderproof.lab.mode_share`).
"""

from __future__ import annotations

from typing import ClassVar

import torch

from orderproof.lab.string_question import RearrangementQuestion


class OddsFirst(RearrangementQuestion):
    """Every second letter, then the others."""

    name: ClassVar[str] = "odds_first"
    statement: ClassVar[str] = "What are the letters at odd positions, followed by those at even positions?"

    def target_letters(self, chosen: torch.Tensor) -> torch.Tensor:
        return torch.cat([chosen[:, 0::2], chosen[:, 1::2]], dim=1)


QUESTION = OddsFirst
