"""Settings that are changed: those that the configuration says are in use, and the weights stay."""

from __future__ import annotations

import pytest
import torch

from orderproof.subjects import load
from orderproof.subjects.altering import altered

KINDS = ("sliding_attention", "full_attention")
TURNS = ("rope_theta", "rope_type")


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
        ("modernbert-decoder", [f"{w} of {k} layers" for k in KINDS for w in TURNS] + ["sliding_window"]),
        ("granite_swa", ["rope_theta", "rope_type", "sliding_window"]),
        ("gpt2", []),
        ("falcon?alibi=true", []),  # a base it states, and says it does not use
        ("moshi", ["rope_type", "sliding_window"]),  # one frequency in its tiny heads, 1 for every base
        ("bamba", []),  # no layer of attention
    ],
)
def test_settings_in_use_are_changed(name: str, settings: list[str]) -> None:
    assert [words for words, _ in altered(model(name))] == settings


def test_each_kind_of_layer_has_settings_of_its_own_and_weights_stay() -> None:
    whole = model("gemma3_text")
    found = dict(altered(whole))
    assert set(found) == {f"{word} of {k} layers" for word in TURNS for k in KINDS} | {"sliding_window"}
    for other in found.values():
        theirs = dict(other.named_parameters())
        assert all(torch.equal(p, theirs[name]) for name, p in whole.named_parameters())  # type: ignore[attr-defined]


def test_base_that_is_stated_for_each_layer_is_changed_there() -> None:
    found = dict(altered(model("granite_swa")))
    assert found["rope_theta"].config.layer_rope_theta == [80000.0, 80000.0]
