"""Eval mode and train mode: which one is audited is said where it matters, and train mode shows what mixes rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof import audit, prove
from orderproof.auditing.api import audit_context, report_on_law
from orderproof.auditing.decide.theorem_certificates import theorem_certificate
from orderproof.errors import UsageError
from orderproof.models import from_module
from orderproof.records.audit import Finding
from orderproof_recheck.theorem import check_theorem

X = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0))


class Channels(nn.Module):
    """A layer of channels [row, channel, token], called with tokens."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.mT).mT


class Centred(nn.Module):
    """Code that reads the mode: in training the mean over rows, or that of each token, is taken away."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(self.axis, keepdim=True) if self.training else x


class Functional(nn.Module):
    """Normalization as a function, over all rows and tokens or over the features of each token."""

    def __init__(self, *, of_batch: bool) -> None:
        super().__init__()
        self.of_batch = of_batch

    def forward(self, x: Tensor) -> Tensor:
        if self.of_batch and self.training:
            return functional.batch_norm(x.mT, None, None, training=True).mT
        return functional.layer_norm(x, x.shape[-1:])


class Contrast(nn.Module):
    """In training the tokens attend to the same place of every row, or to their own row."""

    def __init__(self, *, across: bool) -> None:
        super().__init__()
        self.across = across

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        y = x.transpose(0, 1) if self.across else x
        mixed = (y @ y.mT).softmax(-1) @ y
        return mixed.transpose(0, 1) if self.across else mixed


class Grid(nn.Module):
    """Statistics of channels over an image of tokens [row, channel, token, 1]."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.mT.unsqueeze(-1)).squeeze(-1).mT


MIXING_IN_TRAINING: dict[str, tuple[Callable[[], nn.Module], Callable[[], nn.Module]]] = {
    "batch norm": (lambda: Channels(nn.BatchNorm1d(8)), lambda: Channels(nn.GroupNorm(1, 8))),
    "batch norm of a grid": (lambda: Grid(nn.BatchNorm2d(8)), lambda: Grid(nn.InstanceNorm2d(8))),
    "batch norm as a function": (lambda: Functional(of_batch=True), lambda: Functional(of_batch=False)),
    "own code": (lambda: Centred(0), lambda: Centred(2)),
    "attention over rows": (lambda: Contrast(across=True), lambda: Contrast(across=False)),
}


def batch(module: nn.Module, mode: str) -> Finding:
    return prove(module, "batch", inputs=X, mode=mode)


@pytest.mark.parametrize("name", MIXING_IN_TRAINING)
def test_a_mixture_of_rows_in_training_is_seen_in_train_mode_only(name: str) -> None:
    mixing, apart = MIXING_IN_TRAINING[name]
    assert batch(mixing(), "eval").verdict == "proved"
    refuted = batch(mixing(), "train")
    assert refuted.outcome == "fail"
    assert refuted.witness is not None
    assert batch(apart(), "train").outcome == "pass"


DRAWING: dict[str, Callable[[], nn.Module]] = {
    "dropout": lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3)),
    "dropout of channels": lambda: Channels(nn.Sequential(nn.Conv1d(8, 8, 1), nn.Dropout1d(0.3))),
    "dropout in attention": lambda: nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True),
    "dropout in place": lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3, inplace=True), nn.LayerNorm(8)),
}


@pytest.mark.parametrize("name", DRAWING)
def test_runs_with_the_same_random_numbers_are_compared(name: str) -> None:
    proved = batch(DRAWING[name](), "train")
    assert proved.verdict == "proved"
    assert any(text.startswith("the same random numbers in both runs") for text in proved.scope.assumptions)
    mixed = batch(nn.Sequential(DRAWING[name](), Centred(0)), "train")
    assert mixed.outcome == "fail"


@pytest.mark.parametrize("name", DRAWING)
def test_chance_is_no_violation_of_a_measured_law(name: str) -> None:
    report = audit(
        DRAWING[name](), inputs=X, mode="train", laws=["stateless", "save_load", "batch_composition"], kind="encoder"
    )
    outcomes = {f.law: f.outcome for f in report.findings}
    assert outcomes["stateless"] == outcomes["save_load"] == "pass"
    assert outcomes["batch_composition"] == "undecided"
    (composed,) = [f for f in report.findings if f.law == "batch_composition"]
    assert composed.reason.startswith("it draws random numbers, and runs of other shapes draw others")


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_scope_note_and_certificate_state_the_mode_where_it_matters(mode: str) -> None:
    other = {"eval": "train", "train": "eval"}[mode]
    text = f"in {mode} mode; in {other} mode Centred would compute something else"
    subject = from_module(Centred(2), X, mode=mode)
    assert any(note.startswith(f"audited {text}") for note in subject.notes)
    report = audit(subject, laws=["batch", "save_load"])
    assert all(any(a.startswith(text) for a in f.scope.assumptions) for f in report.findings)
    context = audit_context(subject)
    (finding,) = report_on_law(context, "batch").findings
    certificate = theorem_certificate(context, finding)
    assert certificate is not None
    assert any(line.strip().startswith(f"assuming {text}") for line in check_theorem(certificate).lines())


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(8, 8),
        nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.0)),
        nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True, dropout=0.0),
        Channels(nn.BatchNorm1d(8, track_running_stats=False)),
    ],
    ids=["no mode", "dropout 0", "fast path", "no stored statistics"],
)
def test_nothing_is_said_where_both_modes_compute_the_same(module: nn.Module) -> None:
    subject = from_module(module, X)
    assert subject.mode == ""
    assert not any("mode" in note for note in subject.notes)


def test_the_modules_that_read_the_mode_are_named() -> None:
    module = nn.Sequential(nn.Dropout(0.1), Channels(nn.BatchNorm1d(8)), nn.Linear(8, 8))
    assert (
        from_module(module, X).mode == "in eval mode; in train mode Dropout, BatchNorm1d would compute something else"
    )


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("given", [True, False])
def test_an_audit_leaves_the_mode_and_the_statistics_as_given(mode: str, given: bool) -> None:
    module = nn.Sequential(Channels(nn.BatchNorm1d(8)), nn.Dropout(0.1)).train(given)
    module[1].eval()  # the modes of parts may differ
    before = {name: value.clone() for name, value in module.state_dict().items()}
    audit(module, inputs=X, mode=mode, laws=["batch", "stateless"])
    assert [part.training for part in module.modules()] == [given, given, given, False]
    assert module[0].norm.track_running_stats is True
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_a_mode_that_does_not_exist_or_cannot_be_chosen_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected mode to be eval or train; got 'trian'; did you mean 'train'"):
        audit(nn.Linear(8, 8), inputs=X, mode="trian")
    with pytest.raises(UsageError, match="expected no mode with a Subject"):
        audit(from_module(nn.Linear(8, 8), X), mode="train")
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(UsageError, match="expected no mode with an ONNX file"):
        audit(str(tmp_path / "model.onnx"), mode="train")
