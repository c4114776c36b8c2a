from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.roformer import modeling_roformer as roformer
from transformers.models.t5.modeling_t5 import T5Attention

from orderproof import positions
from orderproof.encodings import (
    ALiBi,
    LearnedAbsolute,
    NoEncoding,
    Rotary,
    Sinusoidal,
    T5Bias,
    from_hf_config,
    schedules,
)
from orderproof.errors import EncodingError
from tests.encodings.examples import normal

SHORT, LONG = [1.0 + i / 8 for i in range(8)], [2.0 + i for i in range(8)]
ROPES: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 4.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 512},
    "yarn, all keys": {
        "rope_type": "yarn",
        "factor": 40.0,
        "original_max_position_embeddings": 64,
        "beta_fast": 16.0,
        "beta_slow": 2.0,
        "mscale": 0.8,
        "mscale_all_dim": 0.5,
        "truncate": False,
    },
    "yarn, gain": {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 64,
        "attention_factor": 1.5,
    },
    "yarn, mscale alone": {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 64,
        "mscale": 0.5,
    },
    "longrope": {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 256},
    "longrope, factor": {
        "rope_type": "longrope",
        "short_factor": SHORT,
        "long_factor": LONG,
        "factor": 16.0,
        "original_max_position_embeddings": 256,
    },
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "proportional": {"partial_rotary_factor": 0.5, "factor": 2.0},
}


def llama(name: str, **more: Any) -> Any:
    rope = {"rope_type": name, "rope_theta": 1e4, **ROPES[name], **more}
    return transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=4, max_position_embeddings=1024, rope_parameters=rope
    )


@pytest.mark.parametrize("length", [60, 1500])
@pytest.mark.parametrize("name", ROPES)
def test_every_rope_type_rotates_like_llama_at_its_length(name: str, length: int) -> None:
    config = llama(name)
    before = copy.deepcopy(config.to_dict())
    encoding = from_hf_config(config)
    assert config.to_dict() == before
    assert isinstance(encoding, Rotary)
    p = torch.arange(length)
    cos, sin = (x[0, :, :8].double() for x in LlamaRotaryEmbedding(config)(torch.zeros(1), p.unsqueeze(0)))
    depends = encoding.claims.decode_state == "length"
    assert depends == (name.split(",", maxsplit=1)[0] in ("dynamic", "longrope"))
    x = torch.zeros(1, 1, length, 16, dtype=torch.float64)
    x[..., :8] = 1.0
    rotated, _ = encoding.rotate(x, x, p, lengths=length) if depends else encoding.rotate(x, x, p)
    bound = 16 * torch.finfo(torch.float32).eps * length
    assert (rotated[0, 0, :, :8] - cos).abs().max() < bound
    assert (rotated[0, 0, :, 8:] - sin).abs().max() < bound


def test_the_scalings_of_deepseek_are_those_of_its_attention() -> None:
    rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "original_max_position_embeddings": 4096}
    config = transformers.DeepseekV3Config(
        hidden_size=64,
        num_attention_heads=2,
        q_lora_rank=16,
        kv_lora_rank=16,
        rope_parameters={**rope, "mscale": 1.0, "mscale_all_dim": 1.0},
    )
    encoding = from_hf_config(config)
    whole = config.qk_nope_head_dim + config.qk_rope_head_dim
    assert encoding.default_scale(whole) == pytest.approx(DeepseekV3Attention(config, 0).scaling, rel=1e-12)
    assert isinstance(encoding, Rotary)
    assert encoding.spectrum.attention_scaling == 1.0
    assert encoding.head_width == config.qk_rope_head_dim
    plain = from_hf_config(llama("yarn, all keys"))
    assert plain.default_scale(16) == 1 / math.sqrt(16)  # only DeepSeek's family sharpens


def test_layers_differ_as_in_the_config() -> None:
    smollm = transformers.SmolLM3Config(num_hidden_layers=8)
    assert [isinstance(from_hf_config(smollm, layer), NoEncoding) for layer in range(8)] == [
        not turns for turns in smollm.no_rope_layers
    ]
    gemma = transformers.Gemma3TextConfig(num_hidden_layers=6)
    bases = [from_hf_config(gemma, layer).base for layer in range(6)]  # type: ignore[attr-defined]
    assert bases == [1e4] * 5 + [1e6]
    swa = transformers.GraniteSWAConfig(num_hidden_layers=3, layer_rope_theta=[1e4, 0, 5e5])
    assert isinstance(from_hf_config(swa, 1), NoEncoding)
    assert from_hf_config(swa, 2).base == 5e5  # type: ignore[attr-defined]
    assert isinstance(from_hf_config(transformers.Zamba2Config(), 6), NoEncoding)
    exaone = transformers.Exaone4Config(num_hidden_layers=4, layer_types=["full_attention"] * 4)
    assert all(isinstance(from_hf_config(exaone, layer), NoEncoding) for layer in range(4))
    exaone.sliding_window = None
    assert all(isinstance(from_hf_config(exaone, layer), Rotary) for layer in range(4))


def test_a_dictionary_is_parsed_by_transformers_and_not_changed() -> None:
    values = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4}
    values |= {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}}
    before = copy.deepcopy(values)
    encoding = from_hf_config(values)
    assert values == before
    assert isinstance(encoding, Rotary)
    assert (encoding.base, encoding.schedule) == (5e5, schedules.LinearScaling(4.0))


def test_layouts_can_be_chosen_where_the_model_lets_one_choose() -> None:
    for chosen, layout in ((True, "interleaved"), (False, "half")):
        assert from_hf_config(transformers.DeepseekV3Config(rope_interleave=chosen)).layout == layout  # type: ignore[attr-defined]


def test_gptj_and_codegen_rotate_the_first_features_in_neighbouring_pairs() -> None:
    q, k, p = normal(1, 2, 9, 16, seed=1), normal(1, 2, 9, 16, seed=2), torch.arange(9)
    for config in (
        transformers.GPTJConfig(n_embd=32, n_head=2, rotary_dim=8),
        transformers.CodeGenConfig(n_embd=32, n_head=2, rotary_dim=8),
    ):
        found = from_hf_config(config).rotate(q, k, p)
        sin, cos = gptj.create_sinusoidal_positions(9, 8).double()[None].chunk(2, dim=-1)
        for ours, x in zip(found, (q, k), strict=True):
            y = gptj.apply_rotary_pos_emb(x[..., :8].transpose(1, 2), sin, cos).transpose(1, 2)
            assert (ours - torch.cat([y, x[..., 8:]], dim=-1)).abs().max() < 1e-5


def test_roformer_rotates_neighbouring_pairs() -> None:
    config = transformers.RoFormerConfig(hidden_size=32, num_attention_heads=2)
    q, p = normal(1, 2, 9, 16), torch.arange(9)
    table = roformer.RoFormerSinusoidalPositionalEmbedding(9, 16)
    table.weight = torch.nn.Parameter(table.create_weight(), requires_grad=False)
    theirs = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings(table.weight[None, None].double(), q, q)
    assert (from_hf_config(config).rotate(q, q, p)[0] - theirs[0]).abs().max() < 1e-5


@pytest.mark.parametrize("heads", [8, 12])
def test_biases_are_those_of_bloom_and_mpt(heads: int) -> None:
    p = positions.arange(7)
    bloom = from_hf_config(transformers.BloomConfig(n_head=heads, hidden_size=4 * heads))
    theirs = build_alibi_tensor(torch.ones(1, 7), heads, torch.float32).view(heads, 1, 7)
    ours = bloom.bias(p, p)[0]
    causal = torch.ones(7, 7, dtype=torch.bool).tril()
    row = (theirs - ours).masked_fill(~causal, torch.nan)
    spread = row.nan_to_num(-1e9).amax(-1) - row.nan_to_num(1e9).amin(-1)
    assert spread.abs().max() < 1e-5  # one number a query, which softmax does not see
    mpt = from_hf_config(transformers.MptConfig(n_heads=heads, d_model=4 * heads))
    last = build_mpt_alibi_tensor(heads, 7, 8)[:, 0]
    assert (mpt.bias(p, p)[0, :, -1] - last).abs().max() < 1e-6
    assert isinstance(mpt, ALiBi)


def test_tables_sinusoids_and_buckets_have_the_shape_of_the_models() -> None:
    gpt2 = from_hf_config(transformers.GPT2Config(n_positions=99, n_embd=24))
    assert isinstance(gpt2, LearnedAbsolute)
    assert (gpt2.length, gpt2.width) == (99, 24)
    marian = from_hf_config(transformers.MarianConfig(d_model=16))
    assert isinstance(marian, Sinusoidal)
    theirs = MarianSinusoidalPositionalEmbedding(50, 16).create_weight()
    assert (marian.encoding_table(positions.arange(50)) - theirs).abs().max() < 1e-6
    distilbert = transformers.DistilBertConfig(dim=16, sinusoidal_pos_embds=True)
    assert isinstance(from_hf_config(distilbert), Sinusoidal)
    for is_decoder in (False, True):
        config = transformers.T5Config(num_heads=4, is_encoder_decoder=False, is_decoder=is_decoder)
        t5 = from_hf_config(config)
        assert isinstance(t5, T5Bias)
        attention = T5Attention(config, has_relative_attention_bias=True)
        t5.weight = attention.relative_attention_bias.weight
        p = positions.arange(300)
        assert torch.equal(t5.bias(p, p), attention.compute_bias(300, 300))


REJECTED: dict[str, Callable[[], object]] = {
    "config must be a transformers configuration with a model_type, got int": lambda: from_hf_config(3),
    "layer must be an integer, 0 or more, got -1": lambda: from_hf_config(llama("default"), -1),
    "layer must be an integer, 0 or more, got True": lambda: from_hf_config(llama("default"), True),
    "expected a model_type that transformers knows, got 'lama'": lambda: from_hf_config({"model_type": "lama"}),
    "model type 'llama': expected layer to be under num_hidden_layers=32, got 32": (
        lambda: from_hf_config(llama("default"), 32)
    ),
    "model type 'gpt2': expected layer to be under num_hidden_layers=2, got 2": (
        lambda: from_hf_config(transformers.GPT2Config(n_layer=2), 2)
    ),
    "expected position_embedding_type 'absolute', got 'relative_key'": (
        lambda: from_hf_config({"model_type": "bert", "position_embedding_type": "relative_key"})
    ),
    "model type 'nanochat': expected a known model type": lambda: from_hf_config(transformers.NanoChatConfig()),
    "expected one model, got several; pass one of config.vision_config, config.text_config": (
        lambda: from_hf_config(transformers.Qwen2VLConfig())
    ),
    "rope_parameters has the key 'alpha', which rope_type 'dynamic' does not support": (
        lambda: from_hf_config(llama("dynamic", alpha=1000.0))
    ),
    "rope_parameters has the key 'factor', which rope_type 'default' does not support": (
        lambda: from_hf_config(llama("default", factor=2.0))
    ),
    "rope_parameters has the key 'llama_4_scaling_beta', which rope_type 'yarn' does not support": (
        lambda: from_hf_config(llama("yarn", llama_4_scaling_beta=0.1))
    ),
    "expected rope_type to be one of default, linear, dynamic, yarn, longrope, llama3, proportional, got 'su'": (
        lambda: from_hf_config(_changed(rope_type="su"))
    ),
    "rope_parameters has rope_type 'default' and type 'linear'; expected one": (
        lambda: from_hf_config(_changed(type="linear"))
    ),
    "expected rope_parameters to have a rope_type": lambda: from_hf_config(_without("rope_type")),
    "expected rope_parameters['rope_theta'] to be a number, got None": lambda: from_hf_config(_without("rope_theta")),
    "expected rope_parameters['factor'] to be a number, got '4'": (
        lambda: from_hf_config(_changed(rope_type="linear", factor="4"))
    ),
    "partial_rotary_factor is 0.5, which the model does not support": (
        lambda: from_hf_config(_changed(partial_rotary_factor=0.5))
    ),
    "expected an even number of rotated features, got 0.2 of 16, which is 3": (
        lambda: from_hf_config(transformers.PhiConfig(hidden_size=64, num_attention_heads=4, partial_rotary_factor=0.2))
    ),
    "expected rope_parameters without layer types, got entries for full_attention": (
        lambda: from_hf_config(_changed(full_attention={"rope_type": "default"}))
    ),
    "expected rope_parameters['short_factor'] to be a list of numbers, got None": (
        lambda: from_hf_config(_changed(rope_type="longrope", original_max_position_embeddings=64))
    ),
    "layer 0 is of type 'linear_attention', which has no attention": lambda: from_hf_config(transformers.BambaConfig()),
    "layer 3 is cross-attention, expected self-attention": (
        lambda: from_hf_config(transformers.MllamaConfig().text_config, 3)
    ),
    "its rules for rope_type 'linear' differ from every schedule": (
        lambda: from_hf_config(_changed(transformers.PhimoeConfig(), rope_type="linear", factor=2.0))
    ),
    "alibi is divided by sqrt(head_dim) with the scores": (
        lambda: from_hf_config(transformers.FalconConfig(alibi=True))
    ),
    "expected position_embedding_type 'rotary', got 'absolute'": lambda: from_hf_config(transformers.EsmConfig()),
    "expected the config of an encoder or a decoder": lambda: from_hf_config(transformers.T5Config()),
}


def _changed(config: Any = None, **more: Any) -> Any:
    config = llama("default") if config is None else config
    config.rope_parameters = {**config.rope_parameters, **more}
    return config


def _without(key: str) -> Any:
    config = llama("default")
    config.rope_parameters = {name: value for name, value in config.rope_parameters.items() if name != key}
    return config


@pytest.mark.parametrize("message", REJECTED)
def test_uncertain_configurations_are_rejected_in_one_line(message: str) -> None:
    with pytest.raises(EncodingError, match=re.escape(message)) as caught:
        REJECTED[message]()
    assert "\n" not in str(caught.value)
