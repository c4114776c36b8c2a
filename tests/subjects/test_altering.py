"""Settings that are changed: those that the configuration says are in use, and the weights stay."""

from __future__ import annotations

import pytest
import torch

from orderproof.subjects import load
from orderproof.subjects.altering import altered


def model(name: str) -> object:
    driver = load(f"arch:{name}", tiny=True).driver
    assert driver is not None
    return driver().module


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("llama", ["rope_theta", "rope_type"]),
        ("mistral", ["rope_theta", "rope_type", "sliding_window"]),
        ("qwen2", ["rope_theta", "rope_type"]),  # its window is switched off
        ("gpt_oss", ["rope_theta", "rope factor", "sliding_window"]),
        ("gpt2", []),
        ("falcon?alibi=true", []),  # a base it states, and says it does not use
        ("bamba", []),  # no layer of attention
    ],
)
def test_settings_in_use_are_changed(name: str, settings: list[str]) -> None:
    assert [words for words, _ in altered(model(name))] == settings


def test_each_kind_of_layer_has_settings_of_its_own_and_weights_stay() -> None:
    whole = model("gemma3_text")
    found = dict(altered(whole))
    kinds = ("sliding_attention", "full_attention")
    assert set(found) == {f"{word} of {k} layers" for word in ("rope_theta", "rope_type") for k in kinds} | {
        "sliding_window"
    }
    for other in found.values():
        theirs = dict(other.named_parameters())
        assert all(torch.equal(p, theirs[name]) for name, p in whole.named_parameters())  # type: ignore[attr-defined]
