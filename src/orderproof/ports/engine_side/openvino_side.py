"""OpenVINO through optimum-intel: a checkpoint folder, which it converts, or a folder that it exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from optimum.exporters.tasks import TasksManager
from optimum.intel.openvino import OVModelForCausalLM

DISTRIBUTIONS = ("openvino", "optimum-intel", "optimum", "transformers", "torch")
EXPORTED = "openvino_model.xml"
TASK = "text-generation-with-past"
SETTINGS = {  # as chosen by itself, a cache is kept in 8 bits, and a processor with bfloat16 computes in it
    "INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "INFERENCE_NUM_THREADS": "1",
}  # fmt: skip


class _Model:
    def __init__(self, model: Any) -> None:
        self.model = model
        self.past = "cache_params" if hasattr(model, "ssm_cache_names") else "past_key_values"

    def _logits(self, rows: Any, mask: Any, past: Any = None) -> tuple[Any, Any]:
        """The logits of a call, and the cache that the next one goes on from; without one it is empty."""
        given = {} if past is None else {self.past: past}
        output = self.model(input_ids=torch.tensor(rows), attention_mask=torch.tensor(mask), **given)
        return np.array(output.logits), output[self.past]

    def batch(self, rows: list[list[int]]) -> list[Any]:
        """The rows with pads on the left, as the library generates from them."""
        longest = max(map(len, rows))
        tokens = [[0] * (longest - len(row)) + list(row) for row in rows]
        mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
        logits, _ = self._logits(tokens, mask)
        return [each[longest - len(row) :] for each, row in zip(logits, rows, strict=True)]

    def prefill(self, row: list[int]) -> Any:
        return self.batch([row])[0]

    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        past, start, parts = None, 0, []
        for size in sizes:
            logits, past = self._logits([row[start : start + size]], [[1] * (start + size)], past)
            parts.append(logits[0])
            start += size
        return np.concatenate(parts)

    def greedy(self, row: list[int], count: int) -> list[int]:
        self.model.generation_config.eos_token_id = None  # an end token is a token like others here
        tokens = torch.tensor([row])
        options = {"max_new_tokens": count, "do_sample": False, "attention_mask": torch.ones_like(tokens)}
        return [int(token) for token in self.model.generate(tokens, **options)[0][len(row) :]]


def knows(model_type: str) -> bool:
    """True for an architecture that its exporter has for this task."""
    return TASK in TasksManager._SUPPORTED_MODEL_TYPE.get(model_type, {}).get("openvino", {})


def load(folder: Path) -> _Model:
    """Convert a checkpoint in float32 and load it, or load an exported folder as it is."""
    options: dict[str, Any] = {"ov_config": SETTINGS, "device": "CPU", "local_files_only": True}
    if not (folder / EXPORTED).is_file():
        options |= {"export": True, "load_in_8bit": False}
    return _Model(OVModelForCausalLM.from_pretrained(folder, **options))
