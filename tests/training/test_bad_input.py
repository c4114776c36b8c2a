"""Each bad input of `orderproof training` is one line on standard error and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, run

__all__ = ["run"]
STEPS = """
import torch
from torch import nn
from torch.nn import functional as F

TOKENS = torch.arange(18).reshape(2, 9)


class Bigram(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 50)

    def forward(self, tokens, labels=None):
        return self.table(tokens)


def loss(model, batch):
    return F.cross_entropy(model(batch["tokens"])[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten())


def without_labels():
    return Bigram(), {"tokens": TOKENS}, loss


def loss_of_rows():
    return Bigram(), {"tokens": TOKENS, "labels": TOKENS}, lambda model, batch: loss(model, batch).expand(2)


def no_loss():
    return Bigram(), {"tokens": TOKENS, "labels": TOKENS}


def gradients_of_nan():
    def rooted(model, batch):
        logits = model(batch["tokens"])
        found = F.cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten())
        return found + (logits * 0).sum().sqrt()

    return Bigram(), {"tokens": TOKENS, "labels": TOKENS}, rooted


def infinite_loss():
    return Bigram(), {"tokens": TOKENS, "labels": TOKENS}, lambda model, batch: loss(model, batch) + float("inf")


def not_a_step():
    return 3


def random_collator():
    def collate(samples):
        return {"input_ids": torch.stack(samples)[:, torch.randperm(9)]}

    return collate, list(TOKENS)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "steps.py"
    path.write_text(STEPS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("without_labels", "expected labels in the batch, named labels or targets or target or label or y; got tokens"),
        ("loss_of_rows", "expected a loss that is one number; got a tensor [2]"),
        ("no_loss", "the model returns no loss for this batch: expected loss, a function of model and batch"),
        ("gradients_of_nan", "expected finite gradients"),
        ("infinite_loss", "expected a finite loss; got inf"),
        ("not_a_step", "expected a function that returns model, batch and loss; it returned int"),
    ],
)
def test_a_bad_step_is_one_line(file: Path, run: Run, name: str, message: str) -> None:
    done = run("training", f"{file}:{name}", "-q")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err


def test_a_random_collator_is_said_to_be_one(file: Path, run: Run) -> None:
    done = run("training", "--collator", f"{file}:random_collator")
    assert done.code == 3
    assert "its collator is random: asked twice, it made two batches of the same samples" in " ".join(done.out.split())
