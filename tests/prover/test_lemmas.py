"""Every rule against brute force: one operator on small operands, every permutation, every cut.

What a rule concludes (moves, levels, known values, constancy, ordinariness) is held against real runs in
float64, built from nothing but the facts about the operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

import pytest

from orderproof.prover.fact import ALWAYS
from orderproof.prover.rule import rules
from tests.prover.samples import SAMPLES
from tests.prover.samples_drawing import Sample, contradictions, missed, runs_of, trials

COUNT = 24  # trials of each sample
FEW = 5  # of them where the answer is to come soon
NAMES = [name for name, _ in groupby(SAMPLES, key=lambda s: s.operator)]
RUNS_NOWHERE_HERE = {
    "cudnn_batch_norm",  # refused by its rule, and needs a GPU to run
    "_unsafe_expand",  # no such operator in torch 2.13
}

# Operators that something false is said of, and what: the mistakes that are still there.
WRONG: dict[str, str] = {}  # operators of which something wrong is said, and why: strict xfails until it is not


def said_wrongly(sample: Sample, trials_of_each: int) -> Iterator[tuple[str, str]]:
    """What is said of the result that runs deny, and the trial it was said in."""
    for tried, rng in trials(sample, trials_of_each, SAMPLES.index(sample)):
        for text in contradictions(tried, runs_of(tried, rng)):
            yield text, tried.describe()


def cases() -> list[object]:
    """Each operator with few trials, and with all of them; where a mistake is known, with all of them only."""
    found: list[object] = []
    for name in dict.fromkeys(NAMES):
        if name in WRONG:
            wrong = pytest.mark.xfail(strict=True, raises=AssertionError, reason=WRONG[name])
            found.append(pytest.param(name, COUNT, marks=wrong, id=name))
        else:
            found.append(pytest.param(name, FEW, id=f"{name}-few"))
            found.append(pytest.param(name, COUNT, marks=pytest.mark.slow, id=name))
    return found


@pytest.mark.parametrize(("name", "count"), cases())
def test_what_a_rule_says_of_an_operator_holds_in_every_run(name: str, count: int) -> None:
    for sample in SAMPLES:
        if sample.operator == name:
            for text, trial in said_wrongly(sample, count):
                raise AssertionError(f"{text}\n{trial}")


@pytest.mark.parametrize("rule", list(rules()), ids=lambda r: f"{r.lemma}-{r.apply.__name__}")
def test_every_operator_of_a_rule_has_a_sample(rule: object) -> None:
    operators = set(rule.operators) - RUNS_NOWHERE_HERE - {"<pointwise>"}  # type: ignore[attr-defined]
    sampled = {re.sub(r"\.default$", "", s.operator) for s in SAMPLES}
    sampled |= {name.split(".")[0] for name in sampled} | {f"{name}.default" for name in sampled}
    assert operators - sampled == set()


# ---------------------------------------------------------------- the other direction: what is refused is really false

TRIED = 10  # trials of each sample
# Operators that refuse something true of ordinary operands, and why: lemmas that could still be found.
INCOMPLETE = {
    "add.Tensor": "alpha=0 makes the other operand irrelevant",
    "einsum": "an index repeated in one operand has no lemma",
    "_fused_rms_norm": "its second result, of another dtype and shape, has no lemma",
    "group_norm": "groups of one channel each may move with it",
    "native_group_norm": "the functional form has no lemma; group_norm has",
    "batch_norm": "in training mode it could be treated as a reduction over the batch",
    "log_sigmoid_forward": "an elementwise operator with several results has no lemma",
    "roll": "rows that are all alike, in a roll of the flattened tensor",
    "slice_scatter": "a write over everything leaves nothing of what was there",
    "conv1d": "a width of 1 with weights that are the same for every channel",
    "conv1d.padding": "channels that move, with weights that are the same for every one",
    "convolution": "channels that move, with weights that are the same for every one",
}


def refused_without_need(name: str) -> tuple[int, list[str]]:
    """How often a rule said nothing of ordinary operands, and the refusals that real runs do not bear out."""
    refusals, needless = 0, []
    for sample in (s for s in SAMPLES if s.operator == name):
        for tried, rng in trials(sample, TRIED, SAMPLES.index(sample)):
            if tried.ordinary() and any(bool((f.level >= ALWAYS).all()) for f in tried.facts()):
                refusals += 1
                found = [m for m in missed(tried, runs_of(tried, rng)) if "nothing said" in m]
                needless += [f"{m}\n{tried.describe()}" for m in found[:1]]
    return refusals, needless


@pytest.mark.parametrize("name", list(dict.fromkeys(NAMES)))
def test_what_a_rule_refuses_is_really_false(name: str) -> None:
    _, needless = refused_without_need(name)
    if name in INCOMPLETE:
        assert needless, f"{name} refuses nothing true any more: take it off the list"
    else:
        assert needless == []


def test_rules_refuse_often_enough_for_that_to_mean_something() -> None:
    refusals = [refused_without_need(name)[0] for name in list(dict.fromkeys(NAMES))[::3]]
    assert sum(refusals) > 30
    assert sum(count > 0 for count in refusals) > 12
