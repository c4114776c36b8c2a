"""Random small programs: every fact at every node holds in float64 runs, and nothing proved is contradicted.

The comparison here is a second implementation of the node check: it shares only `carry` with the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from orderproof.diagnosis.analysis import Analysis, analyze
from orderproof.diagnosis.domain.constants import Constants
from orderproof.diagnosis.domain.fact import Fact, pull_back
from orderproof.diagnosis.domain.move import FREE
from orderproof.diagnosis.uniform_constants import can_be_uniform, make_uniform
from orderproof.laws import InputChange, ProvedLaw, TokenDim, proved_laws
from orderproof.recording.capture import capture
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import execute_nodes
from tests.diagnosis.corpus.random_programs.machine import Machine, recorded
from tests.diagnosis.corpus.random_programs.values import BATCH, OPERATIONS, TOKENS, WIDTH

TOLERANCE = 1e-9  # of the largest ordinary value of the run, in float64
SINGLE = 1e-6  # known values are computed in the model's own float32
MASK_ROUNDING = 1e-6  # rounding of a number next to a mask of 1e9, over the tolerance
ORDINARY = 1e6  # a larger value is a mask
SCORES = 2e4  # larger ordinary values break the assumption that masks rest on
Values = Mapping[Any, Any]
NUMBERS = st.integers(0, 11)
PROGRAMS = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), *[NUMBERS] * 4), min_size=8, max_size=25)


def tokens(seed: int) -> Tensor:
    return torch.randn(BATCH, TOKENS, WIDTH, generator=torch.Generator().manual_seed(seed)).double()


def redrawn(captured: CapturedGraph, seed: int) -> dict[str, Tensor]:
    """Other weights, the same buffers."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(value.shape, generator=generator).double() if name in captured.parameters else value
        for name, value in captured.values.items()
    }


def walked(captured: CapturedGraph, law: ProvedLaw, *, trusting: bool = False, repairing: bool = False) -> Analysis:
    constants = Constants(
        captured.graph,
        captured.state,
        captured.values,
        parameters=captured.parameters,
        trust_parameters=trusting,
    )
    start = {captured.inputs[0]: law.input_fact((BATCH, TOKENS, WIDTH), 1)}
    return analyze(captured.graph, constants, start, continue_after_break=repairing)


class Runs:
    """Two runs of a graph, value by value; made once for each change and each state."""

    def __init__(self, captured: CapturedGraph) -> None:
        self.captured = captured
        self.states = (None, redrawn(captured, 5))
        self.first = tuple(self._values(tokens(1), s) for s in self.states)

    def _values(self, x: Tensor, state: Mapping[str, Tensor] | None) -> Values:
        with torch.no_grad():
            return dict(execute_nodes(self.captured, (x,), float64=True, state=state))

    def pairs(self, law: ProvedLaw, *, state: int) -> Iterator[tuple[InputChange, int, int, Values, Values]]:
        """The two runs of every generator and every cut."""
        for change, generator, case in law.proof_cases(TOKENS, BATCH):
            second = change.apply(tokens(1), tokens(2), 1)
            yield change, generator, case, self.first[state], self._values(second, self.states[state])

    @property
    def bounded(self) -> bool:
        """Whether scores are as small as a mask assumes, and every value a number."""
        values = [v for run in self.first for v in run.values() if isinstance(v, Tensor)]
        return all(_bounded(v) for v in values)


def _bounded(value: Tensor) -> bool:
    x = value.double().abs()
    return not bool(((x > SCORES) & (x < ORDINARY * 50)).any()) and not bool(x.isnan().any())


def arrays(value: Any) -> list[NDArray[Any] | None]:
    parts = value if isinstance(value, (tuple, list)) else [value]
    return [v.detach().numpy() if isinstance(v, Tensor) else None for v in parts]


def apart(a: NDArray[Any], b: NDArray[Any], where: NDArray[Any], scale: float, tolerance: float = TOLERANCE) -> bool:
    """Whether two arrays differ at the marked elements by more than rounding."""
    a, b, where = np.broadcast_arrays(a, b, where)
    if a.dtype.kind in "biu":
        return bool((a != b)[where].any())
    x, y = a[where].astype(float), b[where].astype(float)
    with np.errstate(invalid="ignore"):
        close = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= tolerance * np.maximum(scale, np.abs(x)))
    return not bool(close.all())


def scale_of(values: Values) -> float:
    """What rounding is measured against: the largest ordinary value of a run."""
    largest = 1.0
    for value in values.values():
        for a in arrays(value):
            if a is not None and a.dtype.kind == "f":
                finite = np.abs(a[np.isfinite(a) & (np.abs(a) < 1e12)])
                usual = float(finite[finite < ORDINARY].max(initial=0.0))
                largest = max(largest, usual, MASK_ROUNDING * float(finite.max(initial=0.0)))
    return largest


def wrong_claims(
    walk: Analysis, captured: CapturedGraph, generator: int, case: int, first: Values, second: Values, scale: float
) -> Iterator[str]:
    """Every claim of a walk that two runs contradict."""
    for node in captured.graph.nodes:
        facts = walk.facts.get(node)
        if facts is None or node not in first or node.name in captured.state:
            continue
        flat: tuple[Fact, ...] = facts if isinstance(facts, tuple) else (facts,)
        for fact, a, b in zip(flat, arrays(first[node]), arrays(second[node]), strict=True):
            if a is None or b is None:
                continue
            assert len(fact.moves) == a.ndim == fact.dependence.ndim, f"{node.name} ({node.target}): rank of the fact"
            for what in _wrong(fact, a, b, generator, case, scale):
                yield f"{node.name} ({node.target}) by {walk.lemmas.get(node)}: {what} [{fact.describe()}]"


def _wrong(fact: Fact, a: NDArray[Any], b: NDArray[Any], generator: int, case: int, scale: float) -> Iterator[str]:
    if apart(a, pull_back(b, fact.moves, fact.shape, generator), fact.dependence < case, scale):
        yield "the second run is not what the fact says"
    for d, move in enumerate(fact.moves):
        if move is FREE and any(apart(x, x.take([0], axis=d), np.array(True), scale) for x in (a, b)):
            yield f"dimension {d} is not constant"
    if fact.ranges is not None:
        exact = fact.ranges.exact
        if any(apart(np.broadcast_to(fact.ranges.low, x.shape), x, exact, scale, SINGLE) for x in (a, b)):
            yield "known values are others"


def claims(law: ProvedLaw, fact: Fact) -> Iterator[tuple[TokenDim, ...]]:
    """Every choice of token dimensions for which the law is proved of a tensor with this fact."""
    if law.reads_rows and fact.shape[:1] != (BATCH,):
        return
    long = [d for d, size in enumerate(fact.shape) if size == TOKENS]
    for count in range(1 if law.family == "independence" else 0, len(long) + 1):
        for dims in combinations(long, count):
            chosen = tuple(TokenDim(d) for d in dims)
            if law.missing_property(fact, chosen, TOKENS) is None:
                yield chosen


def wrong_proofs(
    walk: Analysis,
    captured: CapturedGraph,
    law: ProvedLaw,
    change: InputChange,
    first: Values,
    second: Values,
    scale: float,
) -> Iterator[str]:
    """Every proof of the law, for an output, that two runs contradict."""
    for node in captured.outputs.values():
        for dims in claims(law, walk.fact(node)):
            expected, found = law.expected_and_actual(first[node], second[node], dims, change)
            if apart(expected.numpy(), found.numpy(), np.array(True), scale):
                claim = f"{node.name} ({node.target}): {law.name} is proved for {dims}"
                yield f"{claim}, but {change.description} shows otherwise"


def wrong(captured: CapturedGraph, law: ProvedLaw) -> Iterator[str]:
    """Everything a walk says, for these weights or for all, that runs contradict (with other weights too)."""
    runs = Runs(captured)
    if not runs.bounded:
        return
    strict, trusting = walked(captured, law), walked(captured, law, trusting=True)
    for walks, state in (((strict, trusting), 0), ((strict,), 1)):
        for change, generator, case, first, second in runs.pairs(law, state=state):
            scale = scale_of(first)
            for walk in walks:
                yield from wrong_claims(walk, captured, generator, case, first, second, scale)
                yield from wrong_proofs(walk, captured, law, change, first, second, scale)


def without_order(captured: CapturedGraph, law: ProvedLaw) -> CapturedGraph | None:
    """The graph with every constant through which order enters made uniform."""
    breaks = [b for b in walked(captured, law, repairing=True).breaks if can_be_uniform(b)]
    return make_uniform(captured, breaks)[0] if breaks else None


def check(captured: CapturedGraph) -> None:
    """Hold everything the prover says of a program against runs."""
    for law in proved_laws():
        assert list(wrong(captured, law)) == []
        if law.name == "permutation" and (rewritten := without_order(captured, law)) is not None:
            assert list(wrong(rewritten, law)) == []


COMMON = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=8, derandomize=True, **COMMON)
@given(PROGRAMS)
def test_nothing_said_of_a_random_program_is_contradicted(program: list[Any]) -> None:
    check(recorded(Machine(program)))


@settings(max_examples=2, derandomize=True, **COMMON)
@given(PROGRAMS)
def test_nothing_said_of_a_random_module_as_captured_is_contradicted(program: list[Any]) -> None:
    check(capture(Machine(program), (tokens(0).float(),)))


@pytest.mark.slow
@settings(max_examples=1000, derandomize=False, print_blob=True, **COMMON)
@given(PROGRAMS)
def test_nothing_said_of_many_random_programs_is_contradicted(program: list[Any]) -> None:
    check(recorded(Machine(program)))


def test_random_programs_prove_and_refuse() -> None:
    """The generator is of use: of its programs many values are proved, and many are not."""
    generator = torch.Generator().manual_seed(0)
    names = sorted(OPERATIONS)
    proved = dict.fromkeys((law.name for law in proved_laws()), 0)
    values = 0
    for _ in range(12):
        kinds = torch.randint(len(names), (16,), generator=generator).tolist()
        numbers = torch.randint(12, (16, 4), generator=generator).tolist()
        program = [(names[k], *row) for k, row in zip(kinds, numbers, strict=True)]
        captured = recorded(Machine(program))
        values += len(captured.outputs)
        for law in proved_laws():
            walk = walked(captured, law)
            proved[law.name] += sum(any(True for _ in claims(law, walk.fact(n))) for n in captured.outputs.values())
    assert values >= 100
    for name, count in proved.items():
        assert 0.1 * values < count < 0.9 * values, (name, count, values)


def test_attention_of_operands_of_unlike_rank_is_no_internal_failure() -> None:
    captured = recorded(Machine([("widened", 0, 0, 1, 0), ("attend_whole", 0, 1, 0, 0)]))
    assert any("scaled_dot_product" in str(n.target) for n in captured.graph.nodes)
    for law in proved_laws():
        assert [b.reason for b in walked(captured, law).breaks if b.reason.startswith("internal")] == []
