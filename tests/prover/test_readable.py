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

from orderproof import laws
from orderproof.auditing.examine import Examination
from orderproof.errors import CaptureError
from orderproof.prover.capture import Captured, capture
from orderproof.prover.run import run
from tests.audit.internals import prove_law
from tests.prover.walking import Program, examine

ROWS, TOKENS, WIDTH = 2, 7, 4
Function = Callable[..., Tensor]


class Model(nn.Module):
    """A function of x with a weight, a buffer and a tensor that is neither."""

    def __init__(self, function: Callable[[Model, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.register_buffer("table", torch.arange(float(TOKENS)))
        self.loose = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def tokens(seed: int) -> Tensor:
    return torch.randn(ROWS, TOKENS, WIDTH, generator=torch.Generator().manual_seed(seed))


def record(function: Callable[[Model, Tensor], Tensor]) -> Captured:
    """The graph of a function, held against it on other tokens."""
    made = capture(Model(function).eval(), (tokens(0),))
    weights = {f"{name}": value for name, value in made.values.items()}
    for seed in range(1, 6):
        model = Model(function).eval()
        with torch.no_grad():
            model.weight.copy_(weights.get("weight", model.weight))
            expected = model(tokens(seed))
        (found,) = run(made, (tokens(seed),)).values()
        assert torch.allclose(expected, found, atol=1e-5)
    return made


def doubled_if(x: Tensor, condition: object) -> Tensor:
    return x * 2 if condition else x


REFUSED: dict[str, Callable[[Model, Tensor], Tensor]] = {}
RECORDED: dict[str, Callable[[Model, Tensor], Tensor]] = {}


def refused(function: Callable[[Model, Tensor], Tensor]) -> Callable[[Model, Tensor], Tensor]:
    REFUSED[function.__name__] = function
    return function


def recorded(function: Callable[[Model, Tensor], Tensor]) -> Callable[[Model, Tensor], Tensor]:
    RECORDED[function.__name__] = function
    return function


# Reading a token, in every way that Python has.


@refused
def branch_on_a_token(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, x[0, 0, 0] > 0)


@refused
def branch_on_a_norm(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, x.norm().item() > 5)


@refused
def branch_through_a_float(model: Model, x: Tensor) -> Tensor:
    return x * float(x.sum())


@refused
def branch_through_numpy(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, x.numpy().sum() > 0)


@refused
def branch_through_a_list(model: Model, x: Tensor) -> Tensor:
    return x * 2 if x.tolist()[0][0][0] > 0 else x


@refused
def branch_on_a_size(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, len(x[x > 0]) > 20)


@refused
def size_from_a_mask(model: Model, x: Tensor) -> Tensor:
    return x[x > 0]


@refused
def size_from_unique(model: Model, x: Tensor) -> Tensor:
    return x * torch.unique((x > 0).long()).numel()


@refused
def branch_on_allclose(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.allclose(x, x.flip(1)))


@refused
def branch_on_a_constant_at_a_token(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.arange(TOKENS)[x[0, :, 0].argmax()] > 3)


@refused
def branch_on_a_tensor_made_of_a_token(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.full((3,), x.sum().item()).sum() > 0)


# Constants that tokens were written into.


@refused
def token_written(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    seen[2] = x[0, 0, 0]
    return doubled_if(x, seen.sum() > 0)


@refused
def token_written_into_a_view(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    seen.view(1, TOKENS)[:, 2:3].copy_(x[0, 0, :1])
    return doubled_if(x, seen.sum() > 0)


@refused
def token_written_into_the_base_of_a_view(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    view = seen[2:3]
    seen.add_(x[0, :, 0])
    return doubled_if(x, view.sum() > 0)


@refused
def token_written_in_other_bits(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH, dtype=torch.int32)
    seen.view(torch.float32).copy_(x[0, 0])
    return doubled_if(x, seen.sum() > 0)


@refused
def written_at_the_place_of_a_token(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    seen[x[0, :, 0].argmax()] = 1
    return doubled_if(x, seen[3] > 0)


@refused
def written_at_a_place_read_from_a_token(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(TOKENS)
    place = x[0, :, 0].argmax().item()
    torch._check(place >= 0)
    torch._check(place < TOKENS)
    seen.select(0, place).fill_(1)
    return doubled_if(x, seen[3] > 0)


@refused
def token_added_in_place(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    seen += x[0, 0]
    return doubled_if(x, seen.sum() > 0)


@refused
def token_put_out(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    torch.add(x[0, 0], 1, out=seen)
    return doubled_if(x, seen.sum() > 0)


@refused
def token_added_in_a_list(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    torch._foreach_add_([seen], [x[0, 0]])
    return doubled_if(x, seen.sum() > 0)


@refused
def token_put_as_data(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(ROWS, TOKENS, WIDTH)
    seen.data = x
    return doubled_if(x, seen.sum() > 0)


@refused
def token_put_as_storage(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(ROWS, TOKENS, WIDTH)
    seen.set_(x)
    return doubled_if(x, seen.sum() > 0)


@refused
def token_scattered(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    seen.scatter_(0, x[0, 0].argmax()[None], 1.0)
    return doubled_if(x, seen[0] > 0)


class Writing(torch.autograd.Function):
    """A write that an autograd function hides."""

    @staticmethod
    def forward(ctx: object, seen: Tensor, x: Tensor) -> Tensor:
        seen.copy_(x[0, 0])
        return seen


@refused
def token_written_by_an_autograd_function(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    Writing.apply(seen, x)
    return doubled_if(x, seen.sum() > 0)


@refused
def token_written_after_the_constant_was_read(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    x = doubled_if(x, seen.sum() == 0)
    seen.add_(x[0, 0])
    return doubled_if(x, seen.sum() > 0)


@refused
def token_written_under_an_array(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    array = seen.numpy()
    seen.copy_(x[0, 0])
    return doubled_if(x, array.sum() > 0)


@refused
def token_written_into_a_loose_tensor(model: Model, x: Tensor) -> Tensor:
    model.loose.copy_(x[0, 0, :3])
    return doubled_if(x, model.loose.sum() > 0)


# What is neither tokens nor constant.


@refused
def branch_on_a_weight(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, model.weight.sum() > 0)


@refused
def branch_on_a_masked_weight(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, (torch.ones_like(model.weight) * model.weight).sum() > 0)


@refused
def branch_on_a_draw(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.rand(3).sum() > 1)


@refused
def branch_on_a_draw_in_place(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.zeros(3).uniform_().sum() > 1)


@refused
def branch_on_what_stood_in_memory(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.empty(3).sum() > 0)


@refused
def branch_on_memory_that_grew(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.zeros(3).resize_(30).sum() > 0)


# The twins: the same ways, of a constant.


@recorded
def branch_on_a_constant(model: Model, x: Tensor) -> Tensor:
    seen = torch.ones(TOKENS, TOKENS).tril()
    return doubled_if(x, (seen == 0).any())


@recorded
def branch_on_the_norm_of_a_constant(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.arange(4.0).norm().item() > 1)


@recorded
def float_of_a_constant(model: Model, x: Tensor) -> Tensor:
    return x * float(torch.arange(4.0).sum())


@recorded
def loop_over_the_list_of_a_constant(model: Model, x: Tensor) -> Tensor:
    for length in torch.tensor([2, 5]).cumsum(0).tolist():
        x = x + length
    return x


@recorded
def sizes_from_a_constant(model: Model, x: Tensor) -> Tensor:
    kept = torch.ones(TOKENS, dtype=torch.bool)
    kept[3] = False
    first, second = x.split((torch.arange(2) + 3).tolist(), dim=1)
    return x[:, kept] + torch.cat([second, first], 1)[:, kept.nonzero().flatten()]


@recorded
def write_into_the_masked_places(model: Model, x: Tensor) -> Tensor:
    hidden = torch.arange(TOKENS) > 4
    x = x.clone()
    x[:, hidden] = 0
    return x


@recorded
def repeat_as_a_constant_says(model: Model, x: Tensor) -> Tensor:
    rows = torch.repeat_interleave(torch.arange(3), torch.tensor([3, 0, 4]))
    return x + rows[:, None]


@recorded
def masked_select_of_a_constant_mask(model: Model, x: Tensor) -> Tensor:
    return torch.masked_select(x, torch.ones_like(x).tril() > 0)


@recorded
def branch_on_a_constant_written_through_a_view(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(WIDTH)
    seen.view(2, 2)[1, 0] = 5
    return doubled_if(x, seen[2] == 5)


@recorded
def branch_on_the_shape_of_a_token(model: Model, x: Tensor) -> Tensor:
    return doubled_if(x, torch.ones_like(x[..., 0]).sum() == ROWS * TOKENS)


@recorded
def branch_on_a_view_that_no_token_reached(model: Model, x: Tensor) -> Tensor:
    seen, other = torch.zeros(WIDTH), torch.zeros(WIDTH)
    seen += x[0, 0]
    return doubled_if(x + seen, other.sum() == 0)


@pytest.mark.parametrize("name", REFUSED)
def test_a_recording_that_needs_more_than_constants_is_refused(name: str) -> None:
    with pytest.raises(CaptureError, match="the graph cannot be recorded"):
        record(REFUSED[name])


def test_without_forgetting_what_is_written_a_token_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderproof.prover.readable._Operators._forget_written", lambda *_: None)
    assert capture(Model(token_added_in_place).eval(), (tokens(0),)).read


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
    with pytest.raises(CaptureError, match=rf"control flow depends on data .*, test_readable.py:{line}"):
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


def attend(x: Tensor, hidden: Tensor) -> Tensor:
    scores = (x @ x.transpose(1, 2)).masked_fill(hidden, float("-inf"))
    return scores.softmax(-1) @ x


def test_a_law_of_a_model_that_branches_on_a_constant_is_proved() -> None:
    def decide(x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return attend(x, hidden) if hidden.any() else attend(x, hidden.T)

    (finding,) = prove_law(examine(Program(decide)), laws.get("causal"))
    assert finding.verdict == "proved"
    assert finding.scope.lengths == "this"


def test_a_law_of_a_model_that_branches_on_a_late_token_is_not_proved() -> None:
    def decide(x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return attend(x, hidden) if x[0, -1, 0] > 100 else attend(x * 2, hidden)

    (finding,) = prove_law(examine(Program(decide)), laws.get("causal"))
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
    exam = examine(asks(lambda x: torch.ones_like(x).all()))
    assert exam.captured.read
    assert exam.infidelity is None


def test_a_token_that_decides_a_branch_behind_the_exporter_is_refused() -> None:
    exam = examine(asks(lambda x: (x.abs() >= 0).all()))
    assert "the model catches the error that says so, test_readable.py:" in (exam.failure or "")


def test_a_graph_without_values_reads_the_constants_that_its_twin_reads() -> None:
    exam = examine(asks(lambda x: torch.ones_like(x).all()))
    twin = exam.subject
    weightless = Examination(replace(twin, device="meta", twin=lambda: twin), exam.length)
    assert weightless.captured.read


def rare(x: Tensor) -> Tensor:
    """What no random token shows."""
    return (x[:, -1:] - 50).relu()


@refused
def token_put_as_data_and_read_by_nothing(model: Model, x: Tensor) -> Tensor:
    seen = torch.zeros(ROWS, TOKENS, WIDTH)
    seen.data = x.clone()
    return x + rare(seen)


def caught(question: Callable[[Tensor], Any]) -> Callable[[Model, Tensor], Tensor]:
    """A model that goes on where the answer to a question cannot be had; no random token shows that it asks."""

    def program(model: Model, x: Tensor) -> Tensor:
        with suppress(Exception):
            if question(x[:, -1]):
                return x + rare(x)
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
    assert list(run(made, (tokens(1),))) == ["first", "second"]


def test_a_check_of_a_distribution_is_no_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    # torch.compile turns the checks off for the whole process when it is first imported
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    exam = examine(Program(lambda x: torch.distributions.Categorical(logits=x).entropy()))
    assert exam.failure is None
    assert torch.distributions.Distribution._validate_args
