"""MLX through mlx-lm: Apple's array library, whose wheels also run on the CPU of Linux."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from orderproof.errors import UsageError
from orderproof.ports.engines.engine import EngineError, InferenceEngine, LoadedModel, Row, Scores


class _MlxModel(LoadedModel):
    def __init__(self, model: Any) -> None:
        self.model = model

    def _logits(self, rows: Sequence[Row], cache: Any = None) -> Any:
        import mlx.core as mx

        output = self.model(mx.array(np.array(rows)), cache=cache)
        return np.array(output.astype(mx.float32))

    def prefill(self, row: Row) -> Scores:
        return Scores(self._logits([row])[0])

    def chunks(self, row: Row, sizes: Sequence[int]) -> Scores:
        from mlx_lm.models.cache import make_prompt_cache

        cache, parts, start = make_prompt_cache(self.model), [], 0
        for size in sizes:
            parts.append(self._logits([row[start : start + size]], cache)[0])
            start += size
        return Scores(np.concatenate(parts))

    def batch(self, rows: Sequence[Row]) -> list[Scores]:
        from mlx_lm.models.cache import make_prompt_cache

        longest = max(map(len, rows))
        pads = [longest - len(row) for row in rows]
        caches = [_padded_cache(single, pads) for single in make_prompt_cache(self.model)]
        output = self._logits([[0] * pad + list(row) for pad, row in zip(pads, rows, strict=True)], caches)
        return [Scores(each[pad:]) for pad, each in zip(pads, output, strict=True)]

    def greedy(self, row: Row, count: int) -> list[int]:
        import mlx.core as mx
        from mlx_lm.generate import generate_step

        steps = generate_step(mx.array(np.array(row)), self.model, max_tokens=count)
        return [int(token) for token, _ in steps]


def _padded_cache(single: Any, pads: list[int]) -> Any:
    """The cache of mlx-lm for rows with these numbers of pads on the left, in place of an empty cache for one row."""
    import mlx.core as mx
    from mlx_lm.models.cache import (
        ArraysCache,
        BatchKVCache,
        BatchRotatingKVCache,
        CacheList,
        KVCache,
        RotatingKVCache,
    )

    if isinstance(single, RotatingKVCache):
        return BatchRotatingKVCache(single.max_size, pads)
    if isinstance(single, KVCache):
        return BatchKVCache(pads)
    if isinstance(single, CacheList):
        return CacheList(*(_padded_cache(each, pads) for each in single.caches))  # type: ignore[no-untyped-call]
    if isinstance(single, ArraysCache):
        single.left_padding = mx.array(pads)
        return single
    raise EngineError(f"its cache {type(single).__name__} takes no left-padded rows")


class MlxEngine(InferenceEngine):
    """The engine of this module."""

    def for_target(self, target: str) -> InferenceEngine:
        folder = Path(target).expanduser()
        if not (folder / "config.json").is_file():
            raise UsageError(
                f"expected engine {self.name} with a folder that mlx-lm wrote, {self.name}:FOLDER; "
                f"no config.json in {target}"
            )
        return replace(self, name=f"{self.name}:{target}", target=str(folder), reads_config=False)

    def load(self, folder: Path) -> LoadedModel:
        import mlx.core as mx
        from mlx_lm.utils import load_model

        mx.set_default_device(mx.cpu)  # the reference runs on the CPU too
        model, _ = load_model(Path(self.target) if self.target else folder)
        return _MlxModel(model)

    def knows(self, model_type: str) -> bool:
        return self._module_name(model_type) is not None

    def defaults(self, model_type: str) -> Mapping[str, Any]:
        name = self._module_name(model_type)
        arguments = getattr(importlib.import_module(name), "ModelArgs", None) if name else None
        if not dataclasses.is_dataclass(arguments):
            return {}
        plain = (int, float, str, bool, type(None))
        return {
            entry.name: entry.default for entry in dataclasses.fields(arguments) if isinstance(entry.default, plain)
        }

    @staticmethod
    def _module_name(model_type: str) -> str | None:
        from mlx_lm.utils import MODEL_REMAPPING

        name = f"mlx_lm.models.{MODEL_REMAPPING.get(model_type, model_type)}"
        return name if importlib.util.find_spec(name) is not None else None


ENGINE = MlxEngine(
    name="mlx",
    title="MLX (mlx-lm)",
    packages=("mlx", "mlx_lm"),
    distribution="mlx-lm",
    extra="mlx",
    abilities=frozenset({"prefill", "chunks", "batch", "greedy"}),
    note="mlx:FOLDER for a checkpoint that mlx-lm converted",
)
