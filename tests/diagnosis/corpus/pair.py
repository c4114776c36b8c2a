"""A program that breaks a law, and the same without the fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from orderproof import laws
from orderproof.records.audit import Finding
from tests.auditing.internals import prove_law
from tests.diagnosis.corpus.parts import attend, causal
from tests.diagnosis.walking import WIDTH, Function, Program, examine


@dataclass(frozen=True)
class Pair:
    """A function that breaks a law, what is expected of it, and the same without the fault."""

    name: str
    law: str
    broken: Function
    twin: Function | None
    verdict: Literal["refuted", "undecided"] = "refuted"
    weights: Literal["given", "random"] = "given"  # of the witness
    twin_law: str = ""  # where the twin obeys another law

    def finding(self, function: Function, law: str) -> Finding:
        (finding,) = prove_law(examine(Program(function, **state())), laws.find_proved_law(law))
        return finding


def state() -> dict[str, Tensor]:
    """The state of every program: parameters that start at zero, parameters that do not, and buffers."""
    generator = torch.Generator().manual_seed(0)
    return {
        "zero": nn.Parameter(torch.zeros(9, WIDTH)),
        "one": nn.Parameter(torch.randn(9, WIDTH, generator=generator)),
        "square": nn.Parameter(torch.randn(WIDTH, WIDTH, generator=generator)),
        "kernel": nn.Parameter(torch.randn(WIDTH, WIDTH, 3, generator=generator)),
        "ramp": torch.arange(9.0)[:, None] * 0.1,
        "flat": torch.full((9, 1), 0.4),
    }


def named(pair: Pair) -> str:
    return f"{pair.name}-{pair.law}"


def plain(function: Callable[[Tensor], Tensor]) -> Function:
    """A function of x alone."""
    return lambda x, zero, one, square, kernel, ramp, flat: function(x)


CAUSAL = plain(causal)
BLIND = plain(attend)
