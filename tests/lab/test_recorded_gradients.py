"""A recording has the bits of the function that was recorded, for other values of its arguments too."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from orderproof.lab.recorded_gradients import RecordedFunction, changes_in_place, record
from orderproof.lab.seed_batch import WeightBatch
from orderproof.lab.study import parse_run
from orderproof.lab.trainer import deterministic
from orderproof.positions import without_value_checks

SMALL = [
    "question.letters=4", "width=16", "heads=2", "hidden=16", "steps=40", "measure_every=40", "batch=4", "batched=true",
    "train_lengths=[3,4]", "test_lengths=[3,6]", "test_rows=8",
]  # fmt: skip
ENCODINGS = [  # cope changes a tensor in place
    "cope", *(pytest.param(name, marks=pytest.mark.slow) for name in ("none", "rotary", "t5")),
]  # fmt: skip


def small_batch(encoding: str, *, record_at: int) -> WeightBatch:
    runs = [parse_run("copy", [*SMALL, f"encoding={encoding}", f"seed={seed}"]) for seed in (0, 1)]
    return WeightBatch(runs, record_at=record_at)


def scores(weights: Tensor, x: Tensor) -> Tensor:
    steps = torch.arange(x.shape[0], dtype=x.dtype)
    distances = (steps[:, None] - steps[None, :]).abs().expand(3, -1, -1).sum(0)
    return (distances @ (x * weights).tanh()).square().mean()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_batch_has_the_same_bits_with_and_without_recordings(encoding: str) -> None:
    with deterministic():
        recorded, called = small_batch(encoding, record_at=3), small_batch(encoding, record_at=1000)
        for number in range(1, 11):
            assert torch.equal(recorded.step(number), called.step(number))
    assert torch.equal(recorded.weights, called.weights)
    assert len(recorded._gradients.recordings) == 2  # one for each length
    assert called._gradients.recordings == {}


def test_a_function_is_recorded_at_the_chosen_call_and_no_longer_called() -> None:
    calls = []

    def function(x: Tensor) -> Tensor:
        calls.append(x.shape)
        return x.sin() + 1

    recorded = RecordedFunction(function, record_at=3)
    for number in range(6):
        x = torch.full((2,), float(number))
        assert torch.equal(recorded(x), x.sin() + 1)
    assert calls == [(2,)] * 3
    assert torch.equal(recorded(torch.ones(5)), torch.ones(5).sin() + 1)  # another shape is called
    assert calls[-1] == (5,)


def test_operators_on_constants_are_not_repeated() -> None:
    gradient = vmap(grad_and_value(scores))
    arguments = [torch.randn(2, 4, 3), torch.randn(2, 4, 3)]
    recording = record(gradient, *arguments)
    names = {str(node.target) for node in recording.graph.nodes if node.op == "call_function"}
    assert "aten.bmm.default" in names or "aten.mm.default" in names
    assert not {name for name in names if name.startswith(("aten.arange", "aten.abs"))}
    other = [torch.randn(2, 4, 3), torch.randn(2, 4, 3)]
    for found, expected in zip(recording(*other), gradient(*other), strict=True):
        assert torch.equal(found, expected)


def test_a_constant_that_is_written_to_is_made_again_in_each_call() -> None:
    def function(x: Tensor) -> Tensor:
        total = torch.zeros(3)
        total.add_(x)
        return total * 2

    recording = record(function, torch.ones(3))
    assert any(changes_in_place(node) for node in recording.graph.nodes)
    for x in (torch.ones(3), torch.arange(3.0)):
        assert torch.equal(recording(x), 2 * x)


def test_a_violated_check_of_constants_fails_when_it_is_recorded() -> None:
    def function(x: Tensor) -> Tensor:
        torch._assert_async(torch.arange(3).sum() > 10, "expected a larger sum")
        return x + 1

    with pytest.raises(RuntimeError, match="expected a larger sum"), without_value_checks():
        record(function, torch.ones(3))
