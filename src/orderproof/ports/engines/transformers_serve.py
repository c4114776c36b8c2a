"""transformers' own server, `transformers serve`, started on a free port of the loopback interface.

    POST /v1/systemone {"state": {...}, "questions": {...}}   a probability of each label, before each mark of a prompt
    POST /v1/completions {"prompt": "...", "max_tokens": n}   generated text, without log-probabilities

The template of the server's decisions marks tokens of the prompt, and the labels are the words of the vocabulary: so
the probabilities are those of the next token. The server reads text, and therefore a copy of the checkpoint by links
whose tokenizer has one word for each token id.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orderproof.forked_process import die_with_parent
from orderproof.ports.engines.engine import EngineError, InferenceEngine, LoadedModel, Row, Scores
from orderproof.ports.engines.loopback import LOOPBACK, request
from orderproof.ports.tokenizer import copy_without_tokenizer, write_tokenizer

MARKS = 64  # of one prompt: the server takes as many questions at most
LABELS = 512  # of one question; of a larger vocabulary, as many token ids are compared
POLL_SECONDS = 0.2
TEMPLATE = (  # it has to name `questions`, so that one prompt has the marks of all
    "{% for word in state.words %}{{ word }} {% if loop.index in state.marked %}<|mark|>{% endif %}{% endfor %}"
    "{% set _ = questions %}"
)


class _ServedModel(LoadedModel):
    def __init__(self, address: str, name: str, labels: Sequence[int]) -> None:
        self.address, self.name, self.labels = address, name, labels

    def prefill(self, row: Row) -> Scores:
        options = dict.fromkeys(map(str, self.labels))
        parts = []
        for start in range(0, len(row), MARKS):
            marked = list(range(start + 1, min(start + MARKS, len(row)) + 1))
            question = {
                "model": self.name, "state": {"words": _words(row), "marked": marked},
                "questions": {str(place): {"type": "choice", "criteria": options} for place in marked},
            }  # fmt: skip
            answers = request(f"{self.address}/v1/systemone", question)["answers"]
            parts += [list(answers[str(place)]["probabilities"].values()) for place in marked]
        probabilities = np.array(parts, dtype=np.float64)
        known = probabilities > 0  # a smaller one is not returned
        values = np.log(np.where(known, probabilities, 1.0)).astype(np.float32)
        candidates = np.where(known, np.array(self.labels, dtype=np.int64), -1)
        return Scores(values, candidates, normalised=True, among_candidates=True)

    def greedy(self, row: Row, count: int) -> list[int]:
        question = {
            "model": self.name, "prompt": " ".join(_words(row)), "max_tokens": count,
            "generation_config": json.dumps({"do_sample": False, "eos_token_id": []}),
        }  # fmt: skip
        (choice,) = request(f"{self.address}/v1/completions", question)["choices"]
        return [int(word.removeprefix("t")) for word in choice["text"].split()]


def _words(row: Row) -> list[str]:
    return [f"t{token}" for token in row]


def _labels(vocabulary: int) -> list[int]:
    """The token ids whose probabilities are compared: all, or as many with even distances."""
    return sorted({int(each) for each in np.linspace(0, vocabulary - 1, min(LABELS, vocabulary))})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK[0], 0))
        return int(probe.getsockname()[1])


def _start(checkpoint: Path, decisions: Path, log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The process of the server, and its address."""
    port = _free_port()
    command = [
        sys.executable, "-c", "from transformers.cli.transformers import main; main()", "serve", str(checkpoint),
        "--host", LOOPBACK[0], "--port", str(port), "--device", "cpu", "--dtype", "float32",
        "--decision-config", str(decisions),
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    return process, f"http://{LOOPBACK[0]}:{port}"


def _wait_until_ready(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Return when the server answers. Raises `EngineError` if it ends before."""
    while True:
        if process.poll() is not None:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
            raise EngineError(
                f"transformers serve ended with exit code {process.returncode}: {lines[-1].strip(' │╭╰')}"
            )
        try:
            request(f"{address}/health", None)
        except EngineError:
            time.sleep(POLL_SECONDS)
        else:
            return


class TransformersServeEngine(InferenceEngine):
    """The engine of this module."""

    def load(self, folder: Path) -> LoadedModel:
        place = Path(tempfile.mkdtemp(prefix="orderproof_serve_"))
        checkpoint, decisions, log = place / "checkpoint", place / "decision.json", place / "log.txt"
        copy_without_tokenizer(folder, checkpoint)
        vocabulary = _vocabulary(json.loads((folder / "config.json").read_text(encoding="utf-8")))
        write_tokenizer(checkpoint, vocabulary, special_words=False)
        labels = _labels(vocabulary)
        decisions.write_text(
            json.dumps(
                {"labels": {"choice": _words(labels)}, "chat_template": TEMPLATE, "sanitize_control_tokens": False}
            ),
            encoding="utf-8",
        )
        process, address = _start(checkpoint, decisions, log)
        _wait_until_ready(process, address, log)
        model = _ServedModel(address, str(checkpoint), labels)
        weakref.finalize(model, process.send_signal, signal.SIGKILL)
        return model


def _vocabulary(config: Mapping[str, Any]) -> int:
    text = config.get("text_config")
    return int((text if isinstance(text, Mapping) else config)["vocab_size"])


ENGINE = TransformersServeEngine(
    name="serve",
    title="transformers serve",
    packages=("accelerate", "fastapi", "openai", "uvicorn", "pydantic"),
    distribution="transformers",
    extra="serve",
    abilities=frozenset({"prefill", "greedy"}),
    reads_config=False,
)
