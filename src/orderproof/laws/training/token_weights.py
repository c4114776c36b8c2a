"""The weight of each label in a loss, read from the gradient at the logits.

A cross-entropy term w * (-log softmax(z)[y]) has the gradient w * (softmax(z) - onehot(y)) at the logits z. So the
gradient and the logits give w, and what is left over says if the term is a cross-entropy at all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training.training_step import Terms

LARGEST_REST = 1e-2  # of a gradient: what is left after the weight of a cross-entropy


def token_weights(terms: Terms, labels: Tensor, counted: Tensor, offset: int) -> Tensor:
    """The weights of the counted labels [label], in the order of `counted`. Raises `UnsupportedCallError`."""
    rows, indices = counted.nonzero(as_tuple=True)
    outputs = indices + offset
    logits, gradient = (x[rows, outputs].double() for x in (terms.logits, terms.gradient))
    shape = logits.softmax(-1)
    shape[torch.arange(len(rows)), labels[rows, indices]] -= 1
    weights = (gradient * shape).sum(-1) / (shape * shape).sum(-1)
    rest = (gradient - weights[:, None] * shape).norm(dim=-1)
    if bool((rest > LARGEST_REST * gradient.norm(dim=-1).max()).any()):
        raise UnsupportedCallError("its terms are no cross-entropy of the logits, so their weights are not known")
    return weights


def follows_means(weights: Tensor, groups: Tensor, tolerance: float) -> bool:
    """True if a label counts as in a mean of means: the weights times the number of labels of their group are equal."""
    counts = torch.bincount(groups)[groups].double()
    return spread(weights * counts) <= tolerance


def spread(values: Tensor) -> float:
    """The difference of the largest and the least value, relative to the largest magnitude."""
    largest = float(values.abs().max())
    return float(values.max() - values.min()) / largest if largest else 0.0
