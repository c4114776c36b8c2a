"""The position after the end of a table of angles."""

import torch

from orderproof.conventions.question import Question, same
from orderproof.conventions.rotation.function import WIDTH, RotaryFunction

LENGTH = 4  # positions of the table


def _ask(function: RotaryFunction) -> str:
    x = torch.ones(1, 1, 2, WIDTH)
    found = function.rotate(x, torch.tensor([0, LENGTH]), table=LENGTH)[0, 0, 1].double()
    if bool(found.isnan().any()):
        return "NaN"
    places = {"as position 0": 0, "as the last position": LENGTH - 1, "as computed": LENGTH}
    for name, place in places.items():
        if same(found, function.rotate(x, torch.tensor([0, place]))[0, 0, 1].double()):
            return name
    return "other numbers"


QUESTION = Question(
    "table_end", "rotation", "What does the first position after the end of a table of angles give?",
    "Past the end, an error is the better case: numbers of another position, or of no position, go unseen.",
    _ask, frozenset({"table"}),
)  # fmt: skip
