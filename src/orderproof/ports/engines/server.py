"""A server on this machine that speaks OpenAI's completions interface and returns log-probabilities of the prompt.

    POST /v1/completions {"prompt": [[ids] ...], "echo": true, "logprobs": k, "max_tokens": 1, "temperature": 0}

The log-probabilities at token t + 1 of the answer are the scores of token t; those of the last token belong to the one
that is generated. Most servers return the k best of the vocabulary; the comparison is of these. The server has to serve
the checkpoint of the reference: it is started by somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from orderproof.errors import UsageError
from orderproof.ports.engines.engine import EngineError, InferenceEngine, LoadedModel, Row, Scores
from orderproof.ports.engines.loopback import LOOPBACK, request

CANDIDATES = (20, 5)  # numbers of log-probabilities to ask for: servers refuse more than they support
_TOKEN_ID = re.compile(r"token_id:(\d+)")


class _ServedModel(LoadedModel):
    def __init__(self, address: str, model: str, words: Mapping[str, int]) -> None:
        self.address, self.model, self.words = address, model, words

    def batch(self, rows: Sequence[Row]) -> list[Scores]:
        question = {
            "prompt": [list(row) for row in rows], "echo": True, "max_tokens": 1, "return_tokens_as_token_ids": True,
        }  # fmt: skip
        answer = self._ask(question)
        return [
            self._scores(choice, len(row)) for choice, row in zip(self._choices(answer, len(rows)), rows, strict=True)
        ]

    def prefill(self, row: Row) -> Scores:
        return self.batch([row])[0]

    def greedy(self, row: Row, count: int) -> list[int]:
        question = {"prompt": [list(row)], "max_tokens": count, "return_tokens_as_token_ids": True}
        (choice,) = self._choices(self._ask(question), 1)
        return [self._token_id(each) for each in _log_probabilities(choice)["tokens"]]

    def _ask(self, question: Mapping[str, Any]) -> Any:
        for count in CANDIDATES:
            body = {"model": self.model, "temperature": 0, "logprobs": count, **question}
            try:
                return request(f"{self.address}/v1/completions", body)
            except EngineError:
                if count == CANDIDATES[-1]:
                    raise
        raise AssertionError

    @staticmethod
    def _choices(answer: Any, count: int) -> list[Any]:
        choices = sorted(answer.get("choices", []), key=lambda choice: choice.get("index", 0))
        if len(choices) != count:
            raise EngineError(f"it returned {len(choices)} completions for {count} prompts")
        return choices

    def _scores(self, choice: Any, length: int) -> Scores:
        answer = _log_probabilities(choice)
        best, own, tokens = answer.get("top_logprobs"), answer.get("token_logprobs"), answer.get("tokens")
        if not best or not own or not tokens or len(best) < length + 1:
            raise EngineError(
                "it returned no log-probabilities of the prompt: expected echo with logprobs, as vLLM has them; "
                "use a server that supports both"
            )
        rows = []
        for place in range(1, length + 1):
            row = {self._token_id(word): float(value) for word, value in best[place].items()}
            token = self._token_id(tokens[place])
            if token in row and abs(row[token] - float(own[place])) > 1e-3:
                raise EngineError(f"it returned two log-probabilities for token {place}: {row[token]} and {own[place]}")
            rows.append({token: float(own[place]), **row})
        width = max(map(len, rows))
        candidates = np.full((length, width), -1, dtype=np.int64)
        values = np.zeros((length, width), dtype=np.float32)
        for index, row in enumerate(rows):
            candidates[index, : len(row)], values[index, : len(row)] = list(row), list(row.values())
        return Scores(values, candidates, normalised=True)

    def _token_id(self, word: str) -> int:
        found = _TOKEN_ID.fullmatch(word)
        if found is None and word not in self.words:
            raise EngineError(f"it returned the token {word!r}, which the tokenizer of the checkpoint does not have")
        return int(found[1]) if found else self.words[word]


class ServerEngine(InferenceEngine):
    """The engine of this module."""

    def for_target(self, target: str) -> InferenceEngine:
        parts = urlsplit(target)
        if parts.scheme != "http" or parts.hostname not in LOOPBACK:
            raise UsageError(
                f"expected engine {self.name} with a server on this machine, {self.name}:http://127.0.0.1:PORT; "
                f"got {self.name}:{target}"
            )
        return replace(self, target=target.rstrip("/").removesuffix("/v1"))

    def load(self, folder: Path) -> LoadedModel:
        models = request(f"{self.target}/v1/models", None).get("data") or [{}]
        words: Mapping[str, int] = {}
        if (folder / "tokenizer.json").is_file():
            from transformers import AutoTokenizer

            words = AutoTokenizer.from_pretrained(folder, local_files_only=True).get_vocab()
        return _ServedModel(self.target, str(models[0].get("id", "default")), words)


def _log_probabilities(choice: Any) -> dict[str, Any]:
    answer = choice.get("logprobs")
    if not isinstance(answer, dict):
        raise EngineError(
            "it returned no log-probabilities: choices[0].logprobs is empty; use a server that returns them"
        )
    return answer


ENGINE = ServerEngine(
    name="server",
    title="a server with OpenAI's interface",
    needs_target=True,
    abilities=frozenset({"prefill", "batch", "greedy"}),
    reads_config=False,
    note="server:http://127.0.0.1:PORT, of a server that returns log-probabilities of the prompt",
)
