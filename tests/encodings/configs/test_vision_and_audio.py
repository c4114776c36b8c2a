"""Encodings of vision and audio configurations, compared with the modules of transformers."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import transformers
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding, apply_rotary_pos_emb
from transformers.models.vit_mae.modeling_vit_mae import ViTMAEEmbeddings

from orderproof import positions
from orderproof.encodings import (
    DeBERTa,
    DinoV3Rope,
    LearnedAbsolute,
    Sinusoidal,
    SinusoidalGrid,
    SwinBias,
    SwinV2Bias,
    attention,
    from_hf_config,
)
from orderproof.errors import EncodingError
from tests.encodings.examples import normal

DEBERTA = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 8,
    "position_biased_input": False,
    "attention_probs_dropout_prob": 0.0,
    "hidden_dropout_prob": 0.0,
}


@pytest.mark.parametrize(("longest", "distance"), [(24, 24), (-1, 40)])
def test_deberta_v2_attends_like_its_module(longest: int, distance: int) -> None:
    config = transformers.DebertaV2Config(**DEBERTA, max_relative_positions=longest, max_position_embeddings=40)
    encoding = from_hf_config(config, 1)
    assert isinstance(encoding, DeBERTa)
    assert (encoding.span, encoding.max_distance) == (8, distance)
    torch.manual_seed(0)
    theirs = DisentangledSelfAttention(config).eval().double()
    x, table = normal(2, 60, 16), normal(16, 16, seed=1)

    def heads(y: torch.Tensor) -> torch.Tensor:
        return y.unflatten(-1, (4, 4)).transpose(-2, -3)

    encoding = encoding.double()
    with torch.no_grad():
        encoding.keys.copy_(heads(theirs.pos_key_proj(table)))
        encoding.queries.copy_(heads(theirs.pos_query_proj(table)))
        q, k, v = (heads(project(x)) for project in (theirs.query_proj, theirs.key_proj, theirs.value_proj))
        found = attention(q, k, v, encoding=encoding, q_positions=positions.arange(60), causal=False)
        expected = theirs(x, torch.ones(2, 1, 60, 60, dtype=torch.bool), rel_embeddings=table)[0]
    assert torch.allclose(found.transpose(1, 2).flatten(2), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("image", [224, (64, 96)])
def test_dinov3_rotates_like_its_module(image: int | tuple[int, int]) -> None:
    config = transformers.DINOv3ViTConfig(hidden_size=64, num_attention_heads=2, image_size=image, rope_theta=50.0)
    encoding = from_hf_config(config)
    assert isinstance(encoding, DinoV3Rope)
    rows, columns = encoding.grid
    cos, sin = DINOv3ViTRopePositionEmbedding(config).eval()(torch.zeros(1, 3, 16 * rows, 16 * columns))
    assert [16 * rows, 16 * columns] == (list(image) if isinstance(image, tuple) else [image, image])
    q, k = (normal(2, 2, rows * columns, 32, seed=seed, dtype=torch.float32) for seed in (1, 2))
    found = encoding.rotate(q, k, positions.grid(rows, columns))
    for ours, theirs in zip(found, apply_rotary_pos_emb(q, k, cos, sin), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-5)


def test_swin_has_one_table_a_layer_with_the_heads_of_its_stage() -> None:
    config = transformers.SwinConfig(depths=[1, 2], num_heads=[2, 4], embed_dim=8, window_size=3, image_size=48)
    model = transformers.SwinModel(config)
    layers = [block for stage in model.encoder.layers for block in stage.blocks]
    assert len(layers) == 3
    for number, layer in enumerate(layers):
        encoding, theirs = from_hf_config(config, number), layer.attention.relative_position_bias
        assert isinstance(encoding, SwinBias)
        torch.nn.init.normal_(theirs.relative_position_bias_table)
        encoding.weight = theirs.relative_position_bias_table
        p = positions.grid(3, 3)
        assert torch.equal(encoding.bias(p, p), theirs())


@pytest.mark.parametrize("pretrained", [[0, 0, 0], [5, 5, 2]])
def test_swin_v2_evaluates_the_network_of_its_layer(pretrained: list[int]) -> None:
    config = transformers.Swinv2Config(
        depths=[1, 2, 1], num_heads=[2, 4, 8], embed_dim=8, window_size=3, image_size=32,
        pretrained_window_sizes=pretrained,
    )  # fmt: skip
    model = transformers.Swinv2Model(config).eval()
    layers = [block for stage in model.encoder.layers for block in stage.blocks]
    for number, layer in enumerate(layers):
        encoding, theirs = from_hf_config(config, number), layer.attention.self
        assert isinstance(encoding, SwinV2Bias)
        assert encoding.window == tuple(theirs.window_size)
        encoding.inner, encoding.outer = theirs.continuous_position_bias_mlp[0], theirs.continuous_position_bias_mlp[2]
        p = positions.grid(*encoding.window)
        table = theirs.continuous_position_bias_mlp(theirs.relative_coords_table).view(-1, encoding.heads)
        expected = 16 * torch.sigmoid(table[theirs.relative_position_index].movedim(-1, 0))
        assert torch.allclose(encoding.bias(p, p)[0], expected, atol=1e-5)
    assert {from_hf_config(config, n).window for n in range(4)} == {(3, 3), (2, 2)}  # type: ignore[attr-defined]


def test_vit_mae_adds_the_columns_first() -> None:
    config = transformers.ViTMAEConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=32, patch_size=8
    )
    encoding = from_hf_config(config)
    assert isinstance(encoding, SinusoidalGrid)
    embeddings = ViTMAEEmbeddings(config)
    embeddings.initialize_weights()
    theirs = embeddings.position_embeddings[0, 1:]
    assert torch.allclose(encoding.encoding_table(positions.grid(4, 4)), theirs, atol=1e-6)


def test_whisper_has_sinusoids_in_the_encoder_and_a_table_in_the_decoder() -> None:
    config = transformers.WhisperConfig(
        d_model=32, encoder_layers=1, decoder_layers=3, max_source_positions=300, encoder_attention_heads=2,
        decoder_attention_heads=2,
    )  # fmt: skip
    encoder, decoder = (from_hf_config(config, layer, part=part) for layer, part in ((0, "encoder"), (2, "decoder")))  # type: ignore[arg-type]
    assert isinstance(encoder, Sinusoidal)
    theirs = transformers.WhisperModel(config).encoder.embed_positions.weight
    assert torch.allclose(encoder.encoding_table(positions.arange(300)), theirs, atol=3e-5)  # theirs: float32 angles
    assert isinstance(decoder, LearnedAbsolute)
    assert (decoder.length, decoder.width) == (448, 32)


REJECTED: dict[str, Callable[[], object]] = {
    "expected pos_att_type 'c2p' and 'p2c', got ['c2p']": lambda: _deberta(pos_att_type=["c2p"]),
    "expected relative_attention": lambda: _deberta(relative_attention=False),
    "position_biased_input also adds a learned table": lambda: _deberta(position_biased_input=True),
    "expected position_buckets": lambda: _deberta(position_buckets=-1),
    "expected layer to be under num_hidden_layers=2, got 2": lambda: _deberta(layer=2),
    "expected layer to be under the sum of depths, 12, got 12": lambda: from_hf_config(transformers.SwinConfig(), 12),
    "use_absolute_embeddings also adds a learned table": (
        lambda: from_hf_config(transformers.Swinv2Config(use_absolute_embeddings=True))
    ),
    "expected part 'encoder' or 'decoder', whose encodings differ, got none": (
        lambda: from_hf_config(transformers.WhisperConfig())
    ),
    "expected layer to be under decoder_layers=4, got 4": (
        lambda: from_hf_config(transformers.WhisperConfig(), 4, part="decoder")
    ),
    "part must be 'encoder', 'decoder' or None, got 'both'": (
        lambda: from_hf_config(transformers.WhisperConfig(), part="both")  # type: ignore[arg-type]
    ),
    "expected no part, because its config describes one model, got 'encoder'": (
        lambda: from_hf_config(transformers.GPT2Config(), part="encoder")
    ),
}


def _deberta(*, layer: int = 0, **changes: object) -> object:
    return from_hf_config(transformers.DebertaV2Config(**{**DEBERTA, **changes}), layer)


@pytest.mark.parametrize("message", REJECTED)
def test_uncertain_configurations_are_rejected_in_one_line(message: str) -> None:
    with pytest.raises(EncodingError, match=re.escape(message)) as caught:
        REJECTED[message]()
    assert "\n" not in str(caught.value)
