"""Encodings of vision and audio models, and of DeBERTa-v2.

The layers of Swin are counted over all stages. Swin v2's scores are cosine similarities with a learned factor, which is
not part of the encoding. Whisper's encoder adds the frequencies of fairseq, and its decoder a learned table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.configs._config_values import config_error, head_width, required_attribute
from orderproof.encodings.deberta import DeBERTa
from orderproof.encodings.dino_v3 import DinoV3Rope
from orderproof.encodings.learned_absolute import LearnedAbsolute
from orderproof.encodings.sinusoidal import Sinusoidal
from orderproof.encodings.sinusoidal_grid import SinusoidalGrid
from orderproof.encodings.swin import SwinBias
from orderproof.encodings.swin_v2 import SwinV2Bias

Part = Literal["encoder", "decoder"]


def _deberta_v2(config: object, layer: int) -> PositionalEncoding:
    del layer
    if not required_attribute(config, "relative_attention"):
        raise config_error(config, "expected relative_attention, got a model with a learned table alone")
    kinds = list(required_attribute(config, "pos_att_type"))
    if sorted(kinds) != ["c2p", "p2c"]:
        raise config_error(config, f"expected pos_att_type 'c2p' and 'p2c', got {kinds}")
    if required_attribute(config, "position_biased_input"):
        raise config_error(config, "position_biased_input also adds a learned table, which is a second encoding")
    buckets = int(getattr(config, "position_buckets", -1))
    if buckets < 1:
        raise config_error(config, f"expected position_buckets, the span of logarithmic buckets, got {buckets}")
    longest = int(required_attribute(config, "max_relative_positions"))
    if longest < 1:
        longest = int(required_attribute(config, "max_position_embeddings"))
    heads = int(required_attribute(config, "num_attention_heads"))
    width = int(getattr(config, "attention_head_size", head_width(config)))
    return DeBERTa(heads, width, span=buckets, max_distance=longest)


def _dinov3(config: object, layer: int) -> PositionalEncoding:
    del layer
    return DinoV3Rope(head_width(config), grid=_patches(config), base=float(required_attribute(config, "rope_theta")))


def _swin(config: object, layer: int) -> PositionalEncoding:
    stage = _stage(config, layer)
    size = int(required_attribute(config, "window_size"))
    return SwinBias(int(required_attribute(config, "num_heads")[stage]), window=(size, size))


def _swin_v2(config: object, layer: int) -> PositionalEncoding:
    stage = _stage(config, layer)
    size = int(required_attribute(config, "window_size"))
    # The model takes the window of its rows for columns, too.
    side = min(size, _patches(config)[0] // 2**stage)
    trained = _pair(required_attribute(config, "pretrained_window_sizes")[stage])
    heads = int(required_attribute(config, "num_heads")[stage])
    return SwinV2Bias(heads, window=(side, side), trained=trained if trained[0] else None)


def _vit_mae(config: object, layer: int) -> PositionalEncoding:
    del layer
    return SinusoidalGrid(int(required_attribute(config, "hidden_size")), axis_order=(1, 0))


def whisper(config: object, part: Part | None) -> PositionalEncoding:
    """The encoding of Whisper's encoder or decoder."""
    width = int(required_attribute(config, "d_model"))
    if part is None:
        raise config_error(config, "expected part 'encoder' or 'decoder', whose encodings differ, got none")
    if part == "encoder":
        return Sinusoidal(width, layout="concatenated", spacing="closed")
    return LearnedAbsolute(int(required_attribute(config, "max_target_positions")), width)


def _stage(config: object, layer: int) -> int:
    """The stage of a layer, counted over all stages."""
    if required_attribute(config, "use_absolute_embeddings"):
        raise config_error(config, "use_absolute_embeddings also adds a learned table, which is a second encoding")
    for stage, depth in enumerate(required_attribute(config, "depths")):
        if layer < depth:
            return stage
        layer -= depth
    depths = sum(required_attribute(config, "depths"))
    raise config_error(config, f"expected layer to be under the sum of depths, {depths}, got {depths + layer}")


def _patches(config: object) -> tuple[int, int]:
    """The rows and columns of patches in an image."""
    image, patch = (_pair(required_attribute(config, name)) for name in ("image_size", "patch_size"))
    return image[0] // patch[0], image[1] // patch[1]


def _pair(size: Any) -> tuple[int, int]:
    """A size as rows and columns."""
    if isinstance(size, list | tuple):
        rows, columns = size
        return int(rows), int(columns)
    return int(size), int(size)


VISION_BUILDERS: dict[str, Callable[[object, int], PositionalEncoding]] = {
    "deberta-v2": _deberta_v2,
    "dinov3_vit": _dinov3,
    "swin": _swin,
    "swinv2": _swin_v2,
    "vit_mae": _vit_mae,
}
LAYERS_IN_STAGES = frozenset({"swin", "swinv2"})
"""Model types that check the layer themselves."""
