"""ONNX Runtime generate(): its model builder writes a graph from a checkpoint folder, and a generator runs it."""

from __future__ import annotations

import inspect
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime_genai

sys.path.insert(0, str(Path(onnxruntime_genai.__file__).parent / "models"))  # its modules import each other by name

import builder

DISTRIBUTIONS = ("onnxruntime-genai", "onnxruntime", "transformers", "torch")


class _Model:
    def __init__(self, folder: str) -> None:
        self.model = onnxruntime_genai.Model(folder)
        settings = json.loads((Path(folder) / "genai_config.json").read_text(encoding="utf-8"))
        self.longest = settings["model"]["context_length"]  # [tokens]; a longer text is refused

    def _generator(self) -> Any:
        options = onnxruntime_genai.GeneratorParams(self.model)
        options.set_search_options(max_length=self.longest, do_sample=False)
        return onnxruntime_genai.Generator(self.model, options)

    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        generator, start, parts = self._generator(), 0, []
        for size in sizes:
            generator.append_tokens(np.array(row[start : start + size], dtype=np.int32))
            parts.append(np.array(generator.get_output("logits"))[0])
            start += size
        return np.concatenate(parts)

    def prefill(self, row: list[int]) -> Any:
        return self.chunks(row, [len(row)])

    def greedy(self, row: list[int], count: int) -> list[int]:
        tokens = list(row)
        while len(tokens) < len(row) + count:  # it stops after an end token, which is a token like others here
            generator = self._generator()
            generator.append_tokens(np.array(tokens, dtype=np.int32))
            while len(tokens) < len(row) + count and not generator.is_done():
                generator.generate_next_token()
                tokens.append(int(generator.get_next_tokens()[0]))
        return tokens[len(row) :]


def knows(model_type: str) -> bool:
    """True for an architecture that the builder names."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    names = re.findall(r'"(\w+)"', inspect.getsource(builder.create_model))
    return MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model_type) in names


def load(folder: Path) -> _Model:
    """Convert a checkpoint in float32 and load it."""
    target = tempfile.mkdtemp()
    where = (str(folder), str(folder), target, "fp32", "cpu", f"{target}/cache")
    builder.create_model(*where, **builder.parse_extra_options(*where, ["hf_token=false"]))
    return _Model(target)
