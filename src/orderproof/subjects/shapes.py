"""Shapes of images that a model may take, read off its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

BATCH = 2
SIDES = (3, 5, 7, 11, 13)  # [patches] a side, in the order tried
CHANNELS = ("num_channels", "in_channels", "in_chans")  # keys of configurations, the likeliest first
SIZES = ("image_size", "crop_size", "input_size", "max_img_size")
PATCHES = ("patch_size", "patch_sizes", "patch_stride")
FRAMES = ("num_frames", "frames_per_clip")
WITHIN = ("vision_config", "backbone_config", "sam_config")  # parts that know the size of the image of the whole
CUT = 6  # [patches] a side, of patches that are cut already
PLAIN = (64, 96, 128, 224)  # [pixels] a side, where no configuration names one


def small_image(config: Any, avoid: set[int]) -> int:
    """An image side [pixels] so small that there are few patches, their number being no other size."""
    patch = pair(config.patch_size)[0]
    side = next((side for side in SIDES if side * side not in avoid and side * side + 1 not in avoid), SIDES[-1])
    return int(side * patch)


def shapes_of(config: Any) -> Iterator[tuple[int, ...]]:
    """Shapes of pixel values that a configuration may mean: an image, some frames of a film, two images or tiles."""
    channels = next((value for key in CHANNELS if isinstance(value := getattr(config, key, None), int)), 3)
    sizes = list(dict.fromkeys(_sizes(config)))
    patch = next((pair(value)[-1] for key in PATCHES if (value := getattr(config, key, None))), 8)
    plain = [(SIDES[0] * patch,) * 2, *((side, side) for side in PLAIN)]
    for height, width in sizes or plain:
        yield (BATCH, channels, height, width)
    frames = next((value for key in FRAMES if isinstance(value := getattr(config, key, None), int)), 2)
    for height, width in sizes or plain[1:2]:
        yield (BATCH, frames, channels, height, width)
    volume = getattr(config, "patch_embed_hidden_size", channels * patch * patch)
    for side in (h // patch for h, _ in sizes or ((CUT * patch, 0),)):  # patches cut already, in a row
        yield (BATCH, side * side, volume)
        yield (BATCH, side * side, 2 + volume)  # behind a row and a column each
    for height, width in sizes:
        if tiles := getattr(config, "max_num_tiles", None):
            yield (BATCH, 1, tiles, channels, height, width)


def _sizes(config: Any) -> Iterator[tuple[int, int]]:
    parts = chain((config,), (part for key in WITHIN if (part := getattr(config, key, None)) is not None))
    for part in parts:
        for key in SIZES:
            if value := getattr(part, key, None):
                yield pair(value)
        if part is not config:
            yield from _sizes(part)


def pair(value: Any) -> tuple[int, int]:
    """Height and width, given as one number or as two."""
    return (int(value[0]), int(value[-1])) if isinstance(value, (list, tuple)) else (int(value), int(value))
