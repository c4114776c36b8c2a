"""Two far positions that follow each other."""

import torch

from orderproof.conventions.positions.function import PositionTable
from orderproof.conventions.question import Question

FAR = 1_000_000


def _ask(table: PositionTable) -> str:
    near = table.look_up(torch.tensor([0, 1])).detach().double()
    far = table.look_up(torch.tensor([FAR, FAR + 1])).detach().double()
    if bool(far.isnan().any()):
        return "NaN"
    ratio = float((far[1] - far[0]).norm() / (near[1] - near[0]).norm())
    return "as far as positions 0 and 1" if abs(ratio - 1) < 0.05 else f"{ratio:.2g} times as far as positions 0 and 1"


QUESTION = Question(
    "far_apart", "positions", "How far are the vectors of positions 1,000,000 and 1,000,001?",
    "Angles in a narrow dtype give far neighbours one vector, or vectors that say nothing of their order.",
    _ask,
)  # fmt: skip
