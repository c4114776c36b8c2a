"""The law of activation checkpointing: three faults at their lines, and correct ones pass."""

from __future__ import annotations

import json

import pytest
import torch

from orderproof import training
from tests.cli.conftest import Run, run
from tests.training import checkpointed_steps, loop_steps

__all__ = ["run"]
MADE = [
    name
    for name, made in vars(checkpointed_steps).items()
    if getattr(made, "__annotations__", {}) == {"return": "Step"}
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", MADE)
def test_the_plain_command_finds_each_fault_and_passes_each_correct_step(run: Run, name: str) -> None:
    done = run("training", f"{checkpointed_steps.__file__}:{name}", "--law", "OP707", "--json", "-", "-q")
    (finding,) = json.loads(done.out)["findings"]
    is_good = name.startswith("good")
    assert (done.code, finding["verdict"]) == (0 if is_good else 1, "held" if is_good else "refuted")
    if not is_good:
        lost = name == "inputs_need_no_gradient"
        assert ("first.weight gets no gradient" if lost else "differs when activations") in finding["reason"]
        assert finding["fix_line"].endswith(f"# fault {name}")
        assert finding["remedy"]


def test_a_step_without_checkpointing_is_not_applicable() -> None:
    (finding,) = training.audit(*loop_steps.good_padded(), laws=["OP707"], expect={"OP707": "any"}).findings
    assert (finding.verdict, "no activation checkpointing" in finding.reason) == ("not_applicable", True)


def test_the_model_keeps_its_mode_its_buffers_and_its_gradients() -> None:
    model, batch, loss = checkpointed_steps.good_blocks()
    loss(model, batch).backward()
    gradient = model.first.weight.grad.clone()
    training.audit(model, batch, loss, laws=["OP707"])
    assert torch.equal(model.first.weight.grad, gradient)
    assert model.training
