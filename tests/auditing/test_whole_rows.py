"""Laws about whole rows are asked of an image model from the image on, not from its patches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, laws
from orderproof.auditing.search.node_facts import check_node_facts
from orderproof.models import Sample, Subject
from tests.auditing.internals import AuditContext, examined, prove_law

PATCHES = 9


class Patches(nn.Conv2d):
    """A row of embedded patches."""

    def forward(self, pixels: Tensor) -> Tensor:
        return super().forward(pixels).flatten(2).transpose(1, 2)


class Seeing(nn.Module):
    """Patches of an image, embedded and normalised, plus the mean of the image."""

    def __init__(self, dims: tuple[int, ...], *, with_mean: bool = False) -> None:
        super().__init__()
        self.patch = Patches(3, 8, 2, 2)
        self.dims, self.with_mean = dims, with_mean

    def forward(self, pixels: Tensor) -> dict[str, Tensor]:
        scaled = pixels / (1 + pixels.abs().mean(self.dims, keepdim=True))  # before there are patches
        made = self.patch(scaled)
        made = torch.softmax(made @ made.transpose(1, 2), -1) @ made
        return {"last_hidden_state": made + pixels.mean((1, 2, 3))[:, None, None] if self.with_mean else made}


def seeing(dims: tuple[int, ...], *, with_mean: bool = False) -> AuditContext:
    torch.manual_seed(0)
    module = Seeing(dims, with_mean=with_mean).eval()

    def draw(length: int, seed: int) -> Sample:
        return Sample((torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(seed)),), ("x",) * length)

    return AuditContext(
        Subject("seeing", "vision", module, (None,), 0, None, PATCHES, None, "cpu", draw, patch_embedding_path="patch"),
        9,
    )


@pytest.mark.parametrize("with_mean", [False, True])
def test_rows_are_those_of_the_image_however_it_reaches_the_output(with_mean: bool) -> None:
    context = seeing((1, 2, 3), with_mean=with_mean)
    (finding,) = prove_law(context, laws.find_proved_law("batch"))
    assert finding.verdict == "proved"
    assert finding.deviation.float64 == 0
    assert check_node_facts(context, laws.find_proved_law("batch")).startswith("node check: the facts of")


@pytest.mark.parametrize("with_mean", [False, True])
def test_rows_that_meet_before_there_are_patches_are_seen_to(with_mean: bool) -> None:
    (finding,) = prove_law(seeing((0, 1, 2, 3), with_mean=with_mean), laws.find_proved_law("batch"))
    assert finding.verdict == "refuted"
    assert finding.witness is not None
    assert finding.witness.tokens_before == ("plane 0", "plane 1", "plane 2")


def test_other_laws_are_asked_of_the_patches() -> None:
    context = seeing((1, 2, 3))
    assert context.for_law(laws.find_proved_law("permutation")) is context
    assert context.for_law(laws.find_proved_law("batch")).subject.patch_embedding_path is None
    (finding,) = prove_law(context, laws.find_proved_law("permutation"))
    assert (finding.verdict, finding.scope.length) == ("proved", PATCHES)


def test_a_single_image_has_no_other_rows() -> None:
    context = seeing((1, 2, 3))
    drawn = context.subject.draw
    subject = replace(
        context.subject, draw=lambda n, seed: replace(drawn(n, seed), inputs=(drawn(n, seed).inputs[0][:1],))
    )
    (finding,) = prove_law(AuditContext(subject, PATCHES), laws.find_proved_law("batch"))
    assert finding.verdict == "not_applicable"


@pytest.mark.parametrize("name", ["resnet", "swin", "hiera", "vit", "segformer"])
def test_rows_of_images_do_not_meet(name: str) -> None:
    context = examined(name)
    law = laws.find_proved_law("batch")
    for finding in prove_law(context, law):
        assert finding.verdict == "proved", finding.reason


def test_without_weights_the_twin_is_seen_from_its_image_too() -> None:
    context = seeing((1, 2, 3))
    subject = replace(context.subject, build_tiny_twin=lambda: seeing((1, 2, 3)).subject)
    made = AuditContext(subject, PATCHES).for_law(laws.find_proved_law("batch"))
    assert made.subject.build_tiny_twin is not None
    twin = made.subject.build_tiny_twin()
    assert (twin.patch_embedding_path, twin.token_axes, twin.default_length) == (None, (1,), 3)


def test_rows_of_an_image_that_meet_in_larger_batches_are_a_failed_check() -> None:
    transformers = pytest.importorskip("transformers")

    class MixesThreeRows(nn.Conv2d):
        def forward(self, pixels: Tensor) -> Tensor:
            made = super().forward(pixels)
            return made + made.mean(0, keepdim=True) if len(pixels) > 2 else made

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=24, patch_size=8)).eval()
    honest = audit(model, laws=["batch"]).findings[0]
    assert honest.theorem is not None
    assert (honest.outcome, honest.theorem.proved) == ("pass", True)
    model.embeddings.patch_embeddings.projection = MixesThreeRows(3, 16, 8, 8)
    finding = audit(model, laws=["batch"]).findings[0]
    assert finding.verdict == "refuted"
    assert finding.witness is not None
    assert finding.witness.onset == "it is proved with 2 rows and violated with 3 rows"
