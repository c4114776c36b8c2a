"""A token before all others, which reads them, and moves with none."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import Program, attend


def _read(m: Program, x: Tensor, place: int) -> Tensor:
    """What the token at a place reads, of a class token and all others."""
    h = torch.cat([m.first.bias.expand(x.shape[0], 1, -1), x], 1)
    return x + attend(m, h, None)[:, place][:, None]


MOVED_PROGRAMS = [
    MovedCase("class token read", lambda m, x, p: _read(m, x, 0)),
    MovedCase("token after the class token read", lambda m, x, p: _read(m, x, 1), equivariant=False),
]
MUTANTS = mutants_of(
    "theorems.operators.movement.parts",
    M("token_after_the_class_token", "index < axes[0].before", "index <= axes[0].before",
      program="moved: token after the class token read"),
)  # fmt: skip
