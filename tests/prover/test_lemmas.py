"""Every rule against brute force: one operator on small operands, every permutation, every cut.

What a rule concludes (moves, levels, known values, constancy, ordinariness) is held against real runs in
float64, built from nothing but the facts about the operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

import pytest

from orderproof.prover.rule import rules
from tests.prover.samples import SAMPLES
from tests.prover.samples_drawing import Sample, contradictions, runs_of, trials

COUNT = 24  # trials of each sample
NAMES = [name for name, _ in groupby(SAMPLES, key=lambda s: s.operator)]
RUNS_NOWHERE_HERE = {
    "cudnn_batch_norm",  # refused by its rule, and needs a GPU to run
    "_unsafe_expand",  # no such operator in torch 2.13
}

WRONG: dict[str, str] = {}  # operators said something false of, and what: the mistakes that are still there


def said_wrongly(sample: Sample) -> Iterator[tuple[str, str]]:
    """What is said of the result that runs deny, and the trial it was said in."""
    for tried, rng in trials(sample, COUNT, SAMPLES.index(sample)):
        for text in contradictions(tried, runs_of(tried, rng)):
            yield text, tried.describe()


def cases() -> list[object]:
    return [
        pytest.param(
            name,
            marks=[pytest.mark.xfail(strict=True, raises=(AssertionError, RuntimeWarning), reason=WRONG[name])]
            if name in WRONG
            else [],
        )
        for name in dict.fromkeys(NAMES)
    ]


@pytest.mark.parametrize("name", cases())
def test_what_a_rule_says_of_an_operator_holds_in_every_run(name: str) -> None:
    for sample in SAMPLES:
        if sample.operator == name:
            for text, trial in said_wrongly(sample):
                assert "after a break" in text, f"{text}\n{trial}"  # a mistake of the walk, which has its own test


def test_result_of_which_nothing_follows_does_not_pass_for_ordinary() -> None:
    sample = next(s for s in SAMPLES if s.operator == "slice.Tensor")
    assert [text for text, _ in said_wrongly(sample) if "after a break" in text] == []


@pytest.mark.parametrize("rule", list(rules()), ids=lambda r: f"{r.lemma}-{r.apply.__name__}")
def test_every_operator_of_a_rule_has_a_sample(rule: object) -> None:
    operators = set(rule.operators) - RUNS_NOWHERE_HERE - {"<pointwise>"}  # type: ignore[attr-defined]
    sampled = {re.sub(r"\.default$", "", s.operator) for s in SAMPLES}
    sampled |= {name.split(".")[0] for name in sampled} | {f"{name}.default" for name in sampled}
    assert operators - sampled == set()
