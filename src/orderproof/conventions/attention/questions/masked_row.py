"""The output of a query whose keys are all hidden."""

import torch

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.attention.mask_reading import KEYS, hiding_mask, row_answer
from orderproof.conventions.question import REFUSED, Question, combined
from orderproof.models.own_errors import raise_own_error

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def _ask(function: AttentionFunction) -> str:
    visible = torch.ones(KEYS, KEYS, dtype=torch.bool)
    visible[1] = False
    mask, answers = hiding_mask(function, visible), {}
    for dtype in DTYPES:
        given = mask.to(dtype) if mask.is_floating_point() else mask
        for graded in (False, True) if "gradients" in function.takes else (False,):
            with torch.set_grad_enabled(graded):
                name = str(dtype).removeprefix("torch.") + " with gradients" * graded
                query = torch.zeros(KEYS, WIDTH, requires_grad=graded)
                try:
                    answers[name] = row_answer(function.masked_weights(given, dtype=dtype, query=query)[1])
                except Exception as error:  # noqa: BLE001 - the function: it may refuse one dtype, or gradients
                    raise_own_error(error)
                    answers[name] = REFUSED
    return combined(answers)


QUESTION = Question(
    "masked_row", "attention", "What does a query give whose keys are all hidden, in each dtype, with gradients?",
    "A row of pads is NaN in one library and harmless in another; a mean of hidden values leaks them.",
    _ask, frozenset({"mask"}),
)  # fmt: skip
