"""Every rotary module of the installed transformers against `from_hf_config`, or the reason why it is rejected."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

from orderproof import positions
from orderproof.encodings import AxialRotary, DinoV3Rope, MRope, NoEncoding, Rotary, from_hf_config
from orderproof.encodings.configs._model_types import ROPE_MODEL_TYPES
from orderproof.errors import EncodingError
from tests.encodings.examples import normal
from tests.encodings.hf_rotary_modules import Found, config_of, rotary_modules, table_of, turned_by_model

PLACES = torch.tensor([0, 1, 2, 5, 31, 100, 777, 1500, 2047, 3001, 3333])
STREAMS = torch.stack([PLACES, PLACES.flip(0), PLACES // 3])

# Rejected because of the modeling code: the reason, and code that must still be present.
OWN_WAYS = {
    "BltRotaryEmbedding": ("several models that attend to each other", "class BltCrossAttention"),
    "ClvpRotaryPositionalEmbedding": ("turns the values too", "def apply_rotary_pos_emb(q, k, v, cos, sin"),
    "Cohere2MoeRotaryEmbedding": ("some full layers turn, by the place of their dense networks", "self.force_rope ="),
    "CohereCompassRotaryEmbedding": ("three axes under the type of a layer", "self.mrope_section[layer_type]"),
    "DeepseekOcr2VisionRotaryEmbedding": ("two models behind one config", "DeepseekOcr2VisionEncoder"),
    "DeepseekV4RotaryEmbedding": ("turns the last features of a head, and the output back", "x[..., -rope_dim:]"),
    "DiffusionGemmaTextRotaryEmbedding": ("an encoder and a decoder on one config", "class DiffusionGemmaDecoder"),
    "Dots3NoteTextRotaryEmbedding": ("widths by the type of a layer, and an indexer", "class Dots3NoteTextIndexer"),
    "EfficientLoFTRRotaryEmbedding": ("angles of a grid over the whole width", "def compute_embeddings"),
    "EomtDinov3RotaryEmbedding": ("fractions of a picture are no positions", "get_patches_center_coordinates"),
    "Ernie4_5_VLMoeTextRotaryEmbedding": ("row and column alternate", "torch.stack([freq_h, freq_w]"),
    "EsmFold2RotaryEmbedding": ("angles of places in space", "spatial_rope_base_frequency"),
    "EvollaSaProtRotaryEmbedding": ("a model inside another, without a model type", "class EvollaSaProtRotary"),
    "HunYuanVLRotaryEmbedding": ("streams change at another place in either half", "section * 2 for section"),
    "Llama4VisionRotaryEmbedding": ("angles of a grid", "def vision_apply_rotary_emb"),
    "MiMoV2FlashRotaryEmbedding": ("a share that no config states", '"partial_rotary_factor", 0.334'),
    "MistralLarge4TextRotaryEmbedding": ("frequencies times a trained factor", "self.alpha"),
    "MoonshineRotaryEmbedding": ("an encoder and a decoder on one config", "encoder_num_attention_heads"),
    "MoonshineStreamingRotaryEmbedding": ("an encoder and a decoder on one config", "encoder_config"),
    "MuseGlimmerAssistantRotaryEmbedding": ("queries stand at the last of the keys' places", "cos[..., -q_len:, :]"),
    "MuseGlimmerTextRotaryEmbedding": ("some layers do not turn, by a base they do not use", "layer_rope_theta[i]"),
    "MuseSparkTextRotaryEmbedding": ("some layers do not turn, by a base they do not use", "layer_rope_theta[i]"),
    "MusicFlamingoRotaryEmbedding": ("angles of moments in time", "window_duration"),
    "NanoChatRotaryEmbedding": ("turns the other way", "torch.cat((x2, -x1), dim=-1)"),
    "NeoMMERotaryEmbedding": ("row and column alternate pair by pair", "freq[0][..., 0::2], freq[1][..., 1::2]"),
    "Qwen2_5OmniDiTRotaryEmbedding": ("turns the first head alone", "deinterleave_head_dim(query[:, :1])"),
    "Qwen4ExpTextRotaryEmbedding": ("blocks of keys turn at the place of the block", "index_select(0, group_starts)"),
    "Sapiens2RopePositionEmbedding": ("fractions of a picture are no positions", "get_patches_center_coordinates"),
    "SeamlessM4TConformerRotaryPositionalEmbedding": ("one of four kinds in a part", "position_embeddings_type"),
    "Wav2Vec2BertRotaryPositionalEmbedding": ("one of four kinds", "position_embeddings_type"),
    "Wav2Vec2ConformerRotaryPositionalEmbedding": ("one of two kinds", "position_embeddings_type"),
}
REPRESENTATIVE = {
    *("ApertusRotaryEmbedding", "Cohere2RotaryEmbedding", "DeepseekV3RotaryEmbedding", "Gemma3RotaryEmbedding"),
    *("Gemma4TextRotaryEmbedding", "Glm4RotaryEmbedding", "GPTNeoXRotaryEmbedding", "GptOssRotaryEmbedding"),
    *("Llama4TextRotaryEmbedding", "LlamaRotaryEmbedding", "ModernBertRotaryEmbedding", "PhiRotaryEmbedding"),
    "SmolLM3RotaryEmbedding",
}


def parameters() -> list[Any]:
    """Every module; all but the representative ones are slow."""
    return [
        pytest.param(
            found,
            id=f"{found.model}-{found.name}-{found.config_name or 'none'}",
            marks=[] if found.name in REPRESENTATIVE else pytest.mark.slow,
        )
        for found in rotary_modules()
    ]


def layers_of(config: Any) -> dict[str | None, int]:
    """The first layer of each type."""
    types = getattr(config, "layer_types", None)
    first: dict[str | None, int] = {}
    for layer, kind in enumerate(types or [None]):
        first.setdefault(kind, layer)
    return first


def compare(found: Found, config: Any, kind: str | None, encoding: Rotary | MRope) -> None:
    """Cosines and sines within the rounding of float32 angles; scores of queries and keys that either rotated."""
    if config.model_type in ROPE_MODEL_TYPES:
        source = Path(inspect.getfile(found.module)).read_text(encoding="utf-8")
        assert ROPE_MODEL_TYPES[config.model_type].scales_scores_by_mscale == (
            "yarn_apply_mscale(config.rope_parameters" in source
        )
    rotary = found.build(config)
    names_type = "layer_type" in inspect.signature(rotary.forward).parameters and not hasattr(rotary, "inv_freq")
    places = PLACES if isinstance(encoding, Rotary) else STREAMS
    cos, sin = table_of(rotary, places, kind if names_type else None)
    ours = torch.stack(encoding.cos_sin(places, dtype=torch.float64))
    pairs = ours.shape[-1]
    if cos.shape[-1] == 2 * pairs:  # the same number for both features of a pair, side by side or half by half
        first = torch.equal(cos[:, :pairs], cos[:, pairs:])
        cos, sin = (x[:, :pairs] if first else x[:, 0::2] for x in (cos, sin))
    assert cos.shape[-1] == pairs
    angles = places.max() * torch.tensor(encoding.spectrum.frequencies)
    bound = encoding.spectrum.attention_scaling * torch.finfo(torch.float32).eps * (4 + 4 * angles)
    assert ((torch.stack([cos, sin]).double() - ours).abs() <= bound).all()
    q, k = (normal(1, 2, len(PLACES), encoding.head_width, seed=seed, dtype=torch.float32) for seed in (1, 2))
    theirs = turned_by_model(found.module, rotary, q, k, places, kind if names_type else None)
    evens_first = torch.cat([torch.arange(0, 2 * pairs, 2), torch.arange(1, 2 * pairs, 2)])
    order = evens_first if encoding.layout == "half" else evens_first.argsort()
    order = torch.cat([order, torch.arange(2 * pairs, encoding.head_width)])
    right, wrong = (
        a @ b.transpose(-1, -2)
        for a, b in (encoding.rotate(q, k, places), encoding.rotate(q[..., order], k[..., order], places))
    )
    assert (right - theirs).abs().max() < 1e-3 * theirs.abs().max()
    assert (wrong - theirs).abs().max() > 0.1 * theirs.abs().max()  # the other layout would not pass


def compare_on_grid(found: Found, config: Any, encoding: AxialRotary) -> None:
    """The same for rows and columns; the model's function takes queries as [token, head, feature]."""
    grid = positions.grid(7, 11)
    cos, sin = found.build(config)(torch.zeros(1, 1), grid.T)
    pairs = encoding.head_width // 2
    ours = torch.stack(encoding.cos_sin(grid, dtype=torch.float64))
    theirs = torch.stack([cos[:, :pairs], sin[:, :pairs]]).double()
    assert (theirs - ours).abs().max() < 50 * torch.finfo(torch.float32).eps
    q, k = (normal(77, 2, encoding.head_width, seed=seed, dtype=torch.float32) for seed in (1, 2))
    rotated = found.module.apply_rotary_pos_emb_vision(q, k, cos, sin)
    for x, y in zip(encoding.rotate(*(x.transpose(0, 1).unsqueeze(0) for x in (q, k)), grid), rotated, strict=True):
        assert (x[0].transpose(0, 1) - y).abs().max() < 1e-4


@pytest.mark.parametrize("found", parameters())
def test_a_default_model_rotates_like_its_encoding_or_is_rejected_for_a_reason(found: Found) -> None:
    config, reasons, compared = config_of(found), list[str](), 0
    if (model := ROPE_MODEL_TYPES.get(getattr(config, "model_type", None))) and model.mrope_layout:
        if "mrope_section" not in config.rope_parameters:  # the model has a default of its own, which is not ours
            with pytest.raises(
                EncodingError, match=r"expected rope_parameters\['mrope_section'\] to be three integers"
            ):
                from_hf_config(config, max(layers_of(config).values()))
        config.rope_parameters["mrope_section"] = found.build(config).mrope_section  # type: ignore[assignment]
    for kind, layer in layers_of(config).items() if config is not None else ():
        try:
            encoding = from_hf_config(config, layer)
        except EncodingError as error:
            reasons.append(str(error))
            continue
        if isinstance(encoding, NoEncoding):
            continue
        if isinstance(encoding, DinoV3Rope):  # its module takes a picture: compared in test_vision_and_audio
            assert found.name == "DINOv3ViTRopePositionEmbedding"
        elif isinstance(encoding, AxialRotary):
            compare_on_grid(found, config, encoding)
        else:
            assert isinstance(encoding, Rotary | MRope)
            compare(found, config, kind, encoding)
        compared += 1
    assert compared or why_refused(found, config, reasons)


def why_refused(found: Found, config: Any, reasons: list[str]) -> str:
    """The reason why a module has no encoding, which must still be true."""
    assert config is None or reasons
    if config is not None and (getattr(config, "rope_parameters", None) or {}).get("rope_type") == "axial":
        return "a grid of patches: the order of its axes is in the code"
    reason, words = OWN_WAYS[found.name]
    assert words in Path(inspect.getfile(found.module)).read_text(encoding="utf-8")
    return reason


def test_every_reason_belongs_to_an_existing_module() -> None:
    assert OWN_WAYS.keys() <= {found.name for found in rotary_modules()}
