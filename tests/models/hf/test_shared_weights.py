"""Models that share the weights of a large one compute what copies of it compute, and lose what copies lose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from orderproof import cast_on_use
from orderproof.cast_on_use import CastOnUse, source_of
from orderproof.laws.measured import CachedCalls
from orderproof.models.hf.adapter import HFAdapter
from orderproof.models.hf.generation import greedy_tokens
from tests.lab.small_study import no_file_larger_than
from tests.models.hf.adapters import measure, tiny_adapter

NAMES = ("llama", "gpt2", "gemma2", "qwen3", "bert")


@pytest.fixture(autouse=True)
def _every_model_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)
    monkeypatch.setattr(cast_on_use, "LEAST_ELEMENTS", 0)


def memory(module: Any) -> set[int]:
    """The memory of the parameters."""
    return {source_of(p).data_ptr() for p in module.parameters()}


def made_of(adapter: HFAdapter) -> Iterator[tuple[str, HFAdapter]]:
    """The models that laws make of one."""
    yield from ((name, make()) for name, make in adapter.reload_methods().items())
    yield "bfloat16", adapter.loaded_in(torch.bfloat16)
    yield "float64", adapter.loaded_in(torch.float64)
    yield "cast", adapter.cast_to(torch.bfloat16)
    yield "float64 copy", adapter.in_float64()
    yield from adapter.config_variants()


@pytest.mark.parametrize("name", NAMES)
def test_no_second_copy_of_the_weights_is_made(name: str) -> None:
    adapter = tiny_adapter(name)
    for what, made in made_of(adapter):
        assert memory(made.module) <= memory(adapter.module), what
        assert not any(p.is_meta for p in made.module.parameters()), what
        assert made.call(made.sample_tokens(2, 7, 0), keep=False).output.isfinite().all(), what


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_no_weights_are_written_to_a_temporary_file(name: str) -> None:
    adapter = tiny_adapter(name)
    largest = max(p.numel() * p.element_size() for p in adapter.module.parameters())
    with no_file_larger_than(largest - 1):
        made = [made for _, made in made_of(adapter)]
    assert len(made) > 4


@pytest.mark.parametrize("name", NAMES)
def test_they_compute_what_copies_compute(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = tiny_adapter(name)
    tokens = adapter.sample_tokens(2, 7, 0)
    with torch.no_grad():
        shared = {what: made.call(tokens, keep=False).output for what, made in made_of(adapter)}
        monkeypatch.undo()
        copied = {what: made.call(tokens, keep=False).output for what, made in made_of(adapter)}
    assert shared.keys() == copied.keys()
    for what, output in shared.items():
        assert torch.equal(output, copied[what]), what


def test_a_buffer_that_is_lost_is_found() -> None:
    adapter = tiny_adapter("llama")
    lost = adapter.with_module(type(adapter.module)(adapter.module.config).eval())
    lost.module.load_state_dict(adapter.module.state_dict())
    lost.module.rotary_emb.inv_freq = lost.module.rotary_emb.inv_freq * 2  # computed again by loading
    assert measure(adapter, "save_load").verdict == "held"
    assert measure(lost, "save_load").verdict == "refuted"


def test_a_large_model_generates_with_its_table_as_a_head() -> None:
    adapter = tiny_adapter("llama")
    tokens = adapter.sample_tokens(2, 5, 0)
    generated, by_hand = greedy_tokens(adapter.module, tokens, 3, None, pad_token_id=None, takes_positions=True)
    assert generated.shape == (2, 3)
    assert torch.equal(generated, by_hand)


def test_calls_in_float64_of_calls_in_float32_cast_the_weights_of_the_model() -> None:
    adapter = tiny_adapter("llama")
    adapter.module.bfloat16()
    calls = CachedCalls(adapter)
    for wide in (calls.float32, calls.float64, calls.float32.float64):
        assert memory(wide.adapter.module) == memory(adapter.module)
        assert all(isinstance(p, CastOnUse) for p in wide.adapter.module.parameters())
    assert torch.equal(calls.float32.float64.default_output, calls.float64.default_output)
