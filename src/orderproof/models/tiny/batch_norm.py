"""Calibrate batch norms of a random model: running statistics of their inputs, as after training.

With its initial statistics a batch norm divides by 1, for every variance of its input. In a deep stack of random
convolutions the influence of the input then falls below rounding.
"""

from __future__ import annotations

import copy

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from orderproof.errors import first_line
from orderproof.models.own_errors import raise_own_error
from orderproof.models.subject import Subject

CALIBRATION_SAMPLES = 8  # over which the statistics are computed


def calibrate_batch_norm(subject: Subject) -> None:
    """Set the statistics of batch norms from samples; they stay unchanged, with a note, if that fails."""
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
        draws = [subject.sample(subject.default_length, seed).inputs for seed in range(CALIBRATION_SAMPLES)]
        with torch.no_grad():
            subject.module(*(torch.cat(each) for each in zip(*draws, strict=True)))
        finite = all(bool(torch.isfinite(value).all()) for norm in norms for value in norm.state_dict().values())
        failure = "" if finite else "statistics are not finite"
    except Exception as error:  # noqa: BLE001 - third-party code: the model may take a single row only
        raise_own_error(error)
        failure = first_line(error)
    for norm, state, momentum in zip(norms, before, momenta, strict=True):
        norm.eval()
        norm.momentum = momentum
        if failure:
            norm.load_state_dict(state)
    if failure:
        subject.notes = (*subject.notes, f"batch norms keep their initial statistics ({failure})")
