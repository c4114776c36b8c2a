"""mlx-vlm: the language model of a local checkpoint folder, without images."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_vlm.generate.ar import _make_cache, generate_step
from mlx_vlm.models.cache import make_prompt_cache
from mlx_vlm.utils import get_model_type, load_model

DISTRIBUTIONS = ("mlx-vlm", "mlx", "transformers")


class _Model:
    def __init__(self, model: Any) -> None:
        self.model = model

    def _logits(self, rows: list[list[int]], cache: Any) -> Any:
        output = self.model.language_model(mx.array(np.array(rows)), cache=cache)
        return np.array(output.logits.astype(mx.float32))

    def prefill(self, row: list[int]) -> Any:
        return self.chunks(row, [len(row)])

    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        cache, start, parts = make_prompt_cache(self.model.language_model), 0, []
        for size in sizes:
            parts.append(self._logits([row[start : start + size]], cache)[0])
            start += size
        return np.concatenate(parts)

    def batch(self, rows: list[list[int]]) -> list[Any]:
        """The rows with pads on the left, as the library generates from them."""
        longest = max(map(len, rows))
        pads = [longest - len(row) for row in rows]
        padded = [[0] * pad + list(row) for pad, row in zip(pads, rows, strict=True)]
        logits = self._logits(padded, _make_cache(self.model.language_model, pads))
        return [each[pad:] for pad, each in zip(pads, logits, strict=True)]

    def greedy(self, row: list[int], count: int) -> list[int]:
        steps = generate_step(mx.array(np.array([row])), self.model, None, None, max_tokens=count, temperature=0.0)
        return [int(token) for token, *_ in steps]


def _module_name(model_type: str) -> str:
    return f"mlx_vlm.models.{get_model_type({'model_type': model_type})}"


def knows(model_type: str) -> bool:
    """True for an architecture that the library has a folder for."""
    return importlib.util.find_spec(_module_name(model_type)) is not None


def defaults(model_type: str) -> Mapping[str, Any]:
    """The values that it takes for keys that config.json lacks."""
    module = importlib.import_module(_module_name(model_type))
    classes = [getattr(module, name, None) for name in ("TextConfig", "ModelConfig")]
    arguments = next((each for each in classes if dataclasses.is_dataclass(each)), None)
    found = dataclasses.fields(arguments) if arguments is not None else ()
    return {entry.name: entry.default for entry in found}


def load(folder: Path) -> _Model:
    """Load a checkpoint on the CPU, where the reference runs too."""
    mx.set_default_device(mx.cpu)
    return _Model(load_model(folder))
