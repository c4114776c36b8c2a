"""Rollouts: the log-probabilities with which an engine generates the tokens of a document, given those before them.

An engine of rollouts gets prompts and the tokens to generate, which it is forced to take. It returns the
log-probability of each in the distribution that it would have drawn from: with its temperature and its cuts, cached and
padded as it does.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError, first_line
from orderproof.library_messages import suppress_warnings

PROCESSED = (
    "Divide the logits of the loss by the temperature of the rollouts, and generate without other changes of the "
    "logits, or apply them in the loss too."
)
PADDED = "Give each prompt its own batch, or a model that counts positions from the attention mask."
CACHED = "Generate with use_cache=False, or find the cause by orderproof audit --law cached_decoding."
NO_TOKEN = 2**40  # an id that ends no text
ATTENTION = "Train and generate with one attn_implementation."


class Document(NamedTuple):
    """The tokens of a document in a row of a batch, from `start` on; those after the prompt are generated."""

    row: int
    start: int
    tokens: tuple[int, ...]
    prompt: int  # the number of tokens

    @property
    def generated(self) -> tuple[int, ...]:
        """The tokens after the prompt."""
        return self.tokens[self.prompt :]


class Setting(NamedTuple):
    """A change of an engine that may explain a difference, and what to do if it does."""

    engine: Rollout
    text: str
    remedy: str


class Rollout(ABC):
    """An engine of rollouts."""

    name: str
    is_exact: bool = True  # it computes in the precision of the model that it gets

    @abstractmethod
    def log_probabilities(self, model: Any, documents: Sequence[Document]) -> list[list[float]]:
        """The log-probability of each generated token of each document. Raises `UnsupportedCallError`."""

    def settings(self, model: Any) -> list[Setting]:
        """The settings that may explain a difference, the likely ones first."""
        del model
        return []


@dataclass(frozen=True)
class Generate(Rollout):
    """The `generate` of transformers: prompts with pads on the left in a batch, a cache, its generation_config."""

    name: str = "generate"
    left_out: tuple[str, ...] = ()  # classes of logits processors that its generation_config asks for, as of top_k
    cached: bool = True
    together: bool = True  # all prompts in one batch
    attention: str = ""  # of the model, if it is empty

    def log_probabilities(self, model: Any, documents: Sequence[Document]) -> list[list[float]]:
        """See `Rollout`."""
        if not hasattr(model, "generate") or not hasattr(model, "generation_config"):
            raise UnsupportedCallError("its model has no generate: expected a model of transformers, or another engine")
        before = getattr(model.config, "_attn_implementation", "")
        try:
            if self.attention:
                model.set_attn_implementation(self.attention)
            parts = [documents] if self.together else [[document] for document in documents]
            with suppress_warnings():
                return [row for part in parts for row in self._batch(model, part)]
        except (RuntimeError, ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
            raise UnsupportedCallError(f"generate raised {first_line(error)}") from error
        finally:
            if self.attention:
                model.set_attn_implementation(before)

    def _batch(self, model: Any, documents: Sequence[Document]) -> list[list[float]]:
        width, count = max(x.prompt for x in documents), max(len(x.generated) for x in documents)
        tokens = torch.tensor([[0] * (width - x.prompt) + list(x.tokens[: x.prompt]) for x in documents])
        mask = torch.tensor([[0] * (width - x.prompt) + [1] * x.prompt for x in documents])
        wanted = torch.tensor([list(x.generated) + [0] * (count - len(x.generated)) for x in documents])
        given = {"input_ids": tokens, "attention_mask": mask}
        given = {name: value.to(model.device) for name, value in given.items()}
        processors = [x for x in self.processors(model, given) if type(x).__name__ not in self.left_out]
        settings = copy.deepcopy(model.generation_config)
        settings.update(
            do_sample=False, eos_token_id=NO_TOKEN, pad_token_id=0, max_new_tokens=count, max_length=None,
            output_logits=True, return_dict_in_generate=True, use_cache=self.cached, repetition_penalty=None,
            temperature=None, top_k=None, top_p=None,
        )  # fmt: skip
        with torch.no_grad():
            made = model.generate(**given, generation_config=settings, logits_processor=[_forced(wanted)])
        found = []
        for step, logits in enumerate(made.logits):
            before = made.sequences[:, : width + step]
            scores = logits
            for processor in processors:
                scores = processor(before, scores)
            found.append(scores.log_softmax(-1).gather(1, wanted[:, step : step + 1].to(scores.device))[:, 0])
        every = torch.stack(found, 1).tolist()
        return [row[: len(x.generated)] for row, x in zip(every, documents, strict=True)]

    def processors(self, model: Any, given: dict[str, Tensor]) -> list[Any]:
        """The logits processors of its generation_config for sampling, in their order."""
        kept: list[Any] = []

        def keep(model: Any, input_ids: Tensor, logits_processor: Any, **_: Any) -> Tensor:
            del model
            kept.extend(logits_processor)
            return input_ids

        with suppress_warnings():
            model.generate(**given, do_sample=True, max_new_tokens=1, custom_generate=keep)
        return kept

    def settings(self, model: Any) -> list[Setting]:
        """See `Rollout`."""
        one = {"input_ids": torch.ones(1, 1, dtype=torch.long), "attention_mask": torch.ones(1, 1, dtype=torch.long)}
        every = self.processors(model, one)
        other = "eager" if getattr(model.config, "_attn_implementation", "") != "eager" else "sdpa"
        processors = [[each] for each in every] + [every] * (len(every) > 1)
        return [
            *(
                Setting(
                    replace(self, left_out=tuple(type(each).__name__ for each in some)),
                    f"{', '.join(map(_described, some))} of generation_config, which the loss does not apply",
                    PROCESSED,
                )
                for some in processors
            ),
            Setting(replace(self, together=False), "the pads on the left of its prompts", PADDED),
            Setting(replace(self, cached=False), "its cache", CACHED),
            Setting(replace(self, attention=other), f"its attention: {other} agrees with the loss", ATTENTION),
        ]  # fmt: skip


def _forced(wanted: Tensor) -> Any:
    """A logits processor that leaves one token a row, step by step."""
    step = iter(range(wanted.shape[1]))

    def force(_tokens: Tensor, scores: Tensor) -> Tensor:
        chosen = wanted[:, next(step), None].to(scores.device)
        return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)

    return force


def _described(processor: Any) -> str:
    """A logits processor and its number: temperature=0.7."""
    numbers = {
        name: x for name, x in vars(processor).items() if isinstance(x, (int, float)) and not name.startswith("_")
    }
    name = type(processor).__name__.removesuffix("LogitsWarper").removesuffix("LogitsProcessor")
    first = next(iter(numbers.items()), None)
    return name if first is None else f"{name} ({first[0]}={first[1]:g})"


@dataclass(frozen=True)
class Recorded(Rollout):
    """A function of prompt and generated tokens that returns the log-probability of each of these."""

    function: Any
    name: str = "the rollouts"
    is_exact: bool = False

    def log_probabilities(self, model: Any, documents: Sequence[Document]) -> list[list[float]]:
        """See `Rollout`."""
        del model
        found = []
        for document in documents:
            prompt, generated = list(document.tokens[: document.prompt]), list(document.generated)
            try:
                values = [float(x) for x in self.function(prompt, generated)]
            except Exception as error:  # the code of the user
                raise UnsupportedCallError(f"the rollouts raised {first_line(error)}") from error
            if len(values) != len(generated):
                raise UnsupportedCallError(
                    f"expected {len(generated)} log-probabilities of the rollouts, one a token; got {len(values)}"
                )
            found.append(values)
        return found
