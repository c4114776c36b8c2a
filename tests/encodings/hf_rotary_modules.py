"""The rotary modules of the installed transformers: each found by its class, built from its own default config."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

_ROTARY = re.compile(r"(?i)(rotary|rope)\w*embedding")
_CLASS = re.compile(r"(?ms)^class (\w+)\((\w*)[^\n]*\n(.*?)(?=^\S|\Z)")
_CONFIG = re.compile(r"def __init__\([^)]*?\bconfig: ([^,=)]+)")
_FOLDER = Path(transformers.__file__).parent / "models"


@dataclass(frozen=True)
class Found:
    """A rotary module's class, and the configuration class it is made from."""

    model: str
    """The folder in transformers.models."""
    name: str
    config_name: str | None

    @property
    def module(self) -> Any:
        """The modeling code."""
        return importlib.import_module(f"transformers.models.{self.model}.modeling_{self.model}")

    @property
    def config(self) -> Any:
        """The configuration class; None if the signature names none."""
        return None if self.config_name is None else getattr(self.module, self.config_name)

    def build(self, config: object) -> nn.Module:
        """The model's own rotary module."""
        made: nn.Module = getattr(self.module, self.name)(config)
        return made


@functools.cache
def rotary_modules() -> tuple[Found, ...]:
    """Every rotary module of transformers, with each configuration class its signature names; none is imported."""
    files = [file for file in sorted(_FOLDER.glob("*/modeling_*.py")) if file.stem == f"modeling_{file.parent.name}"]
    return tuple(found for file in files for found in _of_model(file.parent.name, file.read_text(encoding="utf-8")))


def _of_model(model: str, text: str) -> Iterator[Found]:
    classes = {name: (base, body) for name, base, body in _CLASS.findall(text)}
    for name in filter(_ROTARY.search, classes):
        base, body = classes[name]
        if "def __init__" not in body:
            _, body = classes.get(base, ("", ""))
        annotation = _CONFIG.search(body)
        names = [part.strip(" \"'") for part in annotation[1].split("|")] if annotation else []
        for config in [each for each in names if each.endswith("Config")] or [None]:
            yield Found(model, name, config)


def table_of(rotary: nn.Module, positions: Tensor, layer_type: str | None) -> tuple[Tensor, Tensor]:
    """The cosines and sines [token, pair or feature] that a rotary module gives in float32."""
    x, positions = torch.zeros(1, 1), positions.unsqueeze(-2)
    found = rotary(x, positions) if layer_type is None else rotary(x, positions, layer_type)
    cos, sin = (found.real, found.imag) if isinstance(found, Tensor) else found
    return cos[0], sin[0]


def turned_by_model(module: Any, rotary: nn.Module, q: Tensor, k: Tensor, positions: Tensor, kind: Any) -> Tensor:
    """Scores of queries and keys that the model's own function rotated, whichever it has."""
    x, positions = torch.zeros(1, 1, dtype=q.dtype), positions.unsqueeze(-2)
    given = rotary(x, positions) if kind is None else rotary(x, positions, kind)
    apply: Callable[..., Any]
    if isinstance(given, Tensor):  # complex numbers, queries as [batch, token, head, feature] or [batch, head, token]
        apply = module.apply_rotary_emb
        swap = "[:, :, None, :]" in inspect.getsource(apply)
        q, k = (q.transpose(1, 2), k.transpose(1, 2)) if swap else (q, k)
        q, k = apply(q, k, given)
        q, k = (q.transpose(1, 2), k.transpose(1, 2)) if swap else (q, k)
    else:
        cos, sin = given
        latent = hasattr(rotary.config, "qk_rope_head_dim")
        interleaves = latent and getattr(rotary.config, "rope_interleave", True)
        name = "apply_rotary_pos_emb_interleave" if interleaves else "apply_rotary_pos_emb"
        apply = getattr(module, name, None) or module.apply_rotary_pos_emb
        first = next(iter(inspect.signature(apply).parameters))
        if first == "x":
            q, k = apply(q, cos, sin), apply(k, cos, sin)
        else:
            q, k = _part(apply, module, (q, k), (cos, sin))
    return q @ k.transpose(-1, -2)


def _part(
    apply: Callable[..., Any], module: Any, operands: tuple[Tensor, Tensor], angles: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Rotated by a function of q, k, cos, sin, after splitting off features that the attention does not rotate."""
    width = angles[0].shape[-1]
    if width == operands[0].shape[-1] or "query_pass" not in inspect.getsource(module):
        q, k = apply(*operands, *angles)
        return q, k
    q, k = apply(*(x[..., :width] for x in operands), *angles)
    return tuple(torch.cat([new, old[..., width:]], dim=-1) for new, old in zip((q, k), operands, strict=True))  # type: ignore[return-value]


def config_of(found: Found) -> Any:
    """The configuration of a rotary module: the default, as a model that turns would have it."""
    if found.config is None:
        return None
    config = found.config(**SETTINGS.get(found.name, {}))
    for part in PARTS.get(found.name, ()):
        config = getattr(config, part)
    return config


# Where the signature names the configuration of the whole: the way to that of the part.
PARTS: dict[str, tuple[str, ...]] = {
    "DiaRotaryEmbedding": ("decoder_config",),
    "Emu3RotaryEmbedding": ("text_config",),
    "GlmAsrRotaryEmbedding": ("audio_config",),
    "MiniMaxM3VLRotaryEmbedding": ("text_config",),
    "MoonshineStreamingRotaryEmbedding": ("encoder_config",),
    "MuseGlimmerTextRotaryEmbedding": ("text_config",),
    "MuseSparkTextRotaryEmbedding": ("text_config",),
    "Nemotron3DiarizationRotaryEmbedding": ("audio_config",),
    "PaddleOCRRotaryEmbedding": ("text_config",),
    "Qwen2VLRotaryEmbedding": ("text_config",),
    "Qwen2_5OmniRotaryEmbedding": ("thinker_config", "text_config"),
    "Qwen2_5_VLRotaryEmbedding": ("text_config",),
    "Qwen3OmniMoeRotaryEmbedding": ("talker_config", "code_predictor_config"),
    "Step3p7RotaryEmbedding": ("text_config",),
    "T5GemmaRotaryEmbedding": ("decoder",),
    "VoxtralRealtimeRotaryEmbedding": ("text_config",),
}
_PART = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
_YARN = {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 16384}
# Where the default does not turn, or cannot be built.
SETTINGS: dict[str, dict[str, Any]] = {
    "BambaRotaryEmbedding": {"attn_layer_indices": [1]},
    "EsmRotaryEmbedding": {"position_embedding_type": "rotary"},
    "Glm4MoeRotaryEmbedding": {"head_dim": 128},
    "Glm4vMoeTextRotaryEmbedding": {"head_dim": 128},
    "Glm4vTextRotaryEmbedding": {"rope_parameters": _PART},
    "GlmImageTextRotaryEmbedding": {"rope_parameters": _PART},
    "GraniteMoeHybridRotaryEmbedding": {"layer_types": ["full_attention"] * 32, "position_embedding_type": "rope"},
    "Ministral3RotaryEmbedding": {
        "rope_parameters": {"rope_theta": 1e6, "mscale": 1.0, "mscale_all_dim": 1.0, **_YARN}
    },
    "Mistral4RotaryEmbedding": {"rope_parameters": {"rope_theta": 1e4, "mscale": 1.0, "mscale_all_dim": 1.0, **_YARN}},
    "OlmoHybridRotaryEmbedding": {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
    "Qwen3OmniMoeThinkerTextRotaryEmbedding": {"head_dim": 128},
    "Qwen3OmniMoeTalkerRotaryEmbedding": {"head_dim": 128},
    "Zamba2RotaryEmbedding": {"use_mem_rope": True},
}
