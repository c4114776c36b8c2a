"""Plain modules that take an image: their tokens are patches."""

import pytest
import torch
from torch import nn

from orderproof import audit
from orderproof.models import from_module
from orderproof.models.vision.plain_image import WHOLE_ROWS_REASON

IMAGE = torch.randn(2, 3, 8, 8)


class Patches(nn.Module):
    """Patches of 2 x 2 pixels by a convolution."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 16, 2, 2)

    def forward(self, image):
        return self.convolution(image).flatten(2).transpose(1, 2)


class ViT(nn.Module):
    """A transformer on patches, with a class token and positions if they are wanted."""

    def __init__(self, *, positions, pooled):
        super().__init__()
        self.patches = Patches()
        self.start = nn.Parameter(torch.randn(1, 1, 16))
        self.positions = nn.Parameter(torch.randn(17, 16) * positions, requires_grad=positions)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.pooled = pooled

    def forward(self, image):
        x = torch.cat([self.start.expand(len(image), -1, -1), self.patches(image)], 1)
        if self.positions.requires_grad:
            x = x + self.positions
        x = self.layer(x)
        return x[:, 0] if self.pooled else x


@pytest.mark.parametrize("pooled", [False, True], ids=["patches", "pooled"])
@pytest.mark.parametrize("positions", [False, True], ids=["no positions", "positions"])
def test_the_patches_of_a_plain_vit_are_its_tokens(positions, pooled):
    subject = from_module(ViT(positions=positions, pooled=pooled), IMAGE)
    assert (subject.patch_embedding_path, subject.default_length) == ("patches", 16)
    report = audit(subject, laws=["permutation", "causal", "batch"])
    verdicts = {f.law: f.verdict for f in report.findings}
    assert verdicts["permutation"] == ("refuted" if positions else "proved")
    assert verdicts["causal"] == ("undecided" if pooled else "refuted")  # named, it does not apply to a pooled output
    assert verdicts["batch"] == "proved"
    names = "[batch, 16]" if pooled else "[batch, 1+token, 16]"
    assert report.subject.axes["output"] == f"{names}, from the graph"


def test_an_image_that_takes_another_path_has_laws_of_whole_rows():
    class Skips(ViT):
        def forward(self, image):
            return super().forward(image) + image.mean((1, 2, 3), keepdim=True).flatten(1)[..., None]

    subject = from_module(Skips(positions=False, pooled=False), IMAGE)
    assert subject.patch_embedding_path is None
    assert subject.notes == (WHOLE_ROWS_REASON,)
    outcomes = {f.law: f.outcome for f in audit(subject, laws=["permutation", "batch", "stateless"]).findings}
    assert outcomes == {"permutation": "undecided", "batch": "pass", "stateless": "pass"}  # named, and not applicable


class Inline(nn.Module):
    """A transformer whose forward makes the patches; subclasses choose how. A shared scale couples the rows."""

    def __init__(self, *, shared=False):
        super().__init__()
        torch.manual_seed(0)
        self.proj, self.shared = nn.Conv2d(3, 16, 2, 2), shared
        self.weight = nn.Parameter(torch.randn(16, 12))
        self.positions = nn.Parameter(torch.randn(1, 16, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def patches(self, image):
        raise NotImplementedError

    def forward(self, image):
        x = self.patches(image / image.std() if self.shared else image) + self.positions
        return self.layer(x).mean(1)


class ByConvolution(Inline):
    def patches(self, image):
        return self.proj(image).flatten(2).transpose(1, 2)


class ByFunction(Inline):
    def patches(self, image):
        return nn.functional.conv2d(image, self.weight.view(16, 3, 2, 2), stride=2).flatten(2).mT


class ByUnfold(Inline):
    def patches(self, image):
        return nn.functional.unfold(image, 2, stride=2).transpose(1, 2) @ self.weight.T


class ByReshape(Inline):
    def patches(self, image):
        grid = image.unflatten(3, (4, 2)).unflatten(2, (4, 2)).permute(0, 2, 4, 1, 3, 5)
        return grid.flatten(3).flatten(1, 2) @ self.weight.T


class InGrid(Inline):
    def patches(self, image):
        grid = self.proj(image)
        return (grid + nn.functional.avg_pool2d(grid, 3, 1, 1)).permute(0, 2, 3, 1).reshape(len(image), -1, 16)


@pytest.mark.parametrize("kind", [ByConvolution, ByFunction, ByUnfold, ByReshape, InGrid])
def test_patches_that_the_forward_makes(kind):
    laws = ["permutation", "batch", "stateless", "batch_composition", "save_load"]
    module = kind()
    subject = from_module(module, IMAGE)
    by_module = kind in (ByConvolution, InGrid)
    assert (subject.patch_embedding_path, subject.default_length) == (("proj.rows", 16) if by_module else (None, 3))
    outcomes = {f.law: f.outcome for f in audit(subject, laws=laws, expect={"permutation": "any"}).findings}
    assert outcomes.pop("permutation") == (
        ("undecided" if kind is InGrid else "yes") if by_module else "not_applicable"
    )
    assert outcomes == {"batch": "pass", "stateless": "pass", "batch_composition": "pass", "save_load": "pass"}
    assert isinstance(module.proj, nn.Conv2d)  # a copy has two steps
    coupled = {f.law: f.outcome for f in audit(kind(shared=True), inputs=(IMAGE,), laws=laws).findings}
    assert (coupled["batch"], coupled["batch_composition"]) == ("fail", "fail")


class WithIdentity(Patches):
    """Patches that an identity returns too, in the place of a normalization."""

    def __init__(self):
        super().__init__()
        self.norm = nn.Identity()

    def forward(self, image):
        return self.norm(super().forward(image))


def test_an_identity_is_no_patch_embedding():
    model = ViT(positions=True, pooled=False)
    model.patches = WithIdentity()
    (finding,) = audit(model.eval(), inputs=IMAGE, laws=["permutation"]).findings
    assert finding.verdict == "refuted"
