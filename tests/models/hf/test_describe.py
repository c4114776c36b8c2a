"""The description of a transformers model: stated facts, inferred ones with notes, and values from the user."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.models import Subject, load
from orderproof.models.hf.adapter import HFAdapter
from orderproof.models.hf.assumptions import ASSUMABLE, check_assumptions
from orderproof.models.hf.attention_pattern import AttentionLayer, attention_pattern, configured_layers
from orderproof.models.hf.describe import ModelDescription, describe

pytest.importorskip("transformers")


def adapter_of(subject: Subject) -> HFAdapter:
    assert subject.build_adapter is not None
    adapter = subject.build_adapter()
    assert isinstance(adapter, HFAdapter)
    return adapter


def test_description_of_a_llama() -> None:
    found = describe(load("arch:llama", tiny=True).module.model)
    assert (found.class_name, found.model_kind, found.causal, found.layer_count) == ("LlamaModel", "causal_lm", True, 2)
    assert {"input_ids", "inputs_embeds", "position_ids", "use_cache"} <= found.forward_arguments
    assert found.accepts_kwargs
    assert (found.vocab_size, found.position_table_size, found.config_max_positions) == (99, None, 70)
    assert (found.family_max_positions, found.has_positions, found.first_position_id) == (2048, True, 0)
    assert found.attention_layers == (AttentionLayer("full_attention"),) * 2
    assert found.has_full_attention
    assert found.notes == ()


def test_adapter_and_subject_read_the_description() -> None:
    subject = load("arch:mistral", tiny=True)
    adapter = adapter_of(subject)
    found = adapter.description
    assert (adapter.causal, adapter.context_spans) == (True, (4,))
    assert found.attention_layers == (AttentionLayer("sliding_attention", 4),) * 2
    assert not found.has_full_attention
    assert (subject.layer_count, subject.first_position) == (found.layer_count, found.first_position_id)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t5", "model_kind 'encoder' inferred from the source of T5EncoderModel"),
        ("clip_text_model", "model_kind 'causal_lm' inferred from the source of CLIPTextModel"),
        ("xlnet", "model_kind 'encoder' inferred from a list of model types (xlnet)"),
        ("mamba", "attention pattern not determined because of"),
        ("mamba", "no position encoding inferred from the names of its modules and buffers"),
        ("rwkv", "attention_mask counts as ignored by a warning in RwkvModel.forward"),
        ("longformer", "attention pattern not determined because of"),
        ("llava", "audited component of llava: llama"),
    ],
)
def test_an_inference_that_narrows_the_audit_leaves_a_note(name: str, text: str) -> None:
    assert any(note.startswith(text) for note in load(f"arch:{name}", tiny=True).notes)


@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral", "vit"])
def test_stated_facts_leave_no_note(name: str) -> None:
    assert load(f"arch:{name}", tiny=True).notes == ()


def test_notes_are_in_the_report() -> None:
    report = audit(load("arch:t5", tiny=True), laws=["stateless"])
    assert any(note.startswith("model_kind 'encoder' inferred from") for note in report.notes)


def test_assumptions_replace_inferred_values() -> None:
    subject = load("arch:t5", tiny=True, assume={"model_kind": "causal_lm", "has_positions": False})
    assert subject.model_kind == "causal_lm"
    assert subject.notes[:2] == (
        "model_kind is 'causal_lm', as stated",
        "has_positions is False, as stated",
    )
    assert not any("inferred" in note for note in subject.notes)
    adapter = adapter_of(subject)
    assert (adapter.causal, adapter.has_positions) == (True, False)


def test_assumed_layer_types_determine_the_pattern() -> None:
    adapter = adapter_of(load("arch:mamba", tiny=True, assume={"layer_types": ["full_attention"]}))
    pattern = adapter.attention_pattern(4)
    assert pattern is not None
    assert torch.equal(pattern.required, torch.ones(4, 4).tril().bool())


def test_assumed_arguments_are_not_ignored() -> None:
    adapter = adapter_of(load("arch:rwkv", tiny=True, assume={"ignored_arguments": []}))
    assert adapter.description.ignored_arguments == frozenset()


@pytest.mark.parametrize(
    ("assume", "message"),
    [
        ({"model_knd": "encoder"}, "got 'model_knd'; did you mean 'model_kind'"),
        ({"model_kind": "decoder"}, "model_kind: expected one of encoder, causal_lm; got 'decoder'"),
        ({"layer_types": ["half"]}, "layer_types: expected a list of full_attention, .*; got"),
        ({"has_positions": 1}, "has_positions: expected bool; got 1"),
    ],
)
def test_wrong_assumptions_are_refused(assume: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_assumptions(assume)


def test_every_assumable_name_is_a_field_or_determines_one() -> None:
    assert set(ASSUMABLE) - {"layer_types"} <= set(ModelDescription.__dataclass_fields__)


def test_layers_of_an_unknown_type_have_no_pattern() -> None:
    config = SimpleNamespace(layer_types=["full_attention", "linear_attention"])
    assert configured_layers(config) == "layers of type 'linear_attention'"
    assert attention_pattern(None, 3, causal=False) is None


def test_a_failed_probe_keeps_its_error_and_an_error_of_ours_is_raised() -> None:
    adapter = adapter_of(load("arch:gpt2", tiny=True))

    def failing(error: Exception) -> nn.Module:
        class Failing(type(adapter.module)):  # type: ignore[misc]
            def forward(self, *inputs: Any, **options: Any) -> Any:
                raise error

        model = object.__new__(Failing)
        model.__dict__ = adapter.module.__dict__
        return model

    adapter.__dict__.pop("cache_argument", None)
    adapter.module = failing(ValueError("no cache here"))
    assert adapter.cache_argument is None
    assert adapter.probe_failures["cache"].startswith("a call with use_cache raised ValueError: no cache here: ")
    adapter = adapter_of(load("arch:gpt2", tiny=True))
    adapter.__dict__.pop("cache_argument", None)
    adapter.module = failing(UsageError("a defect"))
    with pytest.raises(UsageError, match="a defect"):
        _ = adapter.cache_argument


def test_an_image_model_is_no_encoder_of_tokens() -> None:
    with pytest.raises(UsageError, match="expected a model of tokens to be .*; ViTModel is vision"):
        load("arch:vit", tiny=True, assume={"model_kind": "encoder"})
