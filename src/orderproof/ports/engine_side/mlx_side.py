"""MLX through mlx-lm: Apple's array library, whose wheels also run on the CPU of Linux."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models import cache as caches
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import MODEL_REMAPPING, load_model

try:
    from mlx_lm.generate import generate_step
except ImportError:  # before 0.23
    from mlx_lm.utils import generate_step  # type: ignore[attr-defined, no-redef]

DISTRIBUTIONS = ("mlx-lm", "mlx", "transformers")


class _Model:
    def __init__(self, model: Any) -> None:
        self.model = model

    def _logits(self, rows: Sequence[Sequence[int]], cache: Any = None) -> Any:
        output = self.model(mx.array(np.array(rows)), cache=cache)
        return np.array(output.astype(mx.float32))

    def prefill(self, row: Sequence[int]) -> Any:
        return self._logits([row])[0]

    def chunks(self, row: Sequence[int], sizes: Sequence[int]) -> Any:
        cache, parts, start = make_prompt_cache(self.model), [], 0
        for size in sizes:
            parts.append(self._logits([row[start : start + size]], cache)[0])
            start += size
        return np.concatenate(parts)

    def batch(self, rows: Sequence[Sequence[int]]) -> list[Any]:
        longest = max(map(len, rows))
        pads = [longest - len(row) for row in rows]
        padded = [_padded_cache(single, pads) for single in make_prompt_cache(self.model)]
        output = self._logits([[0] * pad + list(row) for pad, row in zip(pads, rows, strict=True)], padded)
        return [each[pad:] for pad, each in zip(pads, output, strict=True)]

    def greedy(self, row: Sequence[int], count: int) -> list[int]:
        steps = generate_step(mx.array(np.array(row)), self.model, max_tokens=count)
        return [int(token) for token, _ in steps]


def _padded_cache(single: Any, pads: list[int]) -> Any:
    """The cache of mlx-lm for rows with these numbers of pads on the left, in place of an empty cache for one row."""
    if isinstance(single, caches.RotatingKVCache):
        return caches.BatchRotatingKVCache(single.max_size, pads)
    if isinstance(single, caches.KVCache):
        return caches.BatchKVCache(pads)
    if isinstance(single, caches.CacheList):
        return caches.CacheList(*(_padded_cache(each, pads) for each in single.caches))  # type: ignore[no-untyped-call]
    if isinstance(single, caches.ArraysCache):
        single.left_padding = mx.array(pads)
        return single
    raise RuntimeError(f"its cache {type(single).__name__} takes no left-padded rows")


def _module_name(model_type: str) -> str | None:
    name = f"mlx_lm.models.{MODEL_REMAPPING.get(model_type, model_type)}"
    return name if importlib.util.find_spec(name) is not None else None


def knows(model_type: str) -> bool:
    """True for an architecture that mlx-lm has a module for."""
    return _module_name(model_type) is not None


def defaults(model_type: str) -> Mapping[str, Any]:
    """The values that it takes for keys that config.json lacks."""
    name = _module_name(model_type)
    arguments = getattr(importlib.import_module(name), "ModelArgs", None) if name else None
    if not dataclasses.is_dataclass(arguments):
        return {}
    plain = (int, float, str, bool, type(None))
    return {entry.name: entry.default for entry in dataclasses.fields(arguments) if isinstance(entry.default, plain)}


def load(folder: Path) -> _Model:
    """Load a checkpoint on the CPU, where the reference runs too."""
    mx.set_default_device(mx.cpu)
    model, _ = load_model(folder)
    return _Model(model)
