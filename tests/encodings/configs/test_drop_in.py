"""Rotary modules of transformers models replaced by exact ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from orderproof.encodings import NoEncoding, Rotary, drop_in, from_hf_config
from orderproof.encodings.configs._drop_in import ExactRotaryTable
from orderproof.errors import EncodingError, UsageError
from tests.encodings.hf_rotary_modules import Found, config_of, rotary_modules

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "eos_token_id": 1,
    "bos_token_id": 1,
    "pad_token_id": 0,
}
EXPERTS = {"head_dim": 16, "num_local_experts": 2}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 512}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "llama": (transformers.LlamaConfig, {"max_position_embeddings": 131072}),
    "yarn": (transformers.LlamaConfig, {"max_position_embeddings": 4096, "rope_parameters": YARN}),
    "partial": (transformers.PhiConfig, {"partial_rotary_factor": 0.5}),
    "one for each type of layer": (
        transformers.Gemma3TextConfig,
        {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "pair by pair": (transformers.CohereConfig, {}),
    "once a pair": (transformers.GptOssConfig, {**EXPERTS, "num_experts_per_tok": 1}),
    "complex": (transformers.Llama4TextConfig, {**EXPERTS, "intermediate_size_mlp": 64}),
}


def built(name: str, **more: Any) -> Any:
    """A small causal model with random weights."""
    make, options = MODELS[name]
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(make(**{**SMALL, **options, **more})).eval()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_the_same_with_a_more_exact_module(name: str) -> None:
    model = built(name)
    weights, ids = copy.deepcopy(model.state_dict()), torch.arange(2, 42).view(2, 20)
    with torch.no_grad():
        before = model(ids).logits
        report = drop_in(model)
        assert torch.allclose(model(ids).logits, before, atol=2e-5)
        decoded = model.generate(ids[:, :5], max_new_tokens=6, do_sample=False)
        again = model(decoded).logits[:, 4:-1].argmax(-1)
    assert torch.equal(decoded[:, 5:], again)
    assert model.state_dict().keys() == weights.keys()
    assert report.kept == {}
    (replaced,) = report.replaced
    assert isinstance(model.get_submodule(replaced.name), ExactRotaryTable)
    scaling = 0.1 * torch.tensor(8.0).log() + 1 if name == "yarn" else 1.5  # GPT-OSS also has YaRN
    assert replaced.error_after <= torch.finfo(torch.float32).eps * scaling
    assert replaced.error_before > 10 * replaced.error_after
    assert replaced.last_position == model.config.max_position_embeddings - 1
    assert str(report).startswith(f"{replaced.name}: replaced; largest error of a cosine or sine up to position ")


def test_frequencies_that_were_cast_are_exact_again() -> None:
    model = built("llama", max_position_embeddings=8192).to(torch.bfloat16)
    (replaced,) = drop_in(model).replaced
    assert replaced.dtype == torch.bfloat16
    assert replaced.error_before > 1
    assert replaced.error_after <= 2**-8


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_table_is_rounded_once(dtype: torch.dtype) -> None:
    model = built("llama")
    drop_in(model)
    p = torch.tensor([[0, 7, 131071]])
    cos, sin = model.model.rotary_emb(torch.zeros(1, dtype=dtype), p)
    exact = Rotary(16, base=model.config.rope_parameters["rope_theta"]).cos_sin(p, dtype=torch.float64)
    atol = 1e-10 if dtype == torch.float64 else 0.0  # the angle itself is rounded to float64
    assert torch.allclose(cos, torch.cat([exact[0]] * 2, dim=-1).to(dtype), rtol=0, atol=atol)
    assert torch.allclose(sin, torch.cat([exact[1]] * 2, dim=-1).to(dtype), rtol=0, atol=atol)


def test_it_compiles_without_a_break() -> None:
    torch.compiler.reset()
    model, ids = built("llama"), torch.arange(2, 14).view(2, 6)
    drop_in(model)
    with torch.no_grad():
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        assert torch.allclose(compiled(ids).logits, model(ids).logits, atol=1e-5)


class Holder(nn.Module):
    """A model with one rotary module."""

    def __init__(self, rotary: nn.Module) -> None:
        super().__init__()
        self.rotary = rotary


def in_one_axis(found: Found) -> bool:
    """True if every layer of the module's default configuration is a rotation with fixed frequencies, or none."""
    try:
        config = config_of(found)
        encodings = [from_hf_config(config, layer) for layer in range(config.num_hidden_layers)]
    except (EncodingError, AttributeError):
        return False
    kinds = [x for x in encodings if not isinstance(x, NoEncoding)]
    return bool(kinds) and all(isinstance(x, Rotary) and x.claims.decode_state == "none" for x in kinds)


@pytest.mark.slow
def test_every_rotary_module_that_has_an_encoding_is_replaced() -> None:
    replaced = 0
    for found in rotary_modules():
        if found.config is None or not in_one_axis(found):
            continue
        report = drop_in(Holder(found.build(config_of(found))))
        assert not report.kept, (found.name, report.kept)
        assert report.replaced[0].error_after <= report.replaced[0].error_before
        replaced += 1
    assert replaced > 60


def test_modules_that_stay_are_reported_with_the_reason() -> None:
    dynamic = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    model = built("llama", max_position_embeddings=512, rope_parameters=dynamic)
    before = model.model.rotary_emb
    report = drop_in(model)
    assert model.model.rotary_emb is before
    assert str(report) == "model.rotary_emb: kept; its frequencies depend on the length of the input"
    changed = built("llama")
    changed.model.rotary_emb.inv_freq /= 2
    assert str(drop_in(changed)) == (
        "model.rotary_emb: kept; its frequencies are not those of its config; they were changed"
    )
    unknown = Holder(type("OwnRotaryEmbedding", (nn.Module,), {})())
    assert drop_in(unknown).kept == {"rotary": "it has no config, which defines its frequencies"}


def test_a_module_that_computes_something_else_stays() -> None:
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    class HalfRotaryEmbedding(LlamaRotaryEmbedding):
        def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            cos, sin = super().forward(x, position_ids)
            return cos, sin / 2

    config = transformers.LlamaConfig(**SMALL)
    assert drop_in(Holder(HalfRotaryEmbedding(config))).kept == {
        "rotary": "its numbers are not those of the encoding of its config"
    }


def test_other_models_are_rejected_in_one_line() -> None:
    with pytest.raises(UsageError, match="^drop_in: expected a model with a rotary module .*, got Linear$"):
        drop_in(nn.Linear(2, 2))
    with pytest.raises(UsageError, match="^drop_in: model must be a module, .*, got str$"):
        drop_in("llama")  # type: ignore[arg-type]
