"""Which token sees which, read from configurations."""

from __future__ import annotations

import pytest
import torch

from orderproof.subjects import load

pytest.importorskip("transformers")


def sees(name: str, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    made = load(f"arch:{name}", tiny=True).driver
    assert made is not None
    sight = made().sees(tokens)
    assert sight is not None
    return sight.most, sight.least


def test_window_of_four_sees_seven_tokens_through_two_layers() -> None:
    most, least = sees("mistral", 12)
    distance = torch.arange(12).unsqueeze(-1) - torch.arange(12)
    assert torch.equal(most, (distance >= 0) & (distance <= 6))
    assert torch.equal(most, least)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "gpt_oss"])
def test_a_layer_that_sees_all_that_came_before_is_enough(name: str) -> None:
    most, least = sees(name, 12)
    assert torch.equal(most, torch.ones(12, 12).tril().bool())
    assert torch.equal(least, most)


@pytest.mark.parametrize("name", ["mamba", "rwkv", "gpt_neo", "doge"])
def test_of_a_recurrence_or_a_choice_only_the_bound_is_known(name: str) -> None:
    most, least = sees(name, 12)
    assert torch.equal(most, torch.ones(12, 12).tril().bool())
    assert torch.equal(least, torch.eye(12).bool())


@pytest.mark.parametrize("name", ["bert", "t5", "xlnet"])
def test_encoder_sees_everything(name: str) -> None:
    _, least = sees(name, 5)
    assert bool(least.all())


@pytest.mark.parametrize("name", ["longformer", "reformer", "big_bird", "cpmant", "deepseek_ocr2_encoder"])
def test_of_an_encoder_that_sees_parts_nothing_is_known(name: str) -> None:
    made = load(f"arch:{name}", tiny=True).driver
    assert made is not None
    assert made().sees(5) is None


@pytest.mark.parametrize(
    ("name", "first"), [("roberta", 2), ("ibert", 2), ("kosmos_2_text_model", 2), ("yoso", 2), ("bert", 0)]
)
def test_first_position_id_is_the_one_the_model_counts_from(name: str, first: int) -> None:
    made = load(f"arch:{name}", tiny=True).driver
    assert made is not None
    assert made().first_position == first


def test_window_of_an_encoder_reaches_both_ways() -> None:
    most, _ = sees("openai_privacy_filter", 20)
    distance = (torch.arange(20).unsqueeze(-1) - torch.arange(20)).abs()
    assert torch.equal(most, distance <= 8)
