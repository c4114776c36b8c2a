"""mistral.rs: the 20 largest log-probabilities of the token after a prompt, each of which is asked for alone.

It takes text: the checkpoint gets a tokenizer that names each token by its number, and a template that adds nothing.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from mistralrs import Architecture, ChatCompletionRequest, ModelDType, Runner, Which

DISTRIBUTIONS = ("mistralrs",)
MOST = 20  # log-probabilities of a token that it returns
MOST_ASKED, LAST_ASKED = 128, 64  # tokens of a row, each of which costs a call
OTHER_NAMES = {"phi": "phi2", "phimoe": "phi35moe"}
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
DECODER = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}


class _Model:
    normalised = True

    def __init__(self, folder: str, vocabulary: int) -> None:
        self.folder, self.vocabulary, self.runners = folder, vocabulary, dict[int, Any]()

    def _runner(self, kept: int = 0) -> Any:
        """The engine that keeps the caches of this number of prompts."""
        if kept not in self.runners:
            self.runners.clear()
            self.runners[kept] = Runner(
                which=Which.Plain(model_id=self.folder, dtype=ModelDType.F32), prefix_cache_n=kept,
                chat_template=f"{self.folder}/template.json",
            )  # fmt: skip
        return self.runners[kept]

    def _ask(self, runner: Any, row: list[int], count: int = 1) -> list[Any]:
        words = " ".join(f"t{token}" for token in row)
        request = ChatCompletionRequest(
            model="default", messages=[{"role": "user", "content": words}], logprobs=True, top_logprobs=MOST,
            max_tokens=count, temperature=0.0, ignore_eos=True,
        )  # fmt: skip
        answer = runner.send_chat_completion_request(request)
        if answer.usage.prompt_tokens != len(row):
            raise RuntimeError(f"it read {answer.usage.prompt_tokens} tokens of a prompt of {len(row)}")
        return list(answer.choices[0].logprobs.content)

    def _scores(self, runner: Any, row: list[int], indices: Any) -> Any:
        values = np.ma.array(np.zeros((len(row), self.vocabulary), np.float32), mask=True)
        for index in indices:
            (entry,) = self._ask(runner, row[: index + 1])
            for each in entry.top_logprobs:
                values[index, int(each.token)] = each.logprob
        return values

    def prefill(self, row: list[int]) -> Any:
        early = range(0, max(0, len(row) - LAST_ASKED), max(1, (len(row) - LAST_ASKED) // (MOST_ASKED - LAST_ASKED)))
        return self._scores(self._runner(), row, [*early, *range(max(0, len(row) - LAST_ASKED), len(row))])

    def prefix(self, earlier: list[int], row: list[int]) -> Any:
        """Before each token of the rest the earlier prompt is read again, whose cache goes on from the beginning."""
        shared = next(index for index, (a, b) in enumerate(zip(earlier, row, strict=True)) if a != b)
        runner = self._runner(kept=1)
        self._ask(runner, earlier)
        return self._scores(runner, row, range(shared, len(row)))

    def greedy(self, row: list[int], count: int) -> list[int]:
        entries = self._ask(self._runner(), row, count)
        return [int(max(entry.top_logprobs, key=lambda each: each.logprob).token) for entry in entries]


def knows(model_type: str) -> bool:
    """True for an architecture of text that it names."""
    names = {name.lower() for name in dir(Architecture) if not name.startswith("_")}
    return OTHER_NAMES.get(model_type, model_type.replace("_", "")) in names


def load(folder: Path) -> _Model:
    """Load a checkpoint in float32, with a tokenizer of numbers."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    vocabulary, target = int((config.get("text_config") or config)["vocab_size"]), Path(tempfile.mkdtemp())
    for file in folder.iterdir():
        if "token" not in file.name and "template" not in file.name:
            (target / file.name).symlink_to(file.resolve())
    words = {"type": "WordLevel", "vocab": {f"t{token}": token for token in range(vocabulary)}, "unk_token": "t0"}
    parts = {"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": DECODER, "model": words}
    empty: dict[str, Any] = {
        "truncation": None,
        "padding": None,
        "normalizer": None,
        "post_processor": None,
        "added_tokens": [],
    }
    (target / "tokenizer.json").write_text(json.dumps({"version": "1.0", **empty, **parts}), encoding="utf-8")
    for name in ("template.json", "tokenizer_config.json"):
        (target / name).write_text(json.dumps({"chat_template": TEMPLATE}), encoding="utf-8")
    model = _Model(str(target), vocabulary)
    model._runner()
    return model
