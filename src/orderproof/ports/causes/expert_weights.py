"""Weights of the chosen experts: other scores than the router's, or not divided by their sum, where no key states it.

w_e = s_e / sum of s over the chosen experts    s = sigmoid(logits) or softmax(logits); chosen by s + bias
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
    if not _routers(reference.model):
        return
    for name, score in SCORES.items():
        change = Change(prepare=partial(_hook, partial(_undivided, score)))
        assumed = f"{name} scores as they are"
        yield Candidate("other", "weights of experts", "divided by their sum", assumed, change, likely=True)
    for biased in (False, True):
        for stated in SCORES:
            for assumed in SCORES:
                if biased or assumed != stated:
                    change = Change(prepare=partial(_hook, partial(_rescored, stated, assumed, biased=biased)))
                    with_bias = f"{assumed}, with the bias of the choice" if biased else assumed
                    yield Candidate("other", "scores of experts", stated, with_bias, change, likely=True)


def _routers(model: Any) -> list[Any]:
    """The modules that choose experts, by the name that transformers gives to their class."""
    return [part for part in model.modules() if type(part).__name__.endswith(("Router", "Gate"))]


def _hook(changed: Callable[..., Any], model: Any) -> None:
    for router in _routers(model):
        router.register_forward_hook(changed)


def _is_routing(output: Any) -> bool:
    """True for (logits, weights, indices) of the chosen experts."""
    return isinstance(output, tuple) and len(output) == 3 and output[1].shape == output[2].shape


def _undivided(score: ScoreFunction, router: Any, arguments: Any, output: Any) -> Any:
    """The output of a router, (logits, weights, indices), with the weights before the division."""
    del router, arguments
    if not _is_routing(output):
        return output
    logits, weights, indices = output
    scores = score(logits.float()).gather(-1, indices)
    factor = weights.sum(-1, keepdim=True)  # of the scaling after the division
    if not _near(scores / scores.sum(-1, keepdim=True) * factor, weights):
        raise ValueError("the router has no weights that are divided by their sum")
    return logits, (scores * factor).to(weights.dtype), indices


def _rescored(stated: str, assumed: str, router: Any, arguments: Any, output: Any, *, biased: bool) -> Any:
    """The output of a router with other scores; the bias that is added for the choice may stay in the weights."""
    if not _is_routing(output):
        return output
    logits, weights, indices = output
    given = [*arguments[1:], getattr(router, "e_score_correction_bias", None)]
    biases = [each for each in given if isinstance(each, Tensor) and each.shape == logits.shape[-1:]]
    bias = biases[0] if biases else torch.zeros(logits.shape[-1])
    count, total = indices.shape[-1], weights.sum(-1, keepdim=True)
    own, other = (SCORES[name](logits.float()) for name in (stated, assumed))
    same_choice = (own + bias).topk(count).indices.sort().values.equal(indices.sort().values)
    chosen = own.gather(-1, indices)
    is_divided = _near(total, total[:1].expand_as(total))
    if not same_choice or not is_divided or not _near(chosen / chosen.sum(-1, keepdim=True) * total, weights):
        raise ValueError(f"the router does not choose by {stated} scores, or does not divide them by their sum")
    indices = (other + bias).topk(count).indices
    chosen = (other + bias if biased else other).gather(-1, indices)
    return logits, (chosen / chosen.sum(-1, keepdim=True) * total).to(weights.dtype), indices


def _near(found: Tensor, wanted: Tensor) -> bool:
    return torch.allclose(found, wanted.to(found.dtype), rtol=TOLERANCE, atol=TOLERANCE)


CAUSE = Cause("other", 104, _candidates)
