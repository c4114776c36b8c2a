"""What must move an output: without it, that nothing differs says nothing."""

from __future__ import annotations

import torch

from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.law import Sides


def other_first_token(bench: Bench) -> Sides:
    """The first token replaced: what the other tokens, or the whole, give must differ."""
    changed, other = bench.tokens.clone(), bench.draw(other=1)
    if not bench.driver.tokens_run:
        return bench.whole, bench.forward(other)
    changed[:, 0] = other[:, 0]
    first, second = bench.whole, bench.forward(changed)
    return (first[:, 1:], second[:, 1:]) if first.dim() == 3 else (first, second)


def other_last_token(bench: Bench) -> Sides:
    """The last token replaced: its own output must differ."""
    changed, other = bench.tokens.clone(), bench.draw(other=1)
    if not bench.driver.tokens_run:
        return bench.whole, bench.forward(other)
    changed[:, -1] = other[:, -1]
    first, second = bench.whole, bench.forward(changed)
    return (first[:, -1], second[:, -1]) if first.dim() == 3 else (first, second)


def other_positions(bench: Bench) -> Sides:
    """The second half of the tokens moved on by three: what the tokens give must differ."""
    usual = bench.positions(bench.length)
    moved = usual + 3 * (torch.arange(bench.length) >= bench.length // 2)
    return bench.at(bench.tokens, usual), bench.at(bench.tokens, moved)
