"""Attention sinks, a learned score that takes part of the softmax of each head, that are not applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

NO_SINK = -1e4  # a score whose exponential is zero


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    names = [name for name, _ in reference.model.named_parameters() if name.rpartition(".")[2] in ("sinks", "sink")]
    if names:
        yield Candidate("sinks", "sinks", "one for each head", "no sinks", Change(prepare=_remove_sinks))


def _remove_sinks(model: Any) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.rpartition(".")[2] in ("sinks", "sink"):
                parameter.fill_(NO_SINK)


CAUSE = Cause("sinks", 70, _candidates)
