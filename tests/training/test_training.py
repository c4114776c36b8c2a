"""The laws of training steps: each planted fault fails its law only, by the plain command, and each twin passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import training
from orderproof.errors import SubjectError, UsageError
from orderproof.laws import training_laws
from tests.cli.conftest import Run, run
from tests.pairs import one_in
from tests.training import collated_steps, loop_steps, module_steps, trainer_steps, transformers_steps

__all__ = ["run"]
FILES = {
    "loop": loop_steps, "transformers": transformers_steps, "module": module_steps, "collated": collated_steps,
    "trainer": trainer_steps,
}  # fmt: skip


def _steps(file: Any) -> dict[str, str]:
    """The steps of a file: name -> the code of the law that it breaks, empty for a correct one."""
    own = {
        name: made for name, made in vars(file).items() if getattr(made, "__annotations__", {}) == {"return": "Step"}
    }
    return {
        name: "" if name.startswith("good") else (made.__doc__ or "").partition(":")[0] for name, made in own.items()
    }


LAWS = {law.code for law in training_laws()} - {"OP707", "OP708", "OP709", "OP710"}  # which have files of their own
LIBRARY_LINES = {"cache_kept": "sdpa_attention.py"}
SLOW = ("transformers", "trainer")  # whose proofs take a second or two
KINDS = [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in FILES]
QUICK = ("shifted_twice", "good_packed")  # of the slow ones
STEPS = [
    pytest.param(kind, name, code, marks=[pytest.mark.slow] * (kind in SLOW and name not in QUICK))
    for kind, file in FILES.items()
    for name, code in _steps(file).items()
]


@pytest.mark.parametrize(("kind", "name", "code"), one_in(3, STEPS))
def test_the_plain_command_finds_each_fault_and_passes_each_twin(run: Run, kind: str, name: str, code: str) -> None:
    file = str(Path(__file__).with_name(f"{kind}_steps.py"))
    done = run("training", f"{file}:{name}", "--json", "-", "-q")
    findings = json.loads(done.out)["findings"]
    assert [f["code"] for f in findings if f["outcome"] == "fail"] == ([code] if code else [])
    assert [f["reason"] for f in findings if f["outcome"] == "undecided"] == []
    assert (done.code, done.err) == (int(bool(code)), "")
    for failed in (f for f in findings if f["outcome"] == "fail"):
        assert failed["remedy"]
        if name in LIBRARY_LINES:
            assert failed["witness"]["first_violating_source"].startswith(LIBRARY_LINES[name])
        else:
            assert failed["fix_line"].endswith("# fault")


@pytest.mark.parametrize("kind", KINDS)
def test_each_law_has_faults_in_each_form_and_a_twin_that_it_applies_to(kind: str) -> None:
    steps = _steps(FILES[kind])
    assert set(steps.values()) == {"", *LAWS}
    assert sum(bool(code) for code in steps.values()) >= 8
    made = [getattr(FILES[kind], name)() for name, code in steps.items() if not code]
    assert {f.code for step in made for f in training.audit(*step).findings if f.outcome == "pass"} == LAWS


def _failed(step: tuple[Any, ...], law: str) -> Any:
    (finding,) = training.audit(*step, laws=[law]).findings
    assert finding.outcome == "fail"
    return finding


def test_the_reason_names_the_output_and_the_remedy_follows_the_cause() -> None:
    twice, not_shifted = (
        _failed(step(), "label_alignment") for step in (loop_steps.shifted_twice, loop_steps.not_shifted)
    )
    assert "scored at output" in twice.reason
    assert twice.remedy != not_shifted.remedy
    assert "its own label" in _failed(loop_steps.later_token(), "OP701").reason
    assert "position ids" in _failed(loop_steps.positions_dropped(), "OP704").remedy
    assert "attention mask of the batch: no output" in _failed(loop_steps.mask_dropped(), "OP705").remedy
    assert "attention mask of the batch" not in _failed(loop_steps.pads_count_as_positions(), "OP705").remedy


def test_a_loss_that_takes_the_tokens_for_labels_does_not_depend_on_these() -> None:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return loop_steps.shifted(model(batch["input_ids"], batch["attention_mask"]), batch["input_ids"])

    found = _failed((loop_steps.Small(), loop_steps.padded(), loss), "OP702")
    assert found.reason == "the loss does not depend on the labels"
    assert "from the labels of the batch" in found.remedy


def test_the_model_the_batch_and_the_random_state_stay_as_they_are() -> None:
    model, batch, loss = loop_steps.good_padded()
    model.train()
    weights, values = ({k: v.clone() for k, v in each.items()} for each in (model.state_dict(), batch))
    state = torch.get_rng_state()
    training.audit(model, batch, loss)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(model.state_dict()[k], v) for k, v in weights.items())
    assert all(torch.equal(batch[k], v) for k, v in values.items())


def test_weights_of_classes_and_equal_tokens_decide_nothing() -> None:
    def weighted(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        logits = model(batch["input_ids"], batch["attention_mask"])
        return loop_steps.shifted(logits, batch["labels"], weight=torch.rand(loop_steps.VOCABULARY))

    report = training.audit(loop_steps.Small(), loop_steps.padded(), weighted)
    assert not report.violations
    assert report.exit_code == 3
    ones = torch.ones(2, 6, dtype=torch.long)
    report = training.audit(loop_steps.Small(), (ones, ones), lambda m, b: loop_steps.shifted(m(b[0]), b[1]))
    assert report.exit_code == 3
    assert not report.violations


def test_a_strict_audit_asks_for_what_the_batch_should_show_and_not_for_what_a_recipe_may_lack() -> None:
    report = training.audit(*loop_steps.good_padded(), strict=True)
    assert [f.code for f in report.untested] == ["OP704"]
    named = training.audit(*loop_steps.good_padded(), laws=["OP707"], strict=True)
    assert [f.code for f in named.untested] == ["OP707"]
    assert (report.exit_code, named.exit_code) == (3, 3)


def test_a_loss_of_micro_batches_that_takes_no_single_row_is_asked_with_several() -> None:
    model, batch, _ = loop_steps.good_left()

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        parts = [{name: value[rows] for name, value in batch.items()} for rows in (slice(0, 1), slice(1, 3))]
        assert all(len(part["labels"]) for part in parts)
        count = (batch["labels"][:, 1:] != -100).sum()
        return torch.stack([loop_steps.masked_loss(model, part) * _counted(part) for part in parts]).sum() / count

    def _counted(part: dict[str, Tensor]) -> Tensor:
        return (part["labels"][:, 1:] != -100).sum()

    outcomes = {f.code: f.outcome for f in training.audit(model, batch, loss).findings}
    assert (outcomes["OP705"], outcomes["OP706"]) == ("pass", "pass")


def _loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return loop_steps.masked_loss(model, batch)


@pytest.mark.parametrize(
    ("change", "loss", "message"),
    [
        ({"labels": None}, _loss, "expected labels in the batch"),
        ({"labels": torch.ones(3, 8, dtype=torch.long)}, _loss, "of one shape"),
        ({}, lambda m, b: m(b["input_ids"]), "a loss that is one number; got a tensor"),
        ({}, lambda m, b: _loss(m, b).detach(), "a loss with a gradient"),
        ({}, lambda m, b: (backward := _loss(m, b)).backward() or backward, "expected a loss before backward"),
        ({}, lambda m, b: _loss(m, b) * float("nan"), "expected finite gradients"),
        ({}, lambda m, b: b["nothing"], "the loss raised KeyError"),
        ({}, lambda m, b: m.head.weight.sum(), "calls no model that returns logits"),
    ],
)
def test_bad_input_is_one_line(change: dict[str, Any], loss: Any, message: str) -> None:
    batch = {k: v for k, v in {**loop_steps.padded(), **change}.items() if v is not None}
    with pytest.raises(SubjectError, match=message) as refused:
        training.audit(loop_steps.Small(), batch, loss)
    assert "\n" not in str(refused.value)


def test_a_loss_that_differs_for_one_batch_is_refused() -> None:
    calls: list[int] = []

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        calls.append(1)
        return _loss(model, batch) * len(calls)

    with pytest.raises(SubjectError, match="the same loss for the same batch"):
        training.audit(loop_steps.Small(), loop_steps.padded(), loss)


def test_wrong_subjects_are_refused(run: Run) -> None:
    with pytest.raises(UsageError, match=r"expected a torch.nn.Module"):
        training.audit("model", {})  # type: ignore[arg-type]
    with pytest.raises(SubjectError, match="a loss that is one number; got NoneType"):
        training.audit(loop_steps.Small(), (torch.ones(2, 3).long(), torch.ones(2, 3).long()), lambda m, b: None)
    done = run("training", f"{loop_steps.__file__}:Small")
    assert (done.code, done.out) == (2, "")
    assert "expected a function that returns model, batch and loss; it returned Small" in done.err
    done = run("audit", f"{loop_steps.__file__}:Small", "--law", "OP702")
    assert "expected orderproof training file.py:step" in done.err
