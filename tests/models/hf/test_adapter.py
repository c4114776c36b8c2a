"""Calls of transformers models: caches, generation and masks."""

from __future__ import annotations

from functools import wraps
from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.models import load
from tests.models.hf.adapters import measure, tiny_adapter

pytest.importorskip("transformers")


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("llama", ("static", "quantised")),
        ("mistral", ("static", "full", "recording")),  # a quantised cache is for full attention only
        ("mamba", ()),
        ("bert", ()),
    ],
)
def test_cache_kinds(name: str, kinds: tuple[str, ...]) -> None:
    assert tiny_adapter(name).cache_kinds() == kinds


@pytest.mark.parametrize(
    ("name", "law"), [("mistral", "cached_decoding"), ("mistral", "cache_editing"), ("gpt2", "left_padded_decoding")]
)
def test_every_cache_kind_and_generation_hold(name: str, law: str) -> None:
    finding = measure(tiny_adapter(name), law)
    assert finding.verdict == "held"
    assert finding.measurement is not None
    assert all(comparison.float32 is not None for comparison in finding.measurement.comparisons)


def test_a_quantised_cache_is_decoded_with_and_its_crop_is_reported() -> None:
    decoding = measure(tiny_adapter("llama"), "cached_decoding")
    assert decoding.verdict == "held"
    assert decoding.measurement is not None
    made = {each.description: each.float32 for each in decoding.measurement.comparisons}
    assert made["token-by-token decoding into a quantised cache"] is not None
    editing = measure(tiny_adapter("llama"), "cache_editing")
    assert editing.verdict == "held"
    assert "for information only: a decoded token cropped from a quantised cache" in editing.reason


@pytest.mark.parametrize("law", ["cached_decoding", "left_padded_decoding"])
def test_generation_is_the_last_comparison(law: str) -> None:
    finding = measure(tiny_adapter("llama"), law)
    assert finding.measurement is not None
    assert "greedy generation" in finding.measurement.comparisons[-1].description


def test_generation_that_loses_its_cache_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import LlamaModel

    adapter, forward = tiny_adapter("llama"), LlamaModel.forward

    @wraps(forward)
    def forgetful(self: Any, *inputs: Any, **options: Any) -> Any:
        if options.get("past_key_values") is not None and options["past_key_values"].get_seq_length():
            options["position_ids"] = torch.zeros_like(options["position_ids"])
        return forward(self, *inputs, **options)

    monkeypatch.setattr(LlamaModel, "forward", forgetful)
    generated, uncached = adapter.greedy_generation(adapter.sample_tokens(2, 7, 0), 4)
    assert torch.equal(generated[:, 0], uncached[:, 0])
    assert not torch.equal(generated, uncached)


def test_recurrence_on_a_cache_gets_the_mask_of_the_call() -> None:
    shapes: list[tuple[int, ...]] = []
    adapter = tiny_adapter("mamba")
    original = adapter.module.forward

    def forward(*inputs: Any, attention_mask: Tensor | None = None, **options: Any) -> Any:
        assert attention_mask is not None
        shapes.append(tuple(attention_mask.shape))
        return original(*inputs, attention_mask=attention_mask, **options)

    tokens, mask = adapter.sample_tokens(2, 7, 0), torch.ones(2, 7, dtype=torch.bool)
    assert adapter.supported_inputs >= {"cache", "mask"}
    adapter.module.forward = forward
    with torch.no_grad():
        cache = adapter.call(tokens[:, :5], mask=mask[:, :5], keep=True).cache
        adapter.call(tokens[:, 5:], mask=mask, past=cache, keep=True)
    assert shapes == [(2, 5), (2, 2)]


def test_an_output_of_another_length_is_an_error() -> None:
    finding = measure(tiny_adapter("rwkv"), "cached_decoding")
    assert finding.measurement is not None
    expected = "a call with 1 token on a cache gave an output of shape [2, 2, 64]"
    assert finding.measurement.comparisons[0].reason == expected


@pytest.mark.parametrize(
    ("name", "law"),
    [
        (
            "unlimited_ocr_text",
            "cached_decoding",
        ),  # prefilled tokens stay visible: the cache needs their number
        ("blt_patcher", "attention_backend"),  # one number per token, without a feature axis
        ("blt_global_transformer", "attention_backend"),  # takes a square mask only
        ("blt_local_encoder", "batch_composition"),
        ("granite_docling_text", "default_position_ids"),  # positions have little influence
    ],
)
def test_documented_behaviour_is_no_violation(name: str, law: str) -> None:
    finding = measure(tiny_adapter(name), law)
    assert finding.verdict == "held", finding.reason


def test_a_component_gets_a_square_mask() -> None:
    adapter = tiny_adapter("blt_global_transformer")
    tokens, mask = adapter.sample_tokens(1, 4, 0), torch.tensor([[False, True, True, True]])
    other = tokens.clone()
    other[:, 0] += 1
    other[:, 3] += 1
    with torch.no_grad():
        first, second = (adapter.call(x, mask=mask).output for x in (tokens, other))
    assert torch.equal(first[:, 1:3], second[:, 1:3])
    assert not torch.equal(first[:, 3], second[:, 3])


@pytest.mark.parametrize(("name", "sides"), [("xglm", {"left"}), ("trocr", set()), ("bert", set())])
def test_rows_of_a_decoder_are_padded_on_the_left_unless_it_reads_an_encoder(name: str, sides: set[str]) -> None:
    adapter = tiny_adapter(name)
    assert adapter.usual_sides == sides
    finding = measure(adapter, "batch_composition", kind="encoder" if name == "bert" else "causal_lm")
    assert finding.verdict == "held", finding.reason


def test_a_decoder_of_an_encoder_decoder_is_not_asked_about_pads_on_the_left() -> None:
    build = load("arch:bart", tiny=True).build_decoder_adapter
    assert build is not None
    adapter = build()
    assert adapter.usual_sides == frozenset()
    finding = measure(adapter, "batch_composition")
    assert finding.verdict == "held", finding.reason
    assert finding.measurement is not None
    assert any("pad them on the right" in one.reason for one in finding.measurement.comparisons)
