"""Plain modules that take an image: their tokens are patches."""

import pytest
import torch
from torch import nn

from orderproof import audit
from orderproof.errors import SubjectError
from orderproof.models import from_module

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


def test_an_image_that_takes_another_path_is_refused():
    class Skips(ViT):
        def forward(self, image):
            return super().forward(image) + image.mean()

    with pytest.raises(SubjectError, match=r"no token axis found in inputs of shape \(2, 3, 8, 8\)"):
        from_module(Skips(positions=False, pooled=True), IMAGE)
