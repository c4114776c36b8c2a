"""Laws about whole rows are asked of an image model from the image on, not from its patches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from orderproof import laws
from orderproof.auditing.completion import certificate
from orderproof.auditing.trials import checked_nodes
from orderproof.prover.recheck import recheck
from orderproof.subjects import Sample, Subject
from tests.audit.internals import Examination, examined, prove_law

PATCHES = 9


class Patches(nn.Conv2d):
    """A row of embedded patches."""

    def forward(self, pixels: Tensor) -> Tensor:
        return super().forward(pixels).flatten(2).transpose(1, 2)


class Seeing(nn.Module):
    """Patches of an image, embedded and normalised, beside the image's own mean."""

    def __init__(self, dims: tuple[int, ...], *, beside: bool = False) -> None:
        super().__init__()
        self.patch = Patches(3, 8, 2, 2)
        self.dims, self.beside = dims, beside

    def forward(self, pixels: Tensor) -> dict[str, Tensor]:
        scaled = pixels / (1 + pixels.abs().mean(self.dims, keepdim=True))  # before there are patches
        made = self.patch(scaled)
        made = torch.softmax(made @ made.transpose(1, 2), -1) @ made
        return {"last_hidden_state": made + pixels.mean((1, 2, 3))[:, None, None] if self.beside else made}


def seeing(dims: tuple[int, ...], *, beside: bool = False) -> Examination:
    torch.manual_seed(0)
    module = Seeing(dims, beside=beside).eval()

    def draw(length: int, seed: int) -> Sample:
        return Sample((torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(seed)),), ("x",) * length)

    return Examination(
        Subject("seeing", "vision", module, (None,), 0, None, PATCHES, None, "cpu", draw, cut="patch"), 9
    )


@pytest.mark.parametrize("beside", [False, True])
def test_rows_are_those_of_the_image_however_it_reaches_the_output(beside: bool) -> None:
    exam = seeing((1, 2, 3), beside=beside)
    (finding,) = prove_law(exam, laws.get("batch"))
    assert finding.verdict == "proved"
    assert finding.deviation.float64 == 0
    assert checked_nodes(exam, laws.get("batch")).startswith("node check: the facts of")


@pytest.mark.parametrize("beside", [False, True])
def test_rows_that_meet_before_there_are_patches_are_seen_to(beside: bool) -> None:
    (finding,) = prove_law(seeing((0, 1, 2, 3), beside=beside), laws.get("batch"))
    assert finding.verdict == "refuted"
    assert finding.witness is not None
    assert finding.witness.before == ("plane 0", "plane 1", "plane 2")


def test_other_laws_are_asked_of_the_patches() -> None:
    exam = seeing((1, 2, 3))
    assert exam.asked(laws.get("order_blind")) is exam
    assert exam.asked(laws.get("batch")).subject.cut is None
    (finding,) = prove_law(exam, laws.get("order_blind"))
    assert (finding.verdict, finding.scope.length) == ("proved", PATCHES)


def test_a_single_image_has_no_other_rows() -> None:
    exam = seeing((1, 2, 3))
    drawn = exam.subject.draw
    subject = replace(
        exam.subject, draw=lambda n, seed: replace(drawn(n, seed), inputs=(drawn(n, seed).inputs[0][:1],))
    )
    (finding,) = prove_law(Examination(subject, PATCHES), laws.get("batch"))
    assert finding.verdict == "not_applicable"


@pytest.mark.parametrize("name", ["resnet", "swin", "hiera", "vit", "segformer"])
def test_rows_of_images_do_not_meet(name: str) -> None:
    exam = examined(name)
    law = laws.get("batch")
    for finding in prove_law(exam, law):
        assert finding.verdict == "proved", finding.reason
    there = exam.asked(law)
    for part in law.relations(there.rows):
        made = certificate(there, part, next(iter(there.output_dims)))
        assert made is not None
        assert list(made["inputs"].values()) == [1]
        assert recheck(made).law == "batch"


def test_without_weights_the_twin_is_seen_from_its_image_too() -> None:
    exam = seeing((1, 2, 3))
    subject = replace(exam.subject, twin=lambda: seeing((1, 2, 3)).subject)
    made = Examination(subject, PATCHES).asked(laws.get("batch"))
    assert made.subject.twin is not None
    twin = made.subject.twin()
    assert (twin.cut, twin.token_axes, twin.length) == (None, (1,), 3)
