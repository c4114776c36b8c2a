"""The rechecker on one operator at a time: it accepts the facts of the analysis, and none that runs contradict.

The operands and the facts about them are drawn by tests.diagnosis.sampling. The fact about the result is altered at
random, and runs of the operator in float64 decide whether it is then false.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch.fx import Node

from orderproof.diagnosis import certificate as writer
from orderproof.diagnosis.domain.fact import Fact
from orderproof.diagnosis.domain.move import FREE, STILL
from orderproof.diagnosis.domain.values import ValueRanges
from orderproof.errors import CertificateError
from orderproof.recheck.claim import read_claim
from orderproof.recheck.forms.einsum import Einsum
from orderproof.recheck.operator_table import OPERATORS as ENTRIES
from orderproof.recheck.relations import RELATIONS
from orderproof.recheck.relations import Relation as LawRelation
from orderproof.recheck.steps import StepChecker
from tests.diagnosis.corpus.operators.samples import OPERATORS, SAMPLES
from tests.diagnosis.sampling.contradictions import contradictions
from tests.diagnosis.sampling.operands import Given, Relation, Sample
from tests.diagnosis.sampling.trials import Trial, runs_of, trials

# The analysis derives true facts about these that the rechecker does not derive.
WEAKER = {
    "native_layer_norm", "_fused_rms_norm", "layer_norm", "group_norm",  # weights that depend on tokens mix them
    "linear",  # of a weight with one dimension, or known zeros with a bias
    "einsum",  # of operands of unlike rank with a label before an ellipsis
}  # fmt: skip

WITHOUT_FACTS = {"log_sigmoid_forward", "native_group_norm"}  # their rules refuse all that torch does not decompose


def step_checker(tokens: int, group: tuple[tuple[int, ...], ...] = ()) -> StepChecker:
    """A checker without inputs or stored values."""
    relation = LawRelation(RELATIONS["OP201"], tokens, group, None)
    return StepChecker(relation, finite_scores_assumed=True, inputs={}, stored={}, weights_are_opaque=True)


def checker(tried: Trial) -> StepChecker:
    """A checker that knows the facts about the operands."""
    moved = tried.relation.family == "permutation"
    group = tuple(tuple(map(int, p)) for p in tried.relation.move.permutations) if moved else ()  # type: ignore[union-attr]
    made = step_checker(tried.relation.size, group)
    operands = [n for n in tried.node.graph.nodes if n.op == "placeholder"]
    for role, node in zip(tried.roles, operands, strict=True):
        made.facts[node.name] = operand(made, role, node)
    return made


def operand(made: StepChecker, given: Given, node: Node) -> Any:
    value = node.meta["val"]
    dtype = str(value.dtype).removeprefix("torch.")
    if given.fact is not None:
        return read_claim(writer._fact(given.fact), list(value.shape), dtype, made.relation)
    tensor = None if given.buffer is None else torch.from_numpy(np.array(given.buffer)).to(value.dtype)
    return made.algebra.constant(tuple(value.shape), dtype, tensor)


def step(tried: Trial, facts: Any, lemma: str) -> dict[str, Any]:
    value, several = tried.node.meta["val"], isinstance(tried.node.meta["val"], list | tuple)
    parts = list(value) if several else [value]
    shapes, dtypes = [list(x.shape) for x in parts], [str(x.dtype).removeprefix("torch.") for x in parts]
    return {
        "node": tried.node.name, "operator": str(tried.node.target),
        "args": [writer._argument(x) for x in tried.node.args],
        "kwargs": {k: writer._argument(v) for k, v in tried.node.kwargs.items()},
        "shape": shapes if several else shapes[0], "dtype": dtypes if several else dtypes[0], "lemma": lemma,
        "fact": [writer._fact(f) for f in facts] if several else writer._fact(facts),
    }  # fmt: skip


def altered(fact: Fact, relation: Relation, chance: random.Random) -> Iterator[Fact]:
    """Facts that claim more, or something else."""
    shape, lowest = fact.shape, np.full((1,) * len(fact.shape), -1)
    for _ in range(4):
        place, level = tuple(chance.randrange(s) for s in shape), np.broadcast_to(fact.dependence, shape).copy()
        if level[place] >= 0:
            level[place] = chance.choice([-1, max(-1, min(int(level[place]), relation.size) - 1)])
            yield Fact(shape, fact.moves, level, fact.ranges)
    yield Fact(shape, fact.moves, lowest, fact.ranges)
    for d, size in enumerate(shape):
        group = [relation.move] if relation.family == "permutation" and size == relation.size else []
        for move in [m for m in (STILL, FREE, *group) if m is not fact.moves[d]]:
            moves = (*fact.moves[:d], move, *fact.moves[d + 1 :])
            yield from (Fact(shape, moves, level, fact.ranges) for level in (fact.dependence, lowest))
    for _ in range(3):
        known = fact.ranges or ValueRanges.ordinary(len(shape))
        low, high = (np.array(np.broadcast_to(end, shape), float) for end in (known.low, known.high))
        place = tuple(chance.randrange(s) for s in shape) if chance.random() < 0.6 else ...
        low[place], high[place] = chance.choice(MORE)
        yield Fact(shape, fact.moves, fact.dependence, ValueRanges(low, high))


MORE = [(0, 0), (1, 1), (-np.inf, -np.inf), (-np.inf, -1e9), (-1.1e9, -1e9), (-1, 1), (-np.inf, 1)]  # intervals


def accepts(made: StepChecker, claimed: dict[str, Any]) -> bool:
    made._checked.clear()
    try:
        with np.errstate(all="ignore"), torch.no_grad():
            made.check(claimed)
    except (CertificateError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, AttributeError):
        return False
    return True


def tally(samples: list[tuple[int, Sample]], count: int) -> Counter[str]:
    """Count accepted and refused claims: `count` trials of each of these samples, with their seeds."""
    found, chance = Counter[str](), random.Random(0)
    for seed, sample in samples:
        for tried, _ in trials(sample, count, seed):
            made, facts, lemma = checker(tried), tried.walk.facts[tried.node], tried.walk.lemmas[tried.node]
            if any(f.ranges is not None and np.isnan(f.ranges.low).any() for f in tried.facts()):
                continue  # the rechecker concludes nothing from NaN
            right = accepts(made, step(tried, facts, lemma))
            found["accepted" if right else f"refused {sample.operator.split('.')[0]}"] += 1
            parts, runs = tried.facts(), None
            for k, fact in enumerate(parts):
                if 0 in fact.shape or (len(parts) > 1 and k not in sample.reads):
                    continue
                for new in altered(fact, tried.relation, chance):
                    more = tuple(new if i == k else f for i, f in enumerate(parts))
                    if not accepts(made, step(tried, more if isinstance(facts, tuple) else new, lemma)):
                        found["altered, refused"] += 1
                        continue
                    runs = runs or [runs_of(tried, np.random.default_rng([7, q])) for q in range(2)]
                    tried.walk.facts[tried.node] = more if isinstance(facts, tuple) else new
                    denied = [x for r in runs for x in contradictions(tried, r) if not x.startswith("internal")]
                    assert not denied, tried.describe() + "\n" + "\n".join(denied)
                    tried.walk.facts[tried.node] = facts
                    found["altered, true, accepted"] += 1
    return found


def test_it_accepts_facts_about_operators_and_refuses_what_runs_contradict() -> None:
    found = tally(list(enumerate(SAMPLES))[::7], 1)
    assert found["altered, refused"] > 400


@pytest.mark.parametrize("operator", [o for o in OPERATORS if o not in WITHOUT_FACTS])
def test_an_operator_with_samples_has_an_entry(operator: str) -> None:
    """An entry of the table, or one that views, pointwise operators and transforms share."""
    name = operator.partition(".")[0]
    packet = getattr(torch.ops.aten, name)
    found = [getattr(packet, overload) for overload in packet.overloads()]
    shared = "fft" in name or any(one.is_view or torch.Tag.pointwise in one.tags for one in found)
    entries = {listed.partition(".")[0] for listed in ENTRIES}
    assert shared or name.strip("_") in entries


def test_a_label_stands_once_in_an_operand() -> None:
    with pytest.raises(ValueError, match="expected each label once in an operand; got 'yy', a diagonal"):
        Einsum(("yy",), "")


@cache
def tally_of(operator: str) -> Counter[str]:
    """Four trials of each sample of an operator."""
    return tally([(seed, sample) for seed, sample in enumerate(SAMPLES) if sample.operator == operator], 4)


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_it_accepts_facts_about_an_operator_and_refuses_what_runs_contradict(operator: str) -> None:
    refused = {k.removeprefix("refused ") for k in tally_of(operator) if k.startswith("refused ")}
    assert refused <= WEAKER


@pytest.mark.slow
def test_facts_about_operators_are_many_and_their_alterations_are_refused() -> None:
    found = sum(map(tally_of, OPERATORS), Counter[str]())
    assert found["accepted"] > 1000
    assert found["altered, refused"] > 15000


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "logcumsumexp"])
def test_a_running_value_is_ordinary_only_if_all_before_it_are(name: str) -> None:
    """[anything, ordinary]: the second running value may be anything too."""
    made = step_checker(2)
    level = {"shape": [1], "runs": [[-1, 1]]}
    before, after = (
        {"low": {"shape": [2], "runs": [[{"float": "-inf"}, 1], [low, 1]]},
         "high": {"shape": [2], "runs": [[{"float": "nan"}, 1], [high, 1]]}}
        for low, high in ((-1, 1), ({"float": "-inf"}, {"float": "nan"}))
    )  # fmt: skip
    fact = {"moves": ["identity"], "dependence": level, "values": before}
    made.facts["x"] = read_claim(fact, [2], "float32", made.relation)
    several, operator = name == "cummax", f"aten.{name}.default"
    for values, right in ((before, False), (after, True)):
        claimed = {**fact, "values": values}
        counted = {**fact, "values": None}
        step = {
            "node": "y", "operator": operator, "args": [{"node": "x"}, 0], "kwargs": {}, "lemma": "scan_dependence",
            "shape": [[2], [2]] if several else [2], "dtype": ["float32", "int64"] if several else "float32",
            "fact": [claimed, counted] if several else claimed,
        }  # fmt: skip
        assert accepts(made, step) is right
