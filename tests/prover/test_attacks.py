"""Models that try to pass for what they are not: each breaks its law and is not proved, its honest twin is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from orderproof import laws
from orderproof.auditing.examine import Examination
from orderproof.auditing.verdict import prove_law
from orderproof.record import Finding
from orderproof.subjects import from_module
from tests.prover.walking import TOKENS, WIDTH

Function = Callable[..., Tensor]


class Plain(nn.Module):
    """A function of x [batch, token, width] as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Padded(Plain):
    """A function of x and a mask that is 1 at the real tokens."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = torch.ones(x.shape[:2], dtype=torch.long) if attention_mask is None else attention_mask
        return self.function(x, mask)


class Placed(Plain):
    """A function of x and position ids."""

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        return self.function(x, torch.arange(x.shape[1]).unsqueeze(0) if position_ids is None else position_ids)


@dataclass(frozen=True)
class Attack:
    """A function that breaks a law, and one like it that obeys it."""

    name: str
    law: str
    broken: Function
    honest: Function
    batch: int = 2


CALLED: dict[str, type[Plain]] = {"padding": Padded, "packing": Placed, "position_labelled": Placed}


def finding(attack: Attack, function: Function) -> Finding:
    torch.manual_seed(0)
    module = CALLED.get(attack.law, Plain)(function)
    subject = from_module(module, (torch.zeros(attack.batch, TOKENS, WIDTH),), token_axis=1, length=TOKENS)
    (found,) = prove_law(Examination(subject, TOKENS), laws.get(attack.law))
    return found


def beside(x: Tensor, entry: Tensor) -> Tensor:
    """The tokens behind one more entry in each row."""
    return torch.cat([entry.expand(x.shape[0], 1, -1), x], 1)


def attend(x: Tensor) -> Tensor:
    """Self-attention without weights."""
    return (x @ x.transpose(1, 2)).softmax(-1) @ x


ATTACKS = [
    # ------------------------------------------------------------ batch: which entry of the output is whose
    Attack("rows_averaged", "batch", lambda x: x.mean(0, keepdim=True), lambda x: x.mean(1, keepdim=True)),
    Attack("everything_averaged", "batch", lambda x: x.mean((0, 1), keepdim=True)[0], lambda x: x.mean(1)),
    Attack("one_number", "batch", lambda x: x.mean(), lambda x: x.mean((1, 2))),
    Attack(
        "rows_averaged_before_the_tokens",
        "batch",
        lambda x: beside(x, x.mean((0, 1))),
        lambda x: beside(x, x.mean(1, keepdim=True)),
    ),
    Attack(
        "rows_averaged_behind_the_tokens",
        "batch",
        lambda x: beside(x, x.mean((0, 1))).flip(1),
        lambda x: beside(x, x.mean(1, keepdim=True)).flip(1),
    ),
    Attack("middle_row_of_three", "batch", lambda x: x + x[1:2], lambda x: x + x.mean(1, keepdim=True), batch=3),
    Attack(
        "rows_averaged_by_twos",
        "batch",
        lambda x: x.view(2, 2, TOKENS, WIDTH).mean(1),
        lambda x: x.view(2, 2, TOKENS, WIDTH).mean(3).view(4, TOKENS),
        batch=4,
    ),
    Attack(
        "rows_and_tokens_together",
        "batch",
        lambda x: attend(x.reshape(1, -1, WIDTH)).view_as(x),
        lambda x: x.reshape(-1, WIDTH).relu().view_as(x),
    ),
]


def named(attack: Attack) -> str:
    return f"{attack.name}-{attack.law}"


@pytest.mark.parametrize("attack", ATTACKS, ids=named)
def test_model_that_breaks_its_law_is_not_proved(attack: Attack) -> None:
    found = finding(attack, attack.broken)
    assert found.verdict in ("refuted", "undecided"), found.reason
    assert "error in the prover" not in found.reason


@pytest.mark.parametrize("attack", ATTACKS, ids=named)
def test_its_honest_twin_is_proved(attack: Attack) -> None:
    found = finding(attack, attack.honest)
    assert found.verdict == "proved", found.reason
    assert found.deviation.float64 is not None
    assert found.deviation.float64 < 1e-12


def test_output_whose_rows_are_not_those_of_the_batch_has_no_witness() -> None:
    attack = Attack("merged", "batch", lambda x: x.reshape(-1, WIDTH), lambda x: x)
    assert finding(attack, attack.broken).verdict == "undecided"
