"""A program of one tensor and the law that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tests.diagnosis.walking import TOKENS, Program


@dataclass(frozen=True)
class Case:
    """A program, and the law that it breaks or under which a fact of its walk was once wrong."""

    name: str
    law: str
    function: Callable[..., Tensor]
    buffers: tuple[str, ...] = ()


def build(case: Case) -> Program:
    made = {"one": torch.ones(TOKENS), "ramp": torch.arange(TOKENS).float()}
    return Program(case.function, **{name: made[name] for name in case.buffers})


def name_of(case: Case) -> str:
    return f"{case.name}-{case.law}"
