"""llama.cpp through xllamacpp, whose wheels are built, and llama.cpp's own converter from its source package.

Its server returns log-probabilities of the token after a prompt: each token of a prompt is asked for with the prompt up
to it. It needs a vocabulary of text, so that the converter writes one that names each token by its number.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xllamacpp

DISTRIBUTIONS = ("xllamacpp", "transformers", "torch")
VARIABLE, CONVERTER = "LLAMA_CPP_CONVERTER", "convert_hf_to_gguf.py"
CONTEXT = 8192  # [tokens]
MOST_ASKED = 64  # tokens of a row, each of which costs a call
LAST_ASKED = 32
NUMBERS_FOR_WORDS = """
import pathlib, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
sys.path.insert(1, str(pathlib.Path(sys.argv[0]).parent / "gguf-py"))
import convert_hf_to_gguf as converter
def set_vocab(model):
    words = [f"w{token}" for token in range(model.hparams["vocab_size"])]
    writer = model.gguf_writer
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([1] * len(words))
    writer.add_token_merges(["w 0"])
choose = getattr(converter, "get_model_class", None)
def with_numbers(chosen):
    for each in (chosen, *vars(chosen).values()):  # some have classes that do their work
        if isinstance(each, type) and hasattr(each, "set_vocab"):
            each.set_vocab = set_vocab
    return chosen
if choose is not None:
    converter.get_model_class = lambda *arguments, **options: with_numbers(choose(*arguments, **options))
else:
    table = getattr(converter, "ModelBase", None) or converter.Model
    by_name = table.from_model_architecture
    table.from_model_architecture = lambda *arguments, **options: with_numbers(by_name(*arguments, **options))
converter.main()
"""


class _Model:
    normalised = True

    def __init__(self, file: str, vocabulary: int) -> None:
        self.file, self.vocabulary = file, vocabulary
        self.servers: dict[int, Any] = {}

    def _server(self, chunk: int = CONTEXT) -> Any:
        """The server that reads a prompt at once, or in chunks of this size [tokens]."""
        if chunk not in self.servers:
            self.servers.clear()
            params = xllamacpp.CommonParams()
            params.model.path, params.warmup, params.n_parallel = self.file, False, 1
            params.n_ctx, params.n_batch, params.n_ubatch = CONTEXT, chunk, chunk
            params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
            f32 = xllamacpp.ggml_type.GGML_TYPE_F32  # a cache in float16, the default, would hide small differences
            params.cache_type_k = params.cache_type_v = f32
            params.swa_full = True
            # The kernel of flash attention, which is chosen otherwise, rounds to float16 on the CPU.
            params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
            self.servers[chunk] = _started(params)
        return self.servers[chunk]

    def _ask(self, server: Any, row: list[int], count: int = 1, **options: Any) -> list[Any]:
        answer = server.handle_completions({"prompt": list(row), "n_predict": count, "top_k": 1, **options})
        if "choices" not in answer:
            error = answer.get("error", answer)
            raise RuntimeError(str(error.get("message", error)))
        return list(answer["choices"][0]["logprobs"]["content"])

    def _scores(self, server: Any, row: list[int], first: int, *, cached: bool) -> Any:
        """The scores of the tokens from `first` on, each as the last of a prompt; some only of a long row."""
        values = np.ma.array(np.zeros((len(row) - first, self.vocabulary), np.float32), mask=True)
        step = max(1, (len(row) - first - LAST_ASKED) // (MOST_ASKED - LAST_ASKED))
        for index in range(first, len(row)):
            if cached or index >= len(row) - LAST_ASKED or (index - first) % step == 0:
                (entry,) = self._ask(server, row[: index + 1], n_probs=self.vocabulary, cache_prompt=cached)
                self._write(values[index - first], entry)
        return values

    @staticmethod
    def _write(values: Any, entry: Any) -> None:
        for each in entry["top_logprobs"]:
            values[each["id"]] = np.nan if each["logprob"] is None else each["logprob"]

    def prefill(self, row: list[int]) -> Any:
        return self._scores(self._server(), row, 0, cached=False)

    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        """Tokens after a prompt one by one with its cache, or a prompt in chunks of the first size."""
        if any(size != 1 for size in sizes[1:]):
            return self._scores(self._server(sizes[0]), row, 0, cached=False)
        before = self._scores(self._server(), row[: sizes[0]], 0, cached=False)
        after = self._scores(self._server(), row, sizes[0], cached=True)
        hidden = np.concatenate([np.ma.getmaskarray(before), np.ma.getmaskarray(after)])
        return np.ma.array(np.concatenate([before.data, after.data]), mask=hidden)

    def prefix(self, earlier: list[int], row: list[int]) -> Any:
        """Before each token of the rest the earlier prompt is read again, whose cache goes on from the beginning."""
        shared = next(index for index, (a, b) in enumerate(zip(earlier, row, strict=True)) if a != b)
        values = np.ma.array(np.zeros((len(row), self.vocabulary), np.float32), mask=True)
        for index in range(shared, len(row)):
            self._ask(self._server(), earlier, n_probs=1, cache_prompt=True)
            (entry,) = self._ask(self._server(), row[: index + 1], n_probs=self.vocabulary, cache_prompt=True)
            self._write(values[index], entry)
        return values

    def greedy(self, row: list[int], count: int) -> list[int]:
        tokens = list(row)
        while len(tokens) < len(row) + count:  # it may stop after an end token, which is a token like others here
            tokens += [int(entry["id"]) for entry in self._ask(self._server(), tokens, 1, n_probs=1)]
        return tokens[len(row) :]


def _started(params: Any) -> Any:
    """The server. Raises `RuntimeError` with what llama.cpp logs: the server says only that it failed."""
    before = os.fstat(2).st_size
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        log = ""
        with suppress(OSError):
            log = Path("/proc/self/fd/2").read_bytes()[before:].decode(errors="replace")
        errors = (line.partition(" E ")[2] for line in log.splitlines() if "error loading model: " in line)
        raise RuntimeError(next(errors, str(error))) from None


def _converter() -> Path:
    """The path of the converter: of the environment, or the one that LLAMA_CPP_CONVERTER names."""
    return Path(os.environ.get(VARIABLE) or Path(sys.prefix) / "source" / CONVERTER)


def knows(model_type: str) -> bool:
    """True for an architecture that the converter names."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    table = _converter().parent / "conversion" / "__init__.py"
    text = (table if table.is_file() else _converter()).read_text(encoding="utf-8")
    return MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model_type) in re.findall(r'"(\w+)"', text)


def _convert(folder: Path, file: Path, *options: str) -> str:
    """Convert a checkpoint in float32; the error, or an empty text."""
    command = [
        sys.executable,
        "-c",
        NUMBERS_FOR_WORDS,
        str(_converter()),
        str(folder),
        "--outfile",
        str(file),
        *options,
    ]
    done = subprocess.run([*command, "--outtype", "f32"], capture_output=True, text=True, check=False)
    if done.returncode == 0 and file.is_file():
        return ""
    return _last_words(done.stderr) or "the converter wrote no file"


def _last_words(text: str) -> str:
    """The error at the end of a traceback; of a bare assertion also its line."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^~")]
    return ": ".join(reversed(lines[-1 if ":" in lines[-1] else -2 :])) if lines else ""


def load(folder: Path) -> _Model:
    """Convert a checkpoint in float32 and load it."""
    from transformers import AutoConfig

    os.environ["GGML_NO_BACKTRACE"] = "1"  # it starts a debugger on its process, whose output hides the message
    file = Path(tempfile.mkdtemp()) / "model.gguf"
    error = _convert(folder, file)
    if "mtp" in error:  # it expects layers that predict more tokens, which transformers does not save
        error = _convert(folder, file, "--no-mtp")
    if error:
        raise RuntimeError(error)
    config = AutoConfig.from_pretrained(folder)
    model = _Model(str(file), int(config.get_text_config().vocab_size))
    model._server()
    return model
