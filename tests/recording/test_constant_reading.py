"""Recordings may read constants, never tokens or weights: models that must be refused, and twins that must not be.

A refusal is no loss of soundness; a recording is one where the graph is not the model. So every program that is
recorded here is also run, on other tokens than those it was recorded with.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from orderproof import audit, laws
from orderproof.auditing.record.context import AuditContext
from orderproof.errors import CaptureError
from orderproof.recording.capture import capture
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import execute
from tests.auditing.internals import prove_law
from tests.diagnosis.corpus.parts import attend, rare
from tests.diagnosis.corpus.recording import RECORDED, REFUSED, ROWS, TOKENS, WIDTH, Model, doubled_if
from tests.diagnosis.corpus.recordings_accepted import branch_on_a_constant, sizes_from_a_constant
from tests.diagnosis.corpus.recordings_refused import branch_through_a_list, size_from_a_mask
from tests.diagnosis.walking import Program, examine


def tokens(seed: int) -> Tensor:
    return torch.randn(ROWS, TOKENS, WIDTH, generator=torch.Generator().manual_seed(seed))


def record(function: Callable[[Model, Tensor], Tensor]) -> CapturedGraph:
    """The graph of a function, compared with the function on other tokens."""
    made = capture(Model(function).eval(), (tokens(0),))
    weights = {f"{name}": value for name, value in made.values.items()}
    for seed in range(1, 6):
        model = Model(function).eval()
        with torch.no_grad():
            model.weight.copy_(weights.get("weight", model.weight))
            expected = model(tokens(seed))
        (found,) = execute(made, (tokens(seed),)).values()
        assert torch.allclose(expected, found, atol=1e-5)
    return made


@pytest.mark.parametrize("name", REFUSED)
def test_a_recording_that_needs_more_than_constants_is_refused(name: str) -> None:
    with pytest.raises(CaptureError, match="the graph cannot be recorded"):
        record(REFUSED[name])


def test_constants_are_read_where_they_decide() -> None:
    assert record(branch_on_a_constant).read
    assert record(sizes_from_a_constant).read


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_that_needs_constants_is_the_model(name: str) -> None:
    record(RECORDED[name])


def test_a_recording_that_needs_nothing_reads_nothing() -> None:
    assert not record(lambda _, x: x * 2).read


def test_a_refusal_names_the_line_that_reads_a_token() -> None:
    line = branch_through_a_list.__code__.co_firstlineno + 2
    with pytest.raises(CaptureError, match=rf"control flow depends on data .*, recordings_refused.py:{line}"):
        record(branch_through_a_list)
    with pytest.raises(CaptureError, match="the size of a tensor depends on data .aten.index.Tensor"):
        record(size_from_a_mask)


def test_a_module_is_left_as_it_was() -> None:
    model = Model(branch_on_a_constant)
    capture(model, (tokens(0),))
    assert "forward" not in vars(model)


def _random_program(draw: random.Random) -> Callable[[Model, Tensor], Tensor]:
    """Constants and tokens, mixed and written into each other at random; then a branch on any of them."""
    steps = [(draw.randrange(9), draw.random(), draw.random()) for _ in range(draw.randrange(2, 9))]
    asked, threshold = draw.random(), draw.uniform(-2, 6)

    def program(model: Model, x: Tensor) -> Tensor:
        held = [torch.arange(4.0), torch.zeros(4), x[0, 0].clone()]
        for kind, one, two in steps:
            a, b = held[int(one * len(held))], held[int(two * len(held))]
            if kind == 0:
                held.append(a + b)
            elif kind == 1:
                held.append(a.view(2, 2).view(4))
            elif kind == 2:
                a.add_(b)
            elif kind == 3:
                a[1:3] = b[0:2].clone()
            elif kind == 4:
                held.append(torch.where(a > 0, b, torch.ones_like(b)))
            elif kind == 5:
                a.view(2, 2)[0].copy_(b[2:].clone())
            elif kind == 6:
                held.append(torch.zeros_like(a))
            elif kind == 7:
                held.append(a.flip(0).contiguous())
            else:
                held.append(a.detach())
        return doubled_if(x, held[int(asked * len(held))].sum() > threshold)

    return program


def test_random_programs_that_are_recorded_are_their_models() -> None:
    draw = random.Random(0)
    outcomes = []
    for _ in range(60):
        program = _random_program(draw)
        try:
            outcomes.append(record(program).read)
        except CaptureError:
            outcomes.append(False)
    assert 10 < sum(outcomes) < 55, "a program of each kind, or this test shows nothing"


def test_a_law_of_a_model_that_branches_on_a_constant_is_proved() -> None:
    def decide(x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return attend(x, hidden) if hidden.any() else attend(x, hidden.T)

    (finding,) = prove_law(examine(Program(decide)), laws.find_proved_law("causal"))
    assert finding.verdict == "proved"
    assert finding.scope.lengths == "this"


def test_a_law_of_a_model_that_branches_on_a_late_token_is_not_proved() -> None:
    def decide(x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return attend(x, hidden) if x[0, -1, 0] > 100 else attend(x * 2, hidden)

    (finding,) = prove_law(examine(Program(decide)), laws.find_proved_law("causal"))
    assert finding.verdict == "undecided"
    assert "control flow depends on data" in finding.reason


def asks(question: Callable[[Tensor], Tensor]) -> Program:
    """A model that masks more when it can answer a question, and less when the exporter cannot."""

    def decide(x: Tensor) -> Tensor:
        try:
            answer = bool(question(x))
        except GuardOnDataDependentSymNode:
            answer = False
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return attend(x, hidden if answer else hidden.logical_not().triu(9))

    return Program(decide)


def test_a_constant_that_decides_a_branch_behind_the_exporter_is_read() -> None:
    context = examine(asks(lambda x: torch.ones_like(x).all()))
    assert context.captured.read
    assert context.graph_mismatch is None


def test_a_token_that_decides_a_branch_behind_the_exporter_is_refused() -> None:
    context = examine(asks(lambda x: (x.abs() >= 0).all()))
    assert "control flow depends on data" in (context.export_failure or "")


def test_a_graph_without_values_reads_the_constants_that_its_twin_reads() -> None:
    context = examine(asks(lambda x: torch.ones_like(x).all()))
    twin = context.subject
    weightless = AuditContext(replace(twin, device="meta", build_tiny_twin=lambda: twin), context.length)
    assert weightless.captured.read


def caught(question: Callable[[Tensor], Any]) -> Callable[[Model, Tensor], Tensor]:
    """A model that goes on where the answer to a question cannot be had; no random token shows that it asks."""

    def program(model: Model, x: Tensor) -> Tensor:
        with suppress(Exception):
            if question(x[:, -1]):
                return x + rare(x[:, -1:])
        return x

    return program


@pytest.mark.parametrize(
    "question",
    [
        lambda x: (x > 50).any(),
        lambda x: x.max().item() > 50,
        lambda x: float(x.max()) > 50,
        lambda x: x.numpy().max() > 50,
        lambda x: np.asarray(x).max() > 50,
        lambda x: max(x.flatten().tolist()) > 50,
        lambda x: len(x[x > 50]) > 0,
        lambda x: not torch.allclose(x, x.clamp(max=50)),
    ],
)
def test_a_model_that_catches_the_refusal_to_read_a_token_is_refused(question: Callable[[Tensor], Any]) -> None:
    with pytest.raises(CaptureError, match="the graph cannot be recorded"):
        record(caught(question))


def test_one_tensor_under_two_names_has_both() -> None:
    class Twice(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Tensor]:
            made = x * 2
            return {"first": made, "second": made}

    made = capture(Twice(), (tokens(0),))
    assert list(execute(made, (tokens(1),))) == ["first", "second"]


def test_a_check_of_a_distribution_is_no_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    # torch.compile turns the checks off for the whole process when it is first imported
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    context = examine(Program(lambda x: torch.distributions.Categorical(logits=x).entropy()))
    assert context.export_failure is None
    assert torch.distributions.Distribution._validate_args


class Decays(nn.Module):
    """A mask that is converted to the device and the dtype of a buffer, as in RetNet."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("decay", torch.rand(1))

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1]).to(self.decay)
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).to(self.decay)
        return ((places[:, None] - places) * self.decay).masked_fill(later.bool(), torch.inf).neg().exp() @ x


def test_a_constant_keeps_its_values_on_the_device_of_a_buffer() -> None:
    (finding,) = audit(Decays(), inputs=torch.randn(2, 7, 8), laws=["causal"]).findings
    assert finding.verdict == "proved"
