"""How transformers models are called: their caches, their own generation, and whose mask is whose."""

from __future__ import annotations

from functools import wraps
from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.auditing.measure import measure_law
from orderproof.driver import Driver
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.law import MeasuredLaw
from orderproof.record import Finding
from orderproof.subjects import load

pytest.importorskip("transformers")


def driver(name: str) -> Driver:
    made = load(f"arch:{name}", tiny=True).driver
    assert made is not None
    return made()


def measured(name: str, law_name: str) -> Finding:
    law, way = find(law_name), driver(name)
    assert isinstance(law, MeasuredLaw)
    return measure_law(way, law, Bench(way), kind="causal_lm")


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("llama", ("static",)), ("mistral", ("static", "full", "recording")), ("mamba", ()), ("bert", ())],
)
def test_kinds_of_caches(name: str, kinds: tuple[str, ...]) -> None:
    assert driver(name).caches() == kinds


@pytest.mark.parametrize(("name", "law"), [("mistral", "cache"), ("mistral", "cache_edits"), ("gpt2", "cache_padded")])
def test_every_kind_and_generation_are_held(name: str, law: str) -> None:
    found = measured(name, law)
    assert found.verdict == "held"
    assert found.measurement is not None
    assert all(trial.float32 is not None for trial in found.measurement.trials)


@pytest.mark.parametrize("law", ["cache", "cache_padded"])
def test_generation_is_among_the_trials(law: str) -> None:
    found = measured("llama", law)
    assert found.measurement is not None
    assert "greedy generation" in found.measurement.trials[-1].what


def test_generation_that_loses_its_cache_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import LlamaModel

    way, forward = driver("llama"), LlamaModel.forward

    @wraps(forward)
    def forgetful(self: Any, *given: Any, **more: Any) -> Any:
        if more.get("past_key_values") is not None and more["past_key_values"].get_seq_length():
            more["position_ids"] = torch.zeros_like(more["position_ids"])
        return forward(self, *given, **more)

    monkeypatch.setattr(LlamaModel, "forward", forgetful)
    made, by_hand = way.generated(way.draw(2, 7, 0), 4)
    assert torch.equal(made[:, 0], by_hand[:, 0])
    assert not torch.equal(made, by_hand)


def test_recurrence_on_a_cache_gets_the_mask_of_the_call() -> None:
    seen: list[tuple[int, ...]] = []
    way = driver("mamba")
    own = way.module.forward

    def forward(*given: Any, attention_mask: Tensor | None = None, **more: Any) -> Any:
        assert attention_mask is not None
        seen.append(tuple(attention_mask.shape))
        return own(*given, attention_mask=attention_mask, **more)

    tokens, mask = way.draw(2, 7, 0), torch.ones(2, 7, dtype=torch.bool)
    assert way.takes >= {"cache", "mask"}
    way.module.forward = forward
    with torch.no_grad():
        cache = way.call(tokens[:, :5], mask=mask[:, :5], keep=True).cache
        way.call(tokens[:, 5:], mask=mask, past=cache, keep=True)
    assert seen == [(2, 5), (2, 2)]


def test_output_of_another_length_is_told() -> None:
    found = measured("rwkv", "cache")
    assert found.measurement is not None
    said = "ValueError: a call with 1 token on a cache gave an output of shape [2, 2, 64]"
    assert found.measurement.trials[0].reason == said


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("unlimited_ocr_text", "cache"),  # what is read first stays in sight: the cache is told how much that is
        ("blt_patcher", "backend"),  # it gives one number a token, without an axis for it
        ("blt_global_transformer", "backend"),  # it takes no mask but that of which token sees which
        ("blt_local_encoder", "batch_mates"),
        ("granite_docling_text", "default_positions"),  # positions matter little to it
    ],
)
def test_what_is_documented_is_no_violation(name: str, law: str) -> None:
    found = measured(name, law)
    assert found.verdict == "held", found.reason


def test_part_of_a_model_is_given_which_token_sees_which() -> None:
    way = driver("blt_global_transformer")
    tokens, mask = way.draw(1, 4, 0), torch.tensor([[False, True, True, True]])
    other = tokens.clone()
    other[:, 0] += 1
    other[:, 3] += 1
    with torch.no_grad():
        first, second = (way.call(x, mask=mask).output for x in (tokens, other))
    assert torch.equal(first[:, 1:3], second[:, 1:3])
    assert not torch.equal(first[:, 3], second[:, 3])
