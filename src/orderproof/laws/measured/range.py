"""OP304 range: past the length that a model states there is an extension or an error, and no silent clamp, wrap or NaN.

With N the stated length, or the rows of the position table, and positions counted from 0:

    by position ids     f(x; N), f(x; N + 1), f(x; 2N - 1)  are numbers, if they are anything;
                        and none of them is f(x; N - 1), nor f(x; N + k) what f(x; k) is
    by length           f of N + 1 and of 2N tokens are numbers, if they are anything, and what stated ids give;
                        where all tokens see each other, the others notice when two past the end are exchanged

Only the last of a few tokens is moved out, so that relative encodings show it. Clamped positions make two places one:
what stands there can then be exchanged and no other token notices, as long as exchanges further in are noticed. (Of
a causal model later tokens notice an exchange without any positions.) An error is an answer, and a good one. Where
the end itself tells no positions apart, as in buckets, nothing is asked.
Source: gty111/gLLM#269, karpathy/nanochat#514, huggingface/transformers#11242.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer, Driver
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.distinct import BEFORE, outputs
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial
from orderproof.prover.run import difference

MOST = 150  # [tokens] past a longer stated length no text is read for this
SEEN = 1e-3  # relative: what two positions within the length must differ by
WITHIN = BEFORE + 1  # the position that a wrap is looked for at
STATED = 24  # of the examples


class Clamped(TransformerDriver):
    """The same, with positions that stop at the stated length."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: object) -> Answer:
        assert self.stated is not None
        if positions is None and given.get("past") is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2])
        if positions is not None:
            positions = positions.clamp(max=self.stated - 1)
        return super().call(tokens, positions=positions, **given)  # type: ignore[arg-type]


class Range(MeasuredLaw):
    """See the module's text."""

    def not_asked(self, driver: Driver) -> str | None:
        return None if end_of(driver) else "it states no length"

    def trials(self, bench: Bench) -> Iterator[Trial]:
        end = end_of(bench.driver)
        assert end is not None
        if "positions" in bench.driver.takes and end > BEFORE + 2:
            for place in (end - 1, end, end + 1, 2 * end - 1):
                yield Trial(f"position {place} gives numbers", partial(_finite_at, place=place))
            for place, other in ((end, end - 1), (2 * end - 1, end - 1), (end + WITHIN, WITHIN)):
                what = f"position {place} is not taken for {other}"
                yield Trial(what, partial(_apart, pair=(place, other)), must_differ=True)
        if bench.driver.tokens_run and bench.length < end <= MOST:
            yield from _by_length(bench, end)

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def _by_length(bench: Bench, end: int) -> Iterator[Trial]:
    for tokens in (end, end + 1, 2 * end):
        yield Trial(f"{tokens} tokens give numbers", partial(_finite_of, tokens=tokens))
    if "positions" in bench.driver.takes:
        yield Trial(f"{2 * end} tokens give what they give at stated ids", partial(_stated_ids, tokens=2 * end))
    if not bench.driver.causal:
        for pair in ((end, end + 1), (WITHIN, end + WITHIN)):
            what = f"of {2 * end} tokens, exchanging {pair[0]} and {pair[1]} is noticed"
            yield Trial(what, partial(_exchanged, tokens=2 * end, pair=pair), must_differ=True)


def end_of(driver: Driver) -> int | None:
    """The first position that it does not state, counted from 0."""
    return driver.longest or driver.stated


def _finite_at(bench: Bench, *, place: int) -> Sides:
    return _finite(outputs(bench, [place], bench.at))


def _finite_of(bench: Bench, *, tokens: int) -> Sides:
    return _finite(bench.forward(bench.draw(tokens, rows=1)))


def _finite(made: Tensor) -> Sides:
    found = made.isfinite().double()
    return torch.ones_like(found), found


def _apart(bench: Bench, *, pair: tuple[int, int]) -> Sides:
    """What the tokens give with the last at either place, if places just within the length are told apart."""
    end = end_of(bench.driver)
    assert end is not None
    inner = [outputs(bench, [place], bench.at) for place in (end - 2, end - 1)]
    if difference(*inner) < SEEN:
        raise Unsupported("the last positions within its length are not told apart either")
    first, second = (outputs(bench, [place], bench.at) for place in pair)
    return first, second


def _stated_ids(bench: Bench, *, tokens: int) -> Sides:
    text = bench.draw(tokens, rows=1)
    return bench.at(text, bench.positions(tokens, rows=1)), bench.forward(text)


def _exchanged(bench: Bench, *, tokens: int, pair: tuple[int, int]) -> Sides:
    """What the other tokens give before and after two are exchanged, if they notice it further in."""
    if difference(*_exchange(bench, tokens, (tokens // 4, tokens // 4 + 1))) < SEEN:
        raise Unsupported("no token notices when two within its length are exchanged")
    return _exchange(bench, tokens, pair)


def _exchange(bench: Bench, tokens: int, pair: tuple[int, int]) -> Sides:
    text = bench.draw(tokens, rows=1)
    other = text.clone()
    other[:, list(pair)] = text[:, list(reversed(pair))]
    first, second = bench.forward(text), bench.forward(other)
    if first.dim() != 3:
        return first, second
    others = torch.ones(first.shape[1], dtype=torch.bool)
    others[list(pair)] = False
    return first[:, others], second[:, others]


def _stating(of: type[TransformerDriver]) -> TransformerDriver:
    driver = decoder(of=of)
    driver.stated = STATED
    return driver


LAW = Range(
    code="OP304",
    name="range",
    statement="Past the stated length there is an extension or an error, and no silent clamp, wrap or NaN.",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    fix="Past the last position work out the encoding, or raise an error that names the length; do not clamp or wrap.",
    diff="-table[position_ids.clamp(max=len(table) - 1)]\n+table[position_ids]",
    honest=lambda: _stating(TransformerDriver),
    faulty=lambda: _stating(Clamped),
)
