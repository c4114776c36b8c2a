"""Weights of the chosen experts that a router divides by their sum: not divided, where no key of config.json states it.

w_e = s_e / sum of s over the chosen experts    s = sigmoid(logits) or softmax(logits)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

ScoreFunction = Callable[[Tensor], Tensor]
SCORES: dict[str, ScoreFunction] = {"sigmoid": torch.sigmoid, "softmax": partial(torch.softmax, dim=-1)}
TOLERANCE = 1e-3  # of the weights of a router, relative


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    for name, score in SCORES.items() if _routers(reference.model) else ():
        change = Change(prepare=partial(_do_not_divide, score=score))
        assumed = f"{name} scores as they are"
        yield Candidate("other", "weights of experts", "divided by their sum", assumed, change, likely=True)


def _routers(model: Any) -> list[Any]:
    """The modules that choose experts, by the name that transformers gives to their class."""
    return [part for part in model.modules() if type(part).__name__.endswith(("Router", "Gate"))]


def _do_not_divide(model: Any, score: ScoreFunction) -> None:
    for router in _routers(model):
        router.register_forward_hook(partial(_undivided, score))


def _undivided(score: ScoreFunction, router: Any, arguments: Any, output: Any) -> Any:
    """The output of a router, (logits, weights, indices), with the weights before the division."""
    del router, arguments
    if not isinstance(output, tuple) or len(output) != 3 or output[1].shape != output[2].shape:
        return output
    logits, weights, indices = output
    scores = score(logits.float()).gather(-1, indices)
    total = scores.sum(-1, keepdim=True)
    factor = weights.sum(-1, keepdim=True)  # of the scaling after the division
    divided = scores / total * factor
    if not torch.allclose(divided, weights.float(), rtol=TOLERANCE, atol=TOLERANCE):
        raise ValueError("the router has no weights that are divided by their sum")
    return logits, (scores * factor).to(weights.dtype), indices


CAUSE = Cause("other", 104, _candidates)
