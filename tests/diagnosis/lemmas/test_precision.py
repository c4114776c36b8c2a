"""Every statement that a rule does not make is false in some run, or COARSE holds the reason why it is not made.

A reason that excuses nothing is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from tests.diagnosis.corpus.operators.samples import OPERATORS, SAMPLES
from tests.diagnosis.lemmas.coarse import COARSE, KINDS, SWALLOWED, Coarse, excused
from tests.diagnosis.sampling.claims import Claim, undenied, unsaid
from tests.diagnosis.sampling.operands import Sample
from tests.diagnosis.sampling.trials import Trial, trials

FEW, TRIED, PAIRS = 4, 10, 40  # trials of each sample; pairs of runs to see a refused claim denied
TRIED_LONG, PAIRS_LONG = 30, 120
SOUGHT = 150  # trials of each sample in which a refusal without need is sought: it stops at the first


def asserted(tried: Trial) -> list[Claim]:
    """The refused claims that runs must contradict, because no reason covers all elements of one."""
    return [c for c in unsaid(tried) if (c.open & ~excused(tried, c, SWALLOWED)).any()]


def refused_without_need(sample: Sample, count: int, pairs: int) -> Iterator[str]:
    """Refused claims that no run contradicts and no reason covers."""
    for tried, rng in trials(sample, count, SAMPLES.index(sample)):
        for claim in undenied(tried, asserted(tried), rng, pairs):
            rest = claim.open & ~excused(tried, claim)
            if rest.any():
                said = f"result {claim.result}, case {claim.case}: {np.argwhere(rest)[0].tolist()} changes in no run"
                yield f"{said}, {tried.kind()}, moved as {[m.kind for m in claim.moves]}\n{tried.describe()}"


def is_needed(reason: Coarse, kinds: Sequence[str], operators: Sequence[str]) -> bool:
    """True if this reason alone excuses a refusal of these kinds and operators that no run justifies."""
    for sample in SAMPLES:
        if operators and sample.operator not in operators:
            continue
        for tried, rng in trials(sample, SOUGHT, SAMPLES.index(sample)):
            if tried.kind() in kinds:
                claims = [
                    c
                    for c in unsaid(tried)
                    if (c.open & reason.covers(tried, c) & ~excused(tried, c, reason, SWALLOWED)).any()
                ]
                for claim in undenied(tried, claims, rng, PAIRS_LONG):
                    if (claim.open & reason.covers(tried, claim) & ~excused(tried, claim, reason)).any():
                        return True
    return False


@pytest.mark.parametrize(
    ("name", "count", "pairs"),
    [
        *(pytest.param(name, FEW, PAIRS, id=f"{name}-few") for name in OPERATORS),
        *(pytest.param(name, TRIED_LONG, PAIRS_LONG, id=name, marks=pytest.mark.slow) for name in OPERATORS),
    ],
)
def test_what_a_rule_refuses_is_really_false(name: str, count: int, pairs: int) -> None:
    for sample in SAMPLES:
        if sample.operator == name:
            for text in refused_without_need(sample, count, pairs):
                raise AssertionError(
                    f"{text}\nNo run contradicts what the rule does not say: make it more precise, "
                    "or enter the reason in tests/diagnosis/lemmas/coarse.py"
                )


REASONS = [
    *(pytest.param(c, (k,), c.operators, id=f"{k}: {c.reason} {list(c.operators)}") for c in COARSE for k in c.kinds),
    *(pytest.param(c, c.kinds, (name,), id=f"{name}: {c.reason}") for c in COARSE for name in c.operators[1:]),
]


@pytest.mark.slow  # an excuse too many hides nothing by itself; each is sought in up to 150 trials of a sample
@pytest.mark.parametrize(("reason", "kinds", "operators"), REASONS)
def test_reason_to_say_less_is_still_needed(reason: Coarse, kinds: tuple[str, ...], operators: tuple[str, ...]) -> None:
    assert is_needed(reason, kinds, operators), "take it off the list"


def test_refusals_of_every_kind_are_many_and_often_held_against_runs() -> None:
    refused, held, operators = Counter[str](), Counter[str](), Counter[str]()
    for sample in SAMPLES[::3]:
        kinds = set()
        for tried, _ in trials(sample, TRIED, SAMPLES.index(sample)):
            refused[tried.kind()] += any(True for _ in unsaid(tried))
            if asserted(tried):
                held[tried.kind()] += 1
                kinds.add(tried.kind())
        operators.update(kinds)
    for kind in KINDS:
        assert held[kind] > 50
        assert held[kind] > refused[kind] / 3
        assert operators[kind] > 20
