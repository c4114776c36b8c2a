"""What transformers models say of their positions and arguments: named, swallowed, disclaimed, or not there."""

from __future__ import annotations

import pytest
import torch

from orderproof.driver import Driver
from orderproof.subjects import load


def driver(name: str) -> Driver:
    made = load(f"arch:{name}", tiny=True).driver
    assert made is not None
    return made()


@pytest.mark.parametrize(
    ("name", "swallows", "placed"),
    [
        ("llama", set(), True),
        ("gptj", set(), True),  # a buffer of waves, and no settings of rotary angles
        ("bart", {"positions"}, True),
        ("jamba", set(), False),
        ("zamba2", set(), False),  # rotary angles that are switched off
        ("bamba", set(), False),  # rotary angles, and no attention in its tiny version
        ("vit", set(), True),
    ],
)
def test_what_it_swallows_and_whether_it_has_positions(name: str, swallows: set[str], placed: bool) -> None:
    made = driver(name)
    assert made.swallows == swallows
    assert made.placed is placed


def test_mask_that_a_model_says_it_does_not_use_is_not_taken() -> None:
    assert "mask" not in driver("rwkv").takes
    assert "mask" in driver("mamba").takes


def test_loading_in_a_dtype_makes_frequencies_anew_and_casting_rounds_them() -> None:
    made = driver("llama")
    assert (made.stated, made.reach) == (128, 2048)
    kept = made.module.rotary_emb.inv_freq.clone()
    loaded = made.loaded(torch.bfloat16).module
    assert loaded.dtype == torch.bfloat16
    assert torch.equal(loaded.rotary_emb.inv_freq, kept)
    assert not torch.equal(made.module.to(torch.bfloat16).rotary_emb.inv_freq.float(), kept)
