"""CTranslate2 with its own converter from transformers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.converters import TransformersConverter
from ctranslate2.converters.transformers import _MODEL_LOADERS

DISTRIBUTIONS = ("ctranslate2", "transformers", "torch")


class _Model:
    def __init__(self, generator: Any, words: Sequence[str]) -> None:
        self.generator, self.words = generator, words

    def _texts(self, rows: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[self.words[token] for token in row] for row in rows]

    def batch(self, rows: Sequence[Sequence[int]]) -> list[Any]:
        output = np.array(self.generator.forward_batch(self._texts(rows)))
        return [each[: len(row)] for row, each in zip(rows, output, strict=True)]

    def prefill(self, row: Sequence[int]) -> Any:
        return self.batch([row])[0]

    def greedy(self, row: Sequence[int], count: int) -> list[int]:
        tokens: list[int] = []
        while len(tokens) < count:  # it stops after an end token, which is a token like others here
            (result,) = self.generator.generate_batch(
                self._texts([[*row, *tokens]]), max_length=count - len(tokens), sampling_topk=1,
                include_prompt_in_result=False, return_end_token=True,
            )  # fmt: skip
            if not result.sequences_ids[0]:
                break
            tokens += result.sequences_ids[0]
        return tokens


def knows(model_type: str) -> bool:
    """True for a language model that the converter has a loader for."""
    from transformers import CONFIG_MAPPING

    if model_type not in CONFIG_MAPPING:
        return False
    loader = _MODEL_LOADERS.get(CONFIG_MAPPING[model_type].__name__)
    return loader is not None and (loader.architecture_name or "").endswith(("ForCausalLM", "LMHeadModel"))


def load(folder: Path) -> _Model:
    """Convert a checkpoint in float32 and load it."""
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    target = tempfile.mkdtemp()
    try:
        TransformersConverter(str(folder)).convert(f"{target}/model")
        generator = ctranslate2.Generator(
            f"{target}/model", device="cpu", inter_threads=1, intra_threads=1, compute_type="float32"
        )
    finally:
        shutil.rmtree(target, ignore_errors=True)
    return _Model(generator, words.convert_ids_to_tokens(list(range(len(words)))))
