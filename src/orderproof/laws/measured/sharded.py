"""OP503 sharded: split along the sequence over ranks, the answer is that of one rank.

    f(x)[places of rank r]  =  what rank r gives for x[places of rank r], attending to the keys of every rank

with global positions, for a contiguous split (first half, second half) and for the zig-zag that evens out causal work
(rank 0 has the first and the last quarter). The ranks are two processes of this machine.
Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", arXiv:2407.21783, section 3.3.2 (keys and values gathered
from all ranks; rank i of n has the parts i and 2 n - 1 - i). Broken by positions that every rank counts for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_positions
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial
from orderproof.laws.measured.ranks import on_ranks

QUARTERS = {"contiguous": ((0, 1), (2, 3)), "zig-zag": ((0, 3), (1, 2))}  # of the tokens, for each rank


class Contiguous(TransformerDriver):
    """The same, with every rank counting on from the rank before it, whatever its places are."""

    rank = 0

    @contextmanager
    def sharded(self, rank: int, world: int, places: Tensor) -> Iterator[None]:
        self.rank = rank
        with super().sharded(rank, world, places):
            yield

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if self.spread is not None:
            positions = place.offset(self.rank * tokens.shape[1], tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, **given)


class Sharded(MeasuredLaw):
    """See the module's text."""

    optional = True

    def trials(self, bench: Bench) -> Iterator[Trial]:
        for name in QUARTERS:
            yield Trial(f"over two ranks, {name}", partial(_split, name=name))

    def control(self, bench: Bench) -> Sides:
        return other_positions(bench)


def _split(bench: Bench, *, name: str) -> Sides:
    tokens = _tokens(bench)
    made = bench.kept("sharded", partial(_over_ranks, bench))
    whole, places = torch.empty_like(made[0][0]).repeat(1, 2, 1), _places(tokens.shape[1], name)
    for rank, parts in enumerate(made):
        whole[:, places[rank]] = parts[list(QUARTERS).index(name)]
    return bench.forward(tokens), whole


def _over_ranks(bench: Bench) -> list[list[Tensor]]:
    """For each rank, what it gives in each split: processes are started once for all of them."""
    tokens = _tokens(bench)
    given = bench.positions(tokens.shape[1])

    def work(rank: int) -> list[Tensor]:
        made = []
        for name, quarters in QUARTERS.items():
            own = _places(tokens.shape[1], name)[rank]
            with bench.driver.sharded(rank, len(quarters), own):
                output = bench.call(tokens[:, own], positions=given[:, own], keep=False).output
            if output.dim() != 3 or output.shape[1] != len(own):
                raise Unsupported("it does not give one output for each token")
            made.append(output)
        return made

    return on_ranks(work, 2)


def _tokens(bench: Bench) -> Tensor:
    """As many tokens as can be cut into four."""
    most = bench.driver.longest or bench.length + 3
    return bench.draw(min(bench.length + 3, most) // 4 * 4)


def _places(tokens: int, name: str) -> list[Tensor]:
    quarters = torch.arange(tokens).chunk(4)
    return [torch.cat([quarters[i] for i in own]) for own in QUARTERS[name]]


LAW = Sharded(
    code="OP503",
    name="sharded",
    statement="Split along the sequence over ranks, the answer is that of one rank.",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    fix="Give every rank the global positions of its tokens, and mask by them, not by where a key is stored.",
    diff="-position_ids = torch.arange(n)\n+position_ids = rank * n + torch.arange(n)",
    honest=decoder,
    faulty=lambda: decoder(of=Contiguous),
    needs=frozenset({"positions"}),
)
