"""Every statement of a rule about small operands holds in real runs, for every permutation and every cut.

The statements are moves, levels, known values, constancy and ordinariness. The runs are in float64 and built from
nothing but the facts about the operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from orderproof.diagnosis.rule import rules
from tests.diagnosis.corpus.operators.samples import OPERATORS, SAMPLES
from tests.diagnosis.sampling.contradictions import contradictions
from tests.diagnosis.sampling.operands import Sample
from tests.diagnosis.sampling.trials import runs_of, trials
from tests.pairs import one_in

COUNT = 24  # trials of each sample
FEW = 5  # of them where the answer is to come soon

RUNS_NOWHERE_HERE = {
    "cudnn_batch_norm",  # refused by its rule, and needs a GPU to run
    "_unsafe_expand",  # no such operator in torch 2.13
}

WRONG: dict[str, str] = {}  # operators of which something wrong is said, and why: strict xfails until it is not


def said_wrongly(sample: Sample, trials_of_each: int) -> Iterator[tuple[str, str]]:
    """Statements about the result that runs contradict, each with its trial."""
    for tried, rng in trials(sample, trials_of_each, SAMPLES.index(sample)):
        for text in contradictions(tried, runs_of(tried, rng)):
            yield text, tried.describe()


def cases() -> list[object]:
    """Each operator with few trials, and with all of them; where a mistake is known, with all of them only."""
    found: list[object] = []
    for name in OPERATORS:
        if name in WRONG:
            wrong = pytest.mark.xfail(strict=True, raises=AssertionError, reason=WRONG[name])
            found.append(pytest.param(name, COUNT, marks=wrong, id=name))
        else:
            found.append(pytest.param(name, FEW, id=f"{name}-few"))
            found.append(pytest.param(name, COUNT, marks=pytest.mark.slow, id=name))
    return found


@pytest.mark.parametrize(("name", "count"), one_in(6, cases()))
def test_what_a_rule_says_of_an_operator_holds_in_every_run(name: str, count: int) -> None:
    samples = [sample for sample in SAMPLES if sample.operator == name]
    wrong = (f"{text}\n{trial}" for sample in samples for text, trial in said_wrongly(sample, count))
    assert next(wrong, None) is None


@pytest.mark.parametrize("rule", list(rules()), ids=lambda r: f"{r.lemma}-{r.apply.__name__}")
def test_every_operator_of_a_rule_has_a_sample(rule: object) -> None:
    operators = set(rule.operators) - RUNS_NOWHERE_HERE - {"<pointwise>"}  # type: ignore[attr-defined]
    sampled = {re.sub(r"\.default$", "", s.operator) for s in SAMPLES}
    sampled |= {name.split(".")[0] for name in sampled} | {f"{name}.default" for name in sampled}
    assert operators - sampled == set()
