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


def _at_both_ends(m: Program, x: Tensor) -> Tensor:
    """Tokens after a class token and tokens before one, added."""
    own = m.first.bias.expand(x.shape[0], 1, -1)
    return (torch.cat([own, x], 1) + torch.cat([x, own], 1))[:, 1:]


def _before_both(m: Program, x: Tensor) -> Tensor:
    """Tokens after a class token, twice, added."""
    own = m.first.bias.expand(x.shape[0], 1, -1)
    return (torch.cat([own, x], 1) + torch.cat([own, m.second(x)], 1))[:, 1:]


MOVED_PROGRAMS = [
    MovedCase("tokens after a class token added", lambda m, x, p: _before_both(m, x)),
    MovedCase("class tokens at both ends", lambda m, x, p: _at_both_ends(m, x), equivariant=False),
    MovedCase("class token read", lambda m, x, p: _read(m, x, 0)),
    MovedCase("token after the class token read", lambda m, x, p: _read(m, x, 1), equivariant=False),
]
MUTANTS = [
    *mutants_of(
        "theorems.operators.movement.parts",
        M("token_after_the_class_token", "index < axis.before", "index <= axis.before",
          program="moved: token after the class token read"),
        M("last_token_behind_the_tokens", "-index <= behind.constant", "-index <= behind.constant + 1",
          program="moved: last of the tokens"),
        M("range_from_the_last_token_on", "behind.constant >= 0", "behind.constant >= -1",
          program="moved: elements from the last token on"),
    ),
    *mutants_of(
        "theorems.operators.composition.concatenation",
        M("class_token_that_is_forgotten", "before.constant + dims[moving[0]][0].before", "dims[moving[0]][0].before",
          program="moved: class token read"),
    ),
    *mutants_of(
        "theorems.facts.moved_fact",
        M("class_tokens_at_any_place", "(first.motion, first.before) == (second.motion, second.before)",
          "first.motion == second.motion", program="moved: class tokens at both ends"),
    ),
]  # fmt: skip
