"""OpenVINO through optimum-intel: a checkpoint folder, which it converts, or a folder that it exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from optimum.exporters.tasks import TasksManager
from optimum.intel.openvino import OVModelForCausalLM, OVModelForFeatureExtraction

DISTRIBUTIONS = ("openvino", "optimum-intel", "optimum", "transformers", "torch")
EXPORTED = "openvino_model.xml"
TASK, TASK_OF_ENCODERS = "text-generation-with-past", "feature-extraction"
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


class _Encoder:
    def __init__(self, model: Any) -> None:
        self.model = model

    def batch(self, rows: list[list[int]]) -> list[Any]:
        """The rows with pads on the right, as tokenizers of encoders write them."""
        longest, lengths = max(map(len, rows)), list(map(len, rows))
        tokens = [list(row) + [0] * (longest - len(row)) for row in rows]
        mask = [[1] * length + [0] * (longest - length) for length in lengths]
        given = {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(mask)}
        if "token_type_ids" in self.model.input_names:
            given["token_type_ids"] = torch.zeros_like(given["input_ids"])
        states = np.array(self.model(**given).last_hidden_state)
        return [each[:length] for each, length in zip(states, lengths, strict=True)]

    def prefill(self, row: list[int]) -> Any:
        return self.batch([row])[0]


def knows(model_type: str, task: str = TASK) -> bool:
    """True for an architecture that its exporter has for this task."""
    return task in TasksManager._SUPPORTED_MODEL_TYPE.get(model_type, {}).get("openvino", {})


def load(folder: Path) -> _Model:
    """Convert a checkpoint in float32 and load it, or load an exported folder as it is."""
    return _Model(OVModelForCausalLM.from_pretrained(folder, **_options(folder)))


def knows_encoder(model_type: str) -> bool:
    """The same for embeddings of tokens."""
    return knows(model_type, TASK_OF_ENCODERS)


def load_encoder(folder: Path) -> _Encoder:
    """The same for an encoder."""
    return _Encoder(OVModelForFeatureExtraction.from_pretrained(folder, **_options(folder)))


def _options(folder: Path) -> dict[str, Any]:
    options: dict[str, Any] = {"ov_config": SETTINGS, "device": "CPU", "local_files_only": True}
    return options if (folder / EXPORTED).is_file() else options | {"export": True, "load_in_8bit": False}
