"""Steps that repeat are interpreted once, and the facts are the same as if each were interpreted by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn
from torch.fx import Node

from orderproof import laws
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk
from orderproof.diagnosis.domain.fact import Fact
from orderproof.diagnosis.memoization import StepMemo
from tests.diagnosis.corpus.repeated_steps import DIFFERENT, GRAPHS, shared
from tests.diagnosis.walking import Program, examine, violations, walk


@contextmanager
def alone() -> Iterator[None]:
    """Interpret every step by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StepMemo, "key", lambda *_: None)
        yield


LAWS = ["permutation", "reversal", "causal", "padding", "packing", "batch"]


def same(one: Fact, two: Fact) -> bool:
    """Whether two facts say the same."""
    if (one.ranges is None) != (two.ranges is None):
        return False
    pairs = [(one.dependence, two.dependence)]
    if one.ranges is not None and two.ranges is not None:
        pairs += [(one.ranges.low, two.ranges.low), (one.ranges.high, two.ranges.high)]
    equal = all(a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in pairs)
    return equal and one.shape == two.shape and one.moves == two.moves


def flat(facts: object) -> list[Fact]:
    return list(facts) if isinstance(facts, tuple) else [facts]  # type: ignore[list-item]


def differing(one: LawWalk, two: LawWalk) -> list[Node]:
    """The nodes about which two walks of one graph say different things."""
    assert set(one.walk.facts) == set(two.walk.facts)
    return [
        n
        for n, facts in one.walk.facts.items()
        if len(flat(facts)) != len(flat(two.walk.facts[n]))
        or not all(same(a, b) for a, b in zip(flat(facts), flat(two.walk.facts[n]), strict=True))
    ]


def captured(name: str) -> AuditContext:
    torch.manual_seed(0)
    made = GRAPHS[name]
    return examine(made if isinstance(made, nn.Module) else Program(made))


@pytest.mark.parametrize("name", list(GRAPHS))
def test_shared_steps_say_what_each_would_alone(name: str) -> None:
    context = captured(name)
    for law in LAWS:
        for part in laws.find_proved_law(law).subrelations(2):
            done = walk(context, part)
            with alone():
                other = walk(context, part)
            assert other.walk.first_occurrence == {}
            assert differing(done, other) == []
            assert done.walk.lemmas == other.walk.lemmas
            assert done.walk.assumptions == other.walk.assumptions
            assert done.walk.used_names == other.walk.used_names
            assert [(b.node, b.reason) for b in done.walk.breaks] == [(b.node, b.reason) for b in other.walk.breaks]
            assert list(violations(context, done)) == []


def test_layers_that_repeat_are_interpreted_once() -> None:
    twice = walk(examine(Program(lambda x: x.exp() + x.exp())), laws.find_proved_law("causal"))
    assert len(twice.walk.first_occurrence) == 1
    assert len(walk(captured("weighted"), laws.find_proved_law("causal")).walk.first_occurrence) > 10


@pytest.mark.parametrize("name", list(DIFFERENT))
def test_steps_that_differ_are_not_shared(name: str) -> None:
    assert shared(name) == set()
