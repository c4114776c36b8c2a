"""Runs trained together have the weights, the curves and the scores that they have alone, up to rounding."""

from __future__ import annotations

import pytest
import torch

from orderproof.lab.model import build_model
from orderproof.lab.run_config import RunConfig
from orderproof.lab.seed_batch import WeightBatch, train_together
from orderproof.lab.study import parse_run
from orderproof.lab.trainer import deterministic, make_optimiser, train, train_steps

SMALL = [
    "question.letters=4", "width=16", "heads=2", "hidden=16", "layers=2", "steps=12", "measure_every=6", "batch=4",
    "train_lengths=[1,4]", "test_lengths=[3,6]", "test_rows=8",
]  # fmt: skip
CELLS = {
    "none": [],
    "random positions": ["encoding=sinusoidal", "random_positions=31"],
    "a scalar weight": ["encoding=fire", "encoding.threshold=4", "encoding.learned_threshold=true"],
    "an integer lookup": ["encoding=t5"],
    "content": ["encoding=path"],
}

# A constant added to all scores of a query: softmax ignores it. Its gradient is rounding, which Adam scales to a step.
WITHOUT_GRADIENT = ("to_key.bias", "encoding.inner.bias", "encoding.outer.bias")


def small(*settings: str, seed: int = 0, rate: float = 0.003) -> RunConfig:
    return parse_run("copy", ["encoding=none", *SMALL, *settings, f"seed={seed}", f"learning_rate={rate}"])


@pytest.mark.parametrize("cell", CELLS)
def test_the_weights_are_those_of_single_runs(cell):
    settings = [*CELLS[cell], "batched=true"]
    runs = [small(*settings, seed=s, rate=r) for s, r in ((0, 0.003), (1, 0.003), (1, 0.01))]
    with deterministic():
        batch = WeightBatch(runs)
        batch.train()
        for k, run in enumerate(runs):
            model = build_model(run)
            for _ in train_steps(run, model, make_optimiser(run, model), last=run.steps):
                pass
            found = batch.weights_of(k)
            for name, expected in model.named_parameters():
                if not name.endswith(WITHOUT_GRADIENT):
                    torch.testing.assert_close(found[name], expected.detach(), rtol=1e-5, atol=1e-6)
            assert [point["step"] for point in batch.curves[k]] == [6, 12]


def test_the_results_are_those_of_single_runs():
    together = train_together([small("batched=true", seed=s) for s in (0, 1)])
    alone = [train(small("batched=true", seed=s)) for s in (0, 1)]
    for one, other in zip(together, alone, strict=True):
        assert (one.id, one.config, one.parameters) == (other.id, other.config, other.parameters)
        assert [p.loss for p in one.curve] == pytest.approx([p.loss for p in other.curve], rel=1e-4)
        counts = [[(p.length, p.right, p.scored) for p in result.lengths] for result in (one, other)]
        assert counts[0] == counts[1]
    assert together[0].digest != together[1].digest


def test_a_run_of_a_batch_stops_when_it_has_solved_the_trained_lengths():
    """A score of 1 in 1,000 is reached by guessing: both runs stop at the second measurement that reaches it."""
    easy = ["question=copy", "question.same=true", "question.letters=2", "train_lengths=[1,1]", "test_lengths=[1]"]
    runs = [small(*easy[1:], "batched=true", "schedule=constant", "solved=0.001", "steps=600", seed=s) for s in (0, 1)]
    results = train_together(runs)
    for run, result in zip(runs, results, strict=True):
        assert result.curve[-1].step < run.steps
        assert min(point.score for point in result.curve[-2:]) >= 0.001


def test_a_run_that_has_stopped_keeps_its_weights_and_the_others_train_as_before():
    runs = [small("batched=true", seed=s) for s in (0, 1, 2)]
    computed = []
    with deterministic():
        batch, alone = WeightBatch(runs), WeightBatch(runs[1:2])
        for number in (1, 2, 3, 4, 5):
            batch.step(number)
            alone.step(number)
            computed.append(list(batch.computed))
            if number == 2:
                batch.active.remove(0)
                first = batch.weights[0].clone()
            if number == 3:
                batch.active.remove(2)
                last = batch.weights[2].clone()
    assert computed == [[0, 1, 2], [0, 1, 2], [0, 1, 2], [1], [1]]
    assert torch.equal(batch.weights[0], first)
    assert torch.equal(batch.weights[2], last)
    torch.testing.assert_close(batch.weights[1], alone.weights[0], rtol=1e-5, atol=1e-6)


def test_runs_with_another_stretch_share_their_weights():
    runs = [small("encoding=rotary", "batched=true"), small("encoding=rotary", "stretch=yarn", "batched=true")]
    assert len({run.batch_id for run in runs}) == 1
    plain, stretched = train_together(runs)
    assert plain.digest == stretched.digest
    assert (plain.id, stretched.id) == (runs[0].id, runs[1].id)
