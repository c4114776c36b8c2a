"""OP501 backend: every implementation of attention, and training without dropout, give the same answer.

    f_eager(x) = f_sdpa(x) = f_flex(x)      plain, padded on either side, and with positions that restart within a row
    f_train(x) = f_eval(x)                  where every dropout is 0

What a pad token gives is nobody's to compare: a row that sees nothing is NaN in one implementation, zero in another.
A model with batch statistics, or one that still draws at random in training, is not compared in training.
Source: elementary; broken by a causal flag set in one implementation alone, by windows that count their edge in one
and not in the other, and by masks that are dropped on a fast path.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn

from orderproof.blocks.driving import TransformerDriver, encoder
from orderproof.driver import Answer
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial

PADS = 2
RANDOM = ("drop", "jitter", "augment", "mask_time_prob", "mask_feature_prob")


class Shortcut(TransformerDriver):
    """The same, whose eager implementation never sees the padding mask."""

    masked = True

    def backends(self) -> Iterator[tuple[str, Self]]:
        for name, other in super().backends():
            other.masked = name != "eager"
            yield name, other

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **given: Any) -> Answer:
        return super().call(tokens, mask=mask if self.masked else None, **given)


class Backend(MeasuredLaw):
    """See the module's text."""

    optional = True

    def trials(self, bench: Bench) -> Iterator[Trial]:
        for name in bench.backends:
            yield Trial(name, partial(_compared, name=name))
            if "mask" in bench.driver.takes:
                yield Trial(f"{name}, padded on the right", partial(_compared, name=name, right=PADS))
                yield Trial(f"{name}, padded on the left", partial(_compared, name=name, left=PADS))
            if "positions" in bench.driver.takes:
                yield Trial(f"{name}, with positions that restart", partial(_compared, name=name, restart=True))
        yield Trial("training without dropout", _trained, advice="Let dropout alone tell training from evaluation.")

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def _compared(bench: Bench, *, name: str, left: int = 0, right: int = 0, restart: bool = False) -> Sides:
    other, end = bench.backends[name], bench.length - right
    given: dict[str, Tensor] = {}
    mask = torch.ones(bench.tokens.shape[:2], dtype=torch.bool)
    mask[0, :left] = False
    mask[0, end:] = False
    if left or right:
        given["mask"] = mask
        if "positions" in bench.driver.takes:
            given["positions"] = bench.driver.first_position + (mask.long().cumsum(1) - 1).clamp(min=0)
    if restart:
        half = bench.length // 2
        first, second = bench.positions(half), bench.positions(bench.length - half)
        given["positions"] = torch.cat([first, second], dim=1)
    sides = bench.forward(bench.tokens, **given), other.forward(bench.tokens, **given)
    if not (left or right) or sides[0].dim() != 3:
        return sides
    if sides[0].shape[1] == bench.length:
        return sides[0][mask], sides[1][mask]
    whole = mask.all(dim=1)  # more outputs than tokens, or fewer: nobody says which of them are those of pads
    if not whole.any():
        raise Unsupported("its outputs are not one for each token, and a row of its own is all that it takes")
    return sides[0][whole], sides[1][whole]


def _trained(bench: Bench) -> Sides:
    made = bench.of(bench.driver.with_module(_in_training(bench.driver.module)))
    with torch.random.fork_rng(devices=[]):
        before = torch.random.get_rng_state()
        output = made.call(bench.tokens, keep=False).output
        drew = not torch.equal(before, torch.random.get_rng_state())
    if drew:
        raise Unsupported("in training it draws at random beside its dropouts")
    return bench.whole, output


def _in_training(module: nn.Module) -> nn.Module:
    """A copy in training mode with every dropout at 0."""
    module = copy.deepcopy(module).train()
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            raise Unsupported("in training its batch norms take the statistics of the batch")
        for holder in (part, getattr(part, "config", None)):
            for key, value in list(vars(holder).items()) if hasattr(holder, "__dict__") else ():
                if isinstance(value, float) and any(word in key for word in RANDOM):
                    setattr(holder, key, 0.0)
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.p = 0.0
    return module


LAW = Backend(
    code="OP501",
    name="backend",
    statement="Eager, SDPA and flex attention, and training without dropout, give the same answer.",
    expectation={"causal_lm": "holds", "encoder": "holds", "vision": "holds"},
    fix="Give every implementation of attention the same mask: same padding, same window edges, same causal flag.",
    honest=encoder,
    faulty=lambda: encoder(of=Shortcut),
)
