"""The thresholds that the modules of a model state: widths of convolutions, sizes of square masks, rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch import nn

from orderproof.adapter import Threshold

MIN_MASK_SIZE = 8  # [tokens] smaller square buffers are other matrices
_MASK_NAME = re.compile(r"bias|mask|tril|triu|causal")
_LENGTH_ATTRIBUTES = ("original_max_seq_len", "max_seq_len_cached")  # of rotary modules


def module_thresholds(module: nn.Module) -> tuple[Threshold, ...]:
    """The thresholds of a model of text, by the names of its modules and buffers."""
    return tuple(dict.fromkeys(_find(module)))


def _find(module: nn.Module) -> Iterator[Threshold]:
    for part in module.modules():
        name = type(part).__name__
        if isinstance(part, nn.Conv1d) and part.kernel_size[0] > 1:
            yield Threshold(f"{name}.kernel_size", part.kernel_size[0])
        for attribute in _LENGTH_ATTRIBUTES:
            if isinstance(size := getattr(part, attribute, None), int) and size > 0:
                yield Threshold(f"{name}.{attribute}", size)
        for key, buffer in part.named_buffers(recurse=False):
            square = buffer.dim() >= 2 and buffer.shape[-1] == buffer.shape[-2] >= MIN_MASK_SIZE
            if square and _MASK_NAME.search(key):
                yield Threshold(f"{name}.{key}", int(buffer.shape[-1]))
