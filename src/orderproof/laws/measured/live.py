"""OP306 live: what a model accepts changes its output: position ids, mask, base, scaling, window.

    f(x; p) != f(x; p'),   f(x; m) != f(x; m'),   f_s(x) != f_s'(x)   for a setting s, the weights being the same.

An argument that is accepted and dropped is worse than one that is refused: the caller counts on it. The two sides
must differ here; that they are equal is held against the model only if changing a token moves it. What a model does
not name but would let vanish in its `**kwargs` is tried, and said, and not held against it; nor are position ids
against a model that has no encoding of positions, and names them for packed documents only. Positions are spread
out, and a mask that hides nothing goes with them: without one some libraries take the gaps for packed documents.
Source: facebookresearch/fairseq#3726 (positions ignored), huggingface/diffusers#10111 (base never used),
unslothai/unsloth#6197 (scaling dropped).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer, Driver
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial

FARTHEST = 108
ROUNDING = 1e-5  # relative: what two calls of one model may differ by where it draws or adds up in another order
IN_WORDS = {"positions": "position ids", "mask": "a mask"}


class Deaf(TransformerDriver):
    """The same, with positions that are accepted and never used."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: object) -> Answer:
        del positions
        return super().call(tokens, **given)  # type: ignore[arg-type]


class Live(MeasuredLaw):
    """See the module's text."""

    def not_asked(self, driver: Driver) -> str | None:
        if driver.takes & {"positions", "mask"} or any(True for _ in driver.altered()):
            return None
        return "it takes no position ids and no mask, and states no base, scaling or window"

    def trials(self, bench: Bench) -> Iterator[Trial]:
        driver = bench.driver
        for what, sides in (("positions", _positions), ("mask", _mask)):
            if what in driver.takes:
                yield Trial(f"{IN_WORDS[what]} must change the output", sides, must_differ=True)
            elif what in driver.swallows:
                said = f"{IN_WORDS[what]}, which it does not name, must change the output"
                yield Trial(said, partial(_swallowed, what=what, sides=sides), must_differ=True)
        for setting, other in driver.altered():
            advice = f"Read {setting} where it is used, and not only where it is stored."
            sides = partial(_setting, other=other)
            yield Trial(f"{setting} must change the output", sides, must_differ=True, advice=advice)

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def spread(bench: Bench) -> Tensor:
    """Position ids further and further apart, within the length that the model knows."""
    most = bench.driver.longest or bench.driver.stated or FARTHEST + 1
    way = torch.arange(bench.length, dtype=torch.float64) / max(bench.length - 1, 1)
    ids = (way**2 * (min(most - 1, FARTHEST))).round().long()
    return (bench.driver.first_position + torch.maximum(ids, torch.arange(bench.length))).expand(2, -1)


def _positions(bench: Bench) -> Sides:
    near, far = bench.at(bench.tokens, bench.positions(bench.length)), bench.at(bench.tokens, spread(bench))
    if not bench.driver.placed and torch.equal(near, far):
        raise Unsupported("it has no encoding of positions that position ids could change")
    return near, far


def _mask(bench: Bench) -> Sides:
    hiding = torch.ones(bench.tokens.shape[:2], dtype=torch.bool)
    hiding[:, 1] = False
    whole, rest = bench.forward(bench.tokens, mask=torch.ones_like(hiding)), bench.forward(bench.tokens, mask=hiding)
    return (whole[:, 2:], rest[:, 2:]) if whole.dim() == 3 else (whole, rest)


def _swallowed(bench: Bench, *, what: str, sides: Callable[[Bench], Sides]) -> Sides:
    first, second = sides(bench)
    if (first - second).abs().max() <= ROUNDING * first.abs().max():
        raise Unsupported(f"{IN_WORDS[what]}: not named, and gone in its **kwargs without an error")
    return first, second


def _setting(bench: Bench, *, other: Driver) -> Sides:
    """What the model and the other give, at usual positions and far apart."""
    if bench.double:
        other = other.widened()
    return _both(bench), _both(bench.of(other))


def _both(bench: Bench) -> Tensor:
    if "positions" not in bench.driver.takes:
        return bench.whole
    return torch.cat([bench.whole, bench.at(bench.tokens, spread(bench))])


LAW = Live(
    code="OP306",
    name="live",
    statement="What is accepted changes the output: position ids, mask, base, scaling, window.",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    fix="Use the argument, or refuse it with an error; an argument that is accepted and dropped misleads.",
    honest=decoder,
    faulty=lambda: decoder(of=Deaf),
)
