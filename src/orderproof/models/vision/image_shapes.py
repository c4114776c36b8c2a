"""Candidate shapes of pixel values for a model, from its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from orderproof.models.sample import BATCH_SIZE

GRID_SIDES = (3, 5, 7, 11, 13)  # [patches] per side, in the order of trial
CHANNEL_KEYS = ("num_channels", "in_channels", "in_chans")  # configuration keys, the most likely first
IMAGE_SIZE_KEYS = ("image_size", "crop_size", "input_size", "max_img_size")
PATCH_SIZE_KEYS = ("patch_size", "patch_sizes", "patch_stride")
FRAME_COUNT_KEYS = ("num_frames", "frames_per_clip")
NESTED_CONFIG_KEYS = (
    "vision_config",
    "backbone_config",
    "sam_config",
)  # components with the image size of the whole model
PACKED_GRID_SIDE = 6  # [patches] per side, for packed patches
DEFAULT_IMAGE_SIZES = (64, 96, 128, 224)  # [pixels] per side, if no configuration key has one


def small_image_size(config: Any, avoid: set[int]) -> int:
    """A small image side [pixels] whose number of patches is not in ``avoid``."""
    patch = height_width(config.patch_size)[0]
    side = next(
        (side for side in GRID_SIDES if side * side not in avoid and side * side + 1 not in avoid), GRID_SIDES[-1]
    )
    return int(side * patch)


def candidate_image_shapes(config: Any) -> Iterator[tuple[int, ...]]:
    """Candidate shapes of pixel values: images, frames of a video, packed patches, tiles."""
    channels = next((value for key in CHANNEL_KEYS if isinstance(value := getattr(config, key, None), int)), 3)
    sizes = list(dict.fromkeys(_sizes(config)))
    patch = next((height_width(value)[-1] for key in PATCH_SIZE_KEYS if (value := getattr(config, key, None))), 8)
    default = [(GRID_SIDES[0] * patch,) * 2, *((side, side) for side in DEFAULT_IMAGE_SIZES)]
    for height, width in sizes or default:
        yield (BATCH_SIZE, channels, height, width)
    frames = next((value for key in FRAME_COUNT_KEYS if isinstance(value := getattr(config, key, None), int)), 2)
    for height, width in sizes or default[1:2]:
        yield (BATCH_SIZE, frames, channels, height, width)
    volume = getattr(config, "patch_embed_hidden_size", channels * patch * patch)
    for side in (h // patch for h, _ in sizes or ((PACKED_GRID_SIDE * patch, 0),)):  # packed patches
        yield (BATCH_SIZE, side * side, volume)
        yield (BATCH_SIZE, side * side, 2 + volume)  # each preceded by its row and column
    for height, width in sizes:
        if tiles := getattr(config, "max_num_tiles", None):
            yield (BATCH_SIZE, 1, tiles, channels, height, width)


def _sizes(config: Any) -> Iterator[tuple[int, int]]:
    parts = chain((config,), (part for key in NESTED_CONFIG_KEYS if (part := getattr(config, key, None)) is not None))
    for part in parts:
        for key in IMAGE_SIZE_KEYS:
            if value := getattr(part, key, None):
                yield height_width(value)
        if part is not config:
            yield from _sizes(part)


def height_width(value: Any) -> tuple[int, int]:
    """Height and width from one number or two."""
    return (int(value[0]), int(value[-1])) if isinstance(value, (list, tuple)) else (int(value), int(value))
