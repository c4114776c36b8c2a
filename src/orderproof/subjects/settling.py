"""Batch norms as training leaves them: with the mean and variance of what reaches them.

A model with random weights has not met an input yet. Its batch norms divide by 1, which is nothing like the size of
what comes in, and a deep stack of convolutions ends in numbers that no input moves by more than rounding does.
"""

from __future__ import annotations

import copy

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from orderproof.subjects.subject import Subject

ROWS = 8  # samples that the statistics are taken over


def settle(subject: Subject) -> None:
    """Give the batch norms of a model the statistics of some samples; a model that cannot be run so stays as it is."""
    norms = [part for part in subject.module.modules() if isinstance(part, _BatchNorm) and part.track_running_stats]
    if not norms:
        return
    before = [copy.deepcopy(norm.state_dict()) for norm in norms]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean over all calls
        norm.train()
    try:
        draws = [subject.sample(subject.length, seed).inputs for seed in range(ROWS)]
        with torch.no_grad():
            subject.module(*(torch.cat(each) for each in zip(*draws, strict=True)))
        kept = all(bool(torch.isfinite(value).all()) for norm in norms for value in norm.state_dict().values())
    except Exception:  # noqa: BLE001 - the model is not ours: it may take one row only
        kept = False
    for norm, state, momentum in zip(norms, before, momenta, strict=True):
        norm.eval()
        norm.momentum = momentum
        if not kept:
            norm.load_state_dict(state)
