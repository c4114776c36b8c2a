from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orderproof import positions
from orderproof.blocks import fingerprint_model, masks
from orderproof.errors import PositionError, UsageError
from tests.encodings.examples import normal


def test_causal_is_the_lower_triangle_of_rising_positions() -> None:
    p = positions.arange(4)
    assert torch.equal(masks.causal_mask(p)[0], torch.ones(4, 4).tril().bool())
    assert torch.equal(masks.causal_mask(p[2:], p)[0], torch.ones(4, 4).tril().bool()[2:])


def test_padding_hides_keys_from_every_query() -> None:
    real = torch.tensor([[False, True, True]])
    assert masks.padding_mask(real).expand(1, 3, 3).tolist() == [[[False, True, True]] * 3]


@given(back=st.integers(0, 4), ahead=st.integers(0, 4))
def test_a_window_reaches_back_and_ahead(back: int, ahead: int) -> None:
    seen = masks.window_mask(positions.offset(3, 6), back=back, ahead=ahead)
    assert seen.tolist() == [[-back <= n - m <= ahead for n in range(6)] for m in range(6)]
    assert torch.equal(
        masks.window_mask(positions.arange(6)[4:], positions.arange(6), back=back, ahead=ahead), seen[4:]
    )


@pytest.mark.parametrize("name", ["none", "rotary", "sinusoidal", "t5", "shaw", "cope", "forgetting", "path"])
def test_packed_documents_give_the_result_of_separate_rows(name: str) -> None:
    block = fingerprint_model(name, causal=True).double()
    x, boundaries = normal(1, 9, 32), torch.tensor([0, 4, 5, 9])
    packed = block(x, positions.packed(boundaries), mask=masks.document_mask(boundaries))
    alone = [block(part) for part in x.split([4, 1, 4], dim=1)]
    assert torch.allclose(packed, torch.cat(alone, dim=1), atol=1e-12)
    numbered = block(x, document_ids=positions.document_ids(boundaries))
    assert torch.allclose(numbered, packed, atol=1e-12)


def test_a_causal_window_narrows_visibility() -> None:
    block, x = fingerprint_model("rotary", causal=True, layers=1).double(), normal(1, 6, 32)
    near = masks.window_mask(positions.arange(6), back=1, ahead=0)
    changed = x.clone()
    changed[:, 0] = normal(1, 32, seed=9)
    difference = (block(changed, mask=near) - block(x, mask=near)).abs().amax(-1)[0]
    assert (difference > 1e-6).tolist() == [True, True, False, False, False, False]


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(UsageError, match="window: expected back and ahead of 0 or more, got -1 and 0"):
        masks.window_mask(positions.arange(2), back=-1, ahead=0)
    with pytest.raises(PositionError, match="q_positions: expected an integer dtype"):
        masks.causal_mask(torch.zeros(2))
