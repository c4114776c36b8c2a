"""OP205 influence: a token matters exactly where the attention pattern says so.

    D[i, j] = whether output i changes when token j is replaced
    least[i, j]  =>  D[i, j]  =>  most[i, j]

`most` and `least` are what the configuration says (causal, window, chunk, everything), composed over the layers: a
window of w sees w tokens through one layer and 1 + 2 (w - 1) through two. Causality alone would not see an encoder
that is silently causal, nor a window that is one token too short. Both calls have the same shape, and no row of one
is compared with another row of the other, so that what does not matter changes no bit.
Source: elementary; broken by causal flags that default to true, and by windows whose edge is counted in one place
and not in another.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Driver, Sight
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_last_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial


class Leaking(TransformerDriver):
    """The same, saying that it is causal, with its first layer not masked."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self.module.stack.layers[0].attention.causal = False  # type: ignore[union-attr]


class Influence(MeasuredLaw):
    """See the module's text."""

    exact = True
    optional = True  # a pooled output has no tokens to ask about

    def not_asked(self, driver: Driver) -> str | None:
        if not driver.tokens_run:
            return "its tokens lie within an image"
        return "its configuration does not tell which token sees which" if driver.sees(2) is None else None

    def trials(self, bench: Bench) -> Iterator[Trial]:
        sight = _sight(bench)
        if not bool(sight.most.all()):
            yield Trial("a token that is out of sight, replaced", _unchanged)
        if bool((sight.least & ~torch.eye(len(sight.least), dtype=torch.bool)).any()):
            yield Trial("a token that is in sight, replaced", _changed, must_differ=True, advice=UNSEEN)

    def control(self, bench: Bench) -> Sides:
        return other_last_token(bench)


UNSEEN = "Let every token see what the pattern shows it: look for a causal flag left on, or a window cut one short."


def _sight(bench: Bench) -> Sight:
    """What is seen, on enough tokens to reach past two layers of the longest stretch."""
    driver, tokens = bench.driver, bench.length
    if driver.stretches:
        tokens = max(tokens, 2 * max(driver.stretches) + 2)
    sight = driver.sees(min(tokens, driver.longest or tokens))
    if sight is None:
        raise Unsupported("its configuration does not tell which token sees which")
    return sight


def _pairs(bench: Bench, pairs: Tensor) -> Sides:
    """Outputs before and after [pair, feature], for pairs [token, token] of an output and the token replaced."""
    count = len(pairs)
    tokens = bench.draw(count, rows=1).repeat_interleave(count, 0)
    own = torch.eye(count, dtype=torch.bool)
    changed = tokens.clone()
    changed[own] = _others(bench, tokens[own])
    before, after = bench.forward(tokens), bench.forward(changed)
    if before.shape[:2] != (count, count):
        raise Unsupported("it does not give one output for each token")
    rows, columns = pairs.T.nonzero(as_tuple=True)  # the row in which a token was replaced, and the output
    return before[rows, columns], after[rows, columns]


def _others(bench: Bench, tokens: Tensor) -> Tensor:
    """Tokens of which each differs from the one in its place."""
    found = tokens
    for other in range(1, 5):
        same = (found == tokens).flatten(1).all(1) if tokens.dim() > 1 else found == tokens
        drawn = bench.draw(len(tokens), rows=1, other=other)[0]
        found = torch.where(same.reshape(-1, *[1] * (tokens.dim() - 1)), drawn, found)
    return found


def _unchanged(bench: Bench) -> Sides:
    return _pairs(bench, ~_sight(bench).most)


def _changed(bench: Bench) -> Sides:
    """Of the pairs that must differ, the one that does so least."""
    before, after = _pairs(bench, _sight(bench).least)
    least = (before - after).abs().amax(1) / before.abs().amax(1).clamp(min=torch.finfo(before.dtype).tiny)
    worst = int(least.argmin())
    return before[worst], after[worst]


LAW = Influence(
    code="OP205",
    name="influence",
    statement="A token matters to an output exactly where the attention pattern says so.",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    fix="Mask what the pattern hides, in every layer and on every implementation of attention.",
    honest=decoder,
    faulty=lambda: decoder(of=Leaking),
)
