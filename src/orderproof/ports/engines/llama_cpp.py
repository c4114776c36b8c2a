"""llama.cpp through llama-cpp-python, with llama.cpp's own converter from transformers.

The converter (`convert_hf_to_gguf.py`) is part of the source package of llama-cpp-python, and not of the wheel that is
built from it: it is taken from the source package of the installed version, once. `LLAMA_CPP_CONVERTER`, the path of
another one, replaces it. It is run in a process of its own, and writes no vocabulary: it recognises tokenizers by their
text, and token ids are compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from orderproof.ports.engines.engine import EngineError, InferenceEngine, LoadedModel, Row, Scores
from orderproof.ports.source_package import source_folder

DISTRIBUTION = "llama_cpp_python"
CONVERTER_VARIABLE = "LLAMA_CPP_CONVERTER"
CONVERTER = "convert_hf_to_gguf.py"
SOURCES = "vendor/llama.cpp"  # in the source package
_CLASS_NAME = re.compile(r'"(\w+)"')  # of transformers, in the converter's table of architectures
WITHOUT_VOCABULARY = """
import pathlib, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
import convert_hf_to_gguf as converter
choose = converter.get_model_class
def set_vocab(model):
    model._set_vocab_none()
    model.gguf_writer.add_vocab_size(model.hparams["vocab_size"])
def without_vocabulary(*arguments, **options):
    chosen = choose(*arguments, **options)
    chosen.set_vocab = set_vocab
    return chosen
converter.get_model_class = without_vocabulary
converter.main()
"""
LONGEST = 8192  # [tokens] of a context


class _LlamaCppModel(LoadedModel):
    def __init__(self, model: Any) -> None:
        self.model = model

    def prefill(self, row: Row) -> Scores:
        return self.chunks(row, [len(row)])

    def chunks(self, row: Row, sizes: Sequence[int]) -> Scores:
        self.model.reset()
        start = 0
        for size in sizes:
            self.model.eval(list(row[start : start + size]))
            start += size
        return Scores(np.array(self.model.scores[:start], dtype=np.float32))

    def greedy(self, row: Row, count: int) -> list[int]:
        tokens = []
        for token in self.model.generate(list(row), top_k=1, temp=0.0, repeat_penalty=1.0):
            tokens.append(int(token))
            if len(tokens) == count:
                break
        return tokens


def _converter() -> Path:
    """The path of the converter. Raises `EngineError`."""
    stated = os.environ.get(CONVERTER_VARIABLE)
    if stated is None:
        try:
            return source_folder(DISTRIBUTION, SOURCES, (CONVERTER, "conversion", "gguf-py/gguf")) / CONVERTER
        except EngineError as error:
            raise EngineError(f"{error}; or set {CONVERTER_VARIABLE} to the path of {CONVERTER}") from None
    if not Path(stated).is_file():
        raise EngineError(f"expected {CONVERTER_VARIABLE}=PATH of {CONVERTER}; got {stated!r}")
    return Path(stated)


class LlamaCppEngine(InferenceEngine):
    """The engine of this module."""

    def or_another(self) -> InferenceEngine:
        """The build that needs no compiler, if its environment alone is there."""
        from orderproof.ports.engines import xllamacpp

        return xllamacpp.ENGINE if xllamacpp.ENGINE.is_installed and not self.is_installed else self

    @property
    def missing(self) -> str:
        return f"{super().missing}; or, without a compiler: orderproof engines install xllamacpp"

    def prepare(self) -> None:
        _converter()

    def knows(self, model_type: str) -> bool:
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

        converter = _converter()
        table = converter.parent / "conversion" / "__init__.py"
        names = _CLASS_NAME.findall((table if table.is_file() else converter).read_text(encoding="utf-8"))
        return MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model_type) in names

    def load(self, folder: Path) -> LoadedModel:
        # Where llama.cpp aborts, it starts a debugger on its process, whose output hides the message of the abort.
        os.environ["GGML_NO_BACKTRACE"] = "1"
        from llama_cpp import GGML_TYPE_F32, Llama  # a cache in float16, the default, would hide small differences

        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "model.gguf"
            command = [sys.executable, "-c", WITHOUT_VOCABULARY, str(_converter()), str(folder), "--outfile", str(file)]
            command += ["--outtype", "f32"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0 or not file.is_file():
                raise RuntimeError((done.stderr.strip().splitlines() or ["the converter wrote no file"])[-1])
            with _log() as lines:
                try:
                    model = Llama(
                        str(file), n_ctx=LONGEST, n_batch=LONGEST, n_ubatch=LONGEST, n_threads=1, n_threads_batch=1,
                        logits_all=True, type_k=GGML_TYPE_F32, type_v=GGML_TYPE_F32, verbose=False,
                    )  # fmt: skip
                except ValueError as error:  # says only that it failed
                    raise RuntimeError(next((line for line in lines if "error" in line), str(error))) from None
        return _LlamaCppModel(model)


@contextmanager
def _log() -> Iterator[list[str]]:
    """The lines that llama.cpp logs meanwhile."""
    import llama_cpp

    lines: list[str] = []

    def append(level: int, text: bytes, data: Any) -> None:
        del level, data
        lines.append(text.decode(errors="replace").strip())

    keep = llama_cpp.llama_log_callback(append)
    llama_cpp.llama_log_set(keep, None)
    try:
        yield lines
    finally:
        llama_cpp.llama_log_set(_silent(llama_cpp), None)


@cache
def _silent(library: Any) -> Any:
    """A callback that drops every line; kept, because llama.cpp goes on calling it."""
    return library.llama_log_callback(lambda level, text, data: None)


ENGINE = LlamaCppEngine(
    name="llamacpp",
    title="llama.cpp (llama-cpp-python)",
    packages=("llama_cpp",),
    distribution=DISTRIBUTION,
    extra="llamacpp",
    abilities=frozenset({"prefill", "chunks", "greedy"}),
    note="this builds it with a C++ compiler; xllamacpp needs none, and takes its place if it alone is installed",
)
