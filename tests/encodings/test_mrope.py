from __future__ import annotations

import math

import pytest
import torch
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLTextConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding
from transformers.models.qwen2_vl.modeling_qwen2_vl import apply_rotary_pos_emb as apply_qwen2
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLTextConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding
from transformers.models.qwen3_vl.modeling_qwen3_vl import apply_rotary_pos_emb as apply_qwen3

from orderproof import positions
from orderproof.encodings import MRope, Rotary, schedules
from orderproof.errors import EncodingError
from tests.encodings.examples import normal

ORDERS = pytest.mark.parametrize(
    ("order", "sections"), [("chunked", (16, 24, 24)), ("interleaved", (24, 20, 20)), ("interleaved", (22, 21, 21))]
)


def picture() -> torch.Tensor:
    """Positions of text, a video of 2 frames, and text again, in two rows that begin at different places."""
    text, video = positions.arange(4).expand(3, 4), positions.mrope(2, 3, 5, past=4)
    row = torch.cat([text, video, positions.offset(9, 6).expand(3, 6)], dim=-1)
    return torch.stack([row, row + 50], dim=1)


@ORDERS
def test_it_is_the_rotation_of_transformers_qwen(order: str, sections: tuple[int, int, int]) -> None:
    make, model, apply = {
        "chunked": (Qwen2VLTextConfig, Qwen2VLRotaryEmbedding, apply_qwen2),
        "interleaved": (Qwen3VLTextConfig, Qwen3VLTextRotaryEmbedding, apply_qwen3),
    }[order]
    parameters = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": list(sections)}
    config = make(hidden_size=512, num_attention_heads=4, head_dim=128, rope_parameters=parameters)
    p = picture()
    q, k = (normal(2, 4, p.shape[-1], 128, seed=seed, dtype=torch.float32) for seed in (1, 2))
    cos, sin = model(config)(q, p)
    found = MRope(128, sections=sections, section_layout=order, base=1e6).rotate(q, k, p)
    for ours, theirs in zip(found, apply(q, k, cos, sin), strict=True):
        assert torch.allclose(ours, theirs, atol=3e-5)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_chunked_rotates_each_pair_by_the_axis_of_its_section(layout: str) -> None:
    x, p = normal(1, 1, 3, 16), torch.tensor([[5, 1, 0], [70, 2, 3], [900, 4, 9]])
    found, _ = MRope(16, sections=(2, 3, 3), layout=layout).rotate(x, x, p)
    for t in range(3):
        for i in range(8):
            angle = int(p[(0, 0, 1, 1, 1, 2, 2, 2)[i], t]) * 10_000.0 ** (-2 * i / 16)
            a, b = (i, i + 8) if layout == "half" else (2 * i, 2 * i + 1)
            rotated = complex(x[0, 0, t, a], x[0, 0, t, b]) * complex(math.cos(angle), math.sin(angle))
            assert complex(found[0, 0, t, a], found[0, 0, t, b]) == pytest.approx(rotated, abs=1e-12)


def test_interleaved_gives_time_the_remaining_pairs() -> None:
    assert MRope(16, sections=(4, 2, 2), section_layout="interleaved").pair_axes == (0, 1, 2, 0, 1, 2, 0, 0)
    assert MRope(16, sections=(3, 3, 2), section_layout="interleaved").pair_axes == (0, 1, 2, 0, 1, 2, 0, 1)


@pytest.mark.parametrize("order", ["chunked", "interleaved"])
def test_on_text_it_is_rotary(order: str) -> None:
    x, p = normal(2, 3, 5, 16), positions.offset(torch.tensor([0, 70]), 5)
    found = MRope(16, sections=(4, 2, 2), section_layout=order).rotate(x, x, p.expand(3, 2, 5))
    assert torch.equal(found[0], Rotary(16).rotate(x, x, p)[0])


def test_a_schedule_is_followed_with_the_lengths() -> None:
    x, p = normal(2, 3, 5, 16), positions.offset(torch.tensor([0, 70]), 5)
    for schedule, lengths in ((schedules.Yarn(4.0, 64), None), (schedules.DynamicNTK(2.0, 8), torch.tensor([5, 75]))):
        mrope, rotary = MRope(16, schedule=schedule), Rotary(16, schedule=schedule)
        assert mrope.claims.decode_state == rotary.claims.decode_state
        assert mrope.claims.ndim == 3
        ours, theirs = (
            encoding.rotate(x, x, places, lengths=lengths)[0]
            for encoding, places in ((mrope, p.expand(3, 2, 5)), (rotary, p))
        )
        assert torch.allclose(ours, theirs, atol=1e-13)


def test_the_default_sections_are_those_of_qwen2() -> None:
    assert MRope(128).sections == (16, 24, 24)
    assert MRope(8).sections == (2, 1, 1)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="MRope: section_layout must be 'chunked' or 'interleaved', got 'mixed'"):
        MRope(8, section_layout="mixed")  # type: ignore[arg-type]
    for bad in ((1, 1, 1), (4, 0, 0), (2, 2)):
        with pytest.raises(EncodingError, match="MRope: sections must be three sizes, 1 or more, that sum to 4, got"):
            MRope(8, sections=bad)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="MRope: interleaved sections of rows and columns must fit in every third"):
        MRope(16, sections=(1, 6, 1), section_layout="interleaved")


def test_a_part_of_a_head_is_rotated_like_a_head_of_that_width() -> None:
    q, k, p = normal(2, 3, 12, 20, seed=1), normal(2, 3, 12, 20, seed=2), positions.mrope(2, 2, 3, past=5)
    sections = (2, 2, 2)
    found = MRope(20, rotary_width=12, sections=sections, section_layout="interleaved").rotate(q, k, p)
    whole = MRope(12, sections=sections, section_layout="interleaved").rotate(q[..., :12], k[..., :12], p)
    for part, rotated, x in zip(found, whole, (q, k), strict=True):
        assert torch.equal(part, torch.cat([rotated, x[..., 12:]], dim=-1))
