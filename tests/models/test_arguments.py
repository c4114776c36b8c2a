"""Inputs as people have them: keyword arguments, containers, flags, masks and dataclasses."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from orderproof import audit, prove
from orderproof.models import from_module
from orderproof.models.call_arguments import template_call
from orderproof.models.roles.computed_inputs import square_mask

TOKENS = torch.randn(2, 7, 16)


@dataclass
class Batch:
    """Tokens with the scale of each row."""

    tokens: Tensor
    scale: float
    more: dict[str, Tensor]


class OfBatch(nn.Module):
    """Takes and returns a dataclass."""

    def forward(self, batch, *, reverse=False):
        x = batch.tokens * batch.scale + batch.more["shift"]
        x = x.flip(1) if reverse else x
        return Batch(x.cumsum(1), 1.0, {"mean": x.mean(1)})


class Attention(nn.Module):
    """Attention with a mask [query, key] as an argument, True or 0 at visible keys."""

    def forward(self, x, mask, scale=1.0):
        scores = x @ x.mT * scale
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else scores + mask
        return scores.softmax(-1) @ x


CAUSAL = torch.ones(7, 7).tril().bool()
ADDED = torch.full((7, 7), -torch.inf).triu(1)


def causal_verdicts(module, inputs):
    return {f.output: f for f in audit(module, laws=["causal"], inputs=inputs).findings}


@pytest.mark.parametrize(("reverse", "verdict"), [(False, "proved"), (True, "refuted")])
def test_dataclasses_flags_and_numbers_are_arguments(reverse, verdict):
    batch = Batch(TOKENS, 2.0, {"shift": torch.randn(2, 7, 16)})
    found = causal_verdicts(OfBatch(), {"batch": batch, "reverse": reverse})
    assert found["tokens"].verdict == verdict
    assert found["more.mean"].verdict == "not_applicable"


def test_lists_and_dictionaries_are_arguments():
    class Joined(nn.Module):
        def forward(self, parts, options):
            return torch.cat(parts, -1).cumsum(1) * options["scale"]

    subject = from_module(Joined(), ([TOKENS, TOKENS + 1], {"scale": 3}))
    assert subject.token_axes == (1, 1)
    assert prove(subject, "causal").theorem.proved


@pytest.mark.parametrize("mask", [CAUSAL, ADDED, CAUSAL[None, :, :]], ids=["seen", "added", "with an axis before"])
def test_a_triangular_mask_is_computed_for_each_length(mask):
    subject = from_module(Attention(), {"x": TOKENS, "mask": mask, "scale": 0.5})
    assert (subject.token_axes, subject.max_length) == ((1,), None)
    assert "input 1: a triangular mask, computed for each number of tokens" in subject.notes
    finding = prove(subject, "causal")
    assert (finding.verdict, finding.theorem.proved) == ("proved", True)
    assert prove(Attention(), "causal", inputs=(TOKENS, CAUSAL.mT)).verdict == "refuted"


def test_a_mask_of_transformer_makes_it_causal():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    assert prove(layer, "causal", inputs={"src": TOKENS, "src_mask": mask, "is_causal": True}).verdict == "proved"
    assert prove(layer, "causal", inputs={"src": TOKENS}).verdict == "refuted"


@pytest.mark.parametrize("diagonal", [-1, 0, 1])
def test_square_masks_are_recognised(diagonal):
    square = torch.where(torch.ones(7, 7).tril(diagonal) > 0, 0.0, -torch.inf)
    mask = square_mask(square[None, None], 7)
    assert mask is not None
    assert mask.diagonal == diagonal
    assert torch.equal(mask.for_call(1, 7, torch.device("cpu")), square[None, None])
    wide = mask.for_call(1, 11, torch.device("cpu"))
    assert torch.equal(wide[0, 0] == 0, torch.ones(11, 11).tril(diagonal) > 0)
    assert square_mask(torch.rand(7, 7), 7) is None
    of_one_value = square_mask(torch.ones(7, 7, dtype=torch.bool), 7)
    assert of_one_value is not None
    assert torch.equal(of_one_value.for_call(1, 3, torch.device("cpu")), torch.ones(3, 3, dtype=torch.bool))
    assert square_mask(torch.ones(7, 5).tril(), 7) is None


class FlexAttention(nn.Module):
    """Flex attention with two heads, under a block mask that it is given."""

    def forward(self, x, block_mask):
        heads = x.unflatten(-1, (2, -1)).transpose(1, 2)
        return x + flex_attention(heads, heads, heads, block_mask=block_mask).transpose(1, 2).flatten(2)


def block_mask(mask: Tensor):
    """The block mask of a mask [row, head, token, token]; an axis of size 1 is for all."""
    rows, heads = (size > 1 for size in mask.shape[:2])

    def visible(row, head, query, key):
        return mask[row * rows, head * heads, query, key]

    return create_block_mask(visible, *mask.shape, device="cpu")


DOCUMENT = torch.tensor([0, 0, 0, 1, 1, 1, 1])
WITHIN = CAUSAL & (DOCUMENT[:, None] == DOCUMENT)
BLOCKED = {
    "triangular mask": CAUSAL[None, None],
    "mask of packed documents [token, token]": WITHIN[None, None],
    "moves with its row, held otherwise": WITHIN.expand(2, 2, 7, 7) & torch.tensor([True, False])[None, :, None, None],
}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(("role", "mask"), BLOCKED.items(), ids=["triangular", "documents", "of each head"])
def test_block_mask_has_the_role_of_the_mask_that_it_stands_for(role, mask):
    subject = from_module(FlexAttention(), (TOKENS, block_mask(mask)))
    described = {x.name: x.role for x in subject.input_roles}
    assert described["block_mask"] == role


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_call_builds_the_block_mask_that_it_was_given():
    per_row = torch.stack([CAUSAL, WITHIN])[:, None].expand(2, 2, 7, 7).clone()
    per_row[:, 1] = CAUSAL
    module, given = FlexAttention(), block_mask(per_row)
    called, inputs = template_call(module, (TOKENS, given), ("x", "block_mask"))
    assert torch.equal(inputs["block_mask"], per_row)
    assert torch.allclose(called(*inputs.values()), module(TOKENS, given))
