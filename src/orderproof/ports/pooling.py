"""The pooling of embeddings of tokens to that of a text, as a checkpoint states it for sentence-transformers.

mean: sum_t h_t / n        cls: h_0        lasttoken: h_(n-1)        and then, if stated, h / |h|
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Mode = Literal["mean", "cls", "lasttoken"]
MODULES, FOLDER, FILE = "modules.json", "1_Pooling", "config.json"
_KEYS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_lasttoken": "lasttoken"}
_TYPE = "sentence_transformers.models"


@dataclass(frozen=True)
class Pooling:
    """The embedding of a text from those of its tokens."""

    mode: Mode = "mean"
    normalised: bool = True  # divided by its length
    over_pads: bool = False  # pads after the text count as tokens

    def __str__(self) -> str:
        text = {"mean": "the mean of the tokens", "cls": "the first token", "lasttoken": "the last token"}[self.mode]
        pads = ", with pads" if self.over_pads else ""
        return f"{text}{pads}{', divided by its length' if self.normalised else ''}"

    def __call__(self, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        """The embedding [1, feature] of tokens [token, feature]."""
        pooled = {"mean": tokens.mean(0), "cls": tokens[0], "lasttoken": tokens[-1]}[self.mode][None]
        found: NDArray[np.float64] = pooled / np.linalg.norm(pooled) if self.normalised else pooled
        return found


def read_pooling(folder: Path) -> Pooling | None:
    """The pooling of a checkpoint folder; None if it states none, or one of another kind."""
    try:
        modules = json.loads((folder / MODULES).read_text(encoding="utf-8"))
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
        if "Pooling" not in kinds or not {*kinds} <= {"Transformer", "Pooling", "Normalize"}:
            return None
        place = folder / str(modules[kinds.index("Pooling")]["path"])
        values = json.loads((place / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _pooling(values, normalised="Normalize" in kinds)


def _pooling(values: dict[str, Any], *, normalised: bool) -> Pooling | None:
    stated = [values["pooling_mode"]] if isinstance(values.get("pooling_mode"), str) else []
    stated += [
        _KEYS.get(key, key) for key, value in values.items() if key.startswith("pooling_mode_") and value is True
    ]
    if len(stated) != 1 or stated[0] not in get_args(Mode):
        return None
    return Pooling(stated[0], normalised)


def write_pooling(folder: Path, pooling: Pooling, width: int) -> None:
    """Write it into a checkpoint folder."""
    parts = [("", "Transformer"), (FOLDER, "Pooling"), *([("2_Normalize", "Normalize")] * pooling.normalised)]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"{_TYPE}.{kind}"}
        for index, (path, kind) in enumerate(parts)
    ]
    values = {"word_embedding_dimension": width, **{key: mode == pooling.mode for key, mode in _KEYS.items()}}
    (folder / FOLDER).mkdir(exist_ok=True)
    (folder / MODULES).write_text(json.dumps(modules), encoding="utf-8")
    (folder / FOLDER / FILE).write_text(json.dumps(values), encoding="utf-8")
