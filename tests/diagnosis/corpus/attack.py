"""A program that claims more than it keeps: it breaks a law, and its honest twin obeys it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof import laws
from orderproof.auditing.record.context import AuditContext
from orderproof.models import Subject, from_module
from orderproof.records.audit import Finding
from tests.auditing.internals import prove_law
from tests.diagnosis.walking import TOKENS, WIDTH, Function, Program


class Padded(Program):
    """A function of x and a mask that is 1 at the real tokens."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = torch.ones(x.shape[:2], dtype=torch.long) if attention_mask is None else attention_mask
        return self.function(x, mask)


class Placed(Program):
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


CALLED: dict[str, type[Program]] = {"padding": Padded, "packing": Placed, "position_ids": Placed}


def subject_of(attack: Attack, function: Function) -> Subject:
    torch.manual_seed(0)
    module = CALLED.get(attack.law, Program)(function)
    return from_module(module, (torch.zeros(attack.batch, TOKENS, WIDTH),), token_axis=1, length=TOKENS)


def finding_of(attack: Attack, function: Function) -> Finding:
    (found,) = prove_law(AuditContext(subject_of(attack, function), TOKENS), laws.find_proved_law(attack.law))
    return found


def name_of_attack(attack: Attack) -> str:
    return f"{attack.name}-{attack.law}"
