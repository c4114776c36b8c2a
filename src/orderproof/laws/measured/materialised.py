"""OP502 materialised: copied, saved and loaded, or made on meta and loaded, it is the same model.

    f(load(save(m)), x) = f(copy(m), x) = f(m, x)         and every buffer keeps its value

A buffer that is not saved is worked out anew, or it is whatever memory held: a table of frequencies lost that way
gives finite numbers and wrong ones.

Told and not judged: a model cast to bfloat16, against the model loaded in bfloat16. `.to(dtype)` casts every buffer
that is floating, so frequencies that loading keeps in float32 are rounded: most libraries do so knowingly.
Source: elementary.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial


class Tabled(TransformerDriver):
    """The same, with a table of positions that is made once and never saved."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        table = torch.linspace(-1, 1, self.length * self.module.width).view(self.length, -1)
        self.module.register_buffer("table", table, persistent=False)

    def call(self, tokens: Tensor, **given: Any) -> Answer:
        table = self.module.table[: tokens.shape[1]]  # type: ignore[index]
        return super().call(tokens + table, **given)


class Materialised(MeasuredLaw):
    """See the module's text."""

    def trials(self, bench: Bench) -> Iterator[Trial]:
        buffers = any(buffer.is_floating_point() for buffer in bench.driver.module.buffers())
        for name in bench.driver.remade():
            yield Trial(name, partial(_remade, name=name))
            if buffers:
                yield Trial(f"{name}: its buffers", partial(_buffers, name=name))
        yield Trial("cast to bfloat16, against loaded in bfloat16", _cast, advisory=True)

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def _remade(bench: Bench, *, name: str) -> Sides:
    return bench.whole, bench.remade(name).whole


def _buffers(bench: Bench, *, name: str) -> Sides:
    """The first buffer that differs, or the first of all; both are asked the usual first, which may set buffers."""
    other = bench.remade(name)
    for each in (bench, other):
        each.call(each.tokens, keep=False)
    found = dict(other.driver.module.named_buffers())
    pairs = [(b, found[n]) for n, b in bench.driver.module.named_buffers() if n in found and b.is_floating_point()]
    return next((pair for pair in pairs if not torch.equal(*pair)), pairs[0])


def _cast(bench: Bench) -> Sides:
    dtype = torch.bfloat16
    loaded = bench.loaded(dtype)
    cast = Bench(bench.driver.with_module(copy.deepcopy(bench.driver.module).to(dtype)), bench.seed, floats=dtype)
    return loaded.whole, cast.whole


LAW = Materialised(
    code="OP502",
    name="materialised",
    statement="Copied, saved and loaded, or made on meta and loaded, it is the same model.",
    expectation=dict.fromkeys(("causal_lm", "encoder", "vision", "module"), "holds"),
    fix="Save every buffer that cannot be worked out anew, and work out the others when loading, not when making.",
    diff="-model.to(torch.bfloat16)\n+Model.from_pretrained(path, dtype=torch.bfloat16)",
    honest=decoder,
    faulty=lambda: decoder(of=Tabled),
)
