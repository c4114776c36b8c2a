"""An engine of the tests: transformers itself, with one planted difference, or with none.

Each difference is planted in the loaded modules or in the calls, and not in the configuration, where the explanation
looks for it.
"""

from __future__ import annotations

import copy
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from orderproof.library_messages import suppress_warnings
from orderproof.ports.engines.engine import InferenceEngine, LoadedModel, Row, Scores

Plant = Callable[[Any], None]  # changes a loaded model
CALL_FAULTS = ("cache_plus_one", "cache_restart", "pads_attended", "pads_counted")


class PlantedModel(LoadedModel):
    """transformers as an engine."""

    def __init__(self, model: Any, faults: frozenset[str]) -> None:
        self.model, self.faults = model, faults

    def _logits(self, tokens: Tensor, **more: Any) -> Any:
        with torch.no_grad(), suppress_warnings():
            return self.model(tokens, **more)

    def prefill(self, row: Row) -> Scores:
        return Scores(self._logits(torch.tensor([list(row)]), use_cache=False).logits[0].numpy())

    def chunks(self, row: Row, sizes: Sequence[int]) -> Scores:
        if "chunks_in_one_call" in self.faults:
            return self.prefill(row)
        past, start, parts = None, 0, []
        for index, size in enumerate(sizes):
            first = start + (index > 0) * ("cache_plus_one" in self.faults)
            first = 0 if "cache_restart" in self.faults else first
            output = self._logits(
                torch.tensor([list(row[start : start + size])]), past_key_values=past, use_cache=True,
                position_ids=torch.arange(first, first + size)[None], attention_mask=torch.ones(1, start + size),
            )  # fmt: skip
            past = output.past_key_values
            parts.append(output.logits[0].numpy())
            start += size
        return Scores(np.concatenate(parts))

    def batch(self, rows: Sequence[Row]) -> list[Scores]:
        longest = max(map(len, rows))
        pads = [longest - len(row) for row in rows]
        tokens = torch.tensor([[0] * pad + list(row) for pad, row in zip(pads, rows, strict=True)])
        mask = torch.arange(longest) >= torch.tensor(pads)[:, None]
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        if "pads_attended" in self.faults:
            mask = torch.ones_like(mask)
        if "pads_counted" in self.faults or "pads_attended" in self.faults:
            positions = torch.arange(longest).expand_as(tokens)
        output = self._logits(tokens, attention_mask=mask.long(), position_ids=positions, use_cache=False).logits
        return [Scores(each[pad:].numpy()) for pad, each in zip(pads, output, strict=True)]

    def greedy(self, row: Row, count: int) -> list[int]:
        tokens = list(row)
        for _ in range(count):
            tokens.append(int(self._logits(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax()))
        return tokens[len(row) :]


@dataclass(frozen=True, kw_only=True)
class PlantedEngine(InferenceEngine):
    """The engine; `plants` change the loaded model, `faults` the calls."""

    name: str = "planted"
    title: str = "transformers with a planted difference"
    abilities: frozenset[str] = frozenset({"prefill", "chunks", "batch", "greedy"})
    reads_config: bool = False
    plants: tuple[Plant, ...] = ()
    faults: frozenset[str] = field(default=frozenset())

    def load(self, folder: Path) -> LoadedModel:
        from transformers import AutoModelForCausalLM

        with suppress_warnings():
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager"
            ).eval()
        for plant in self.plants:
            plant(model)
        return PlantedModel(model, self.faults)


# ------------------------------------------------------------ plants


def parts(model: Any, attribute: str) -> list[Any]:
    return [part for part in model.modules() if hasattr(part, attribute)]


def interleaved_indexer(model: Any) -> None:
    """The layout of the attention in the indexer too."""
    module = sys.modules[type(model).__module__]
    module.apply_rotary_pos_emb = module.apply_rotary_pos_emb_interleave  # type: ignore[attr-defined]


def rotary_frequencies(make: Callable[[Tensor], Tensor]) -> Plant:
    def plant(model: Any) -> None:
        for part in parts(model, "inv_freq"):
            part.inv_freq = make(part.inv_freq)

    return plant


def base(value: float, width: int = 16) -> Plant:
    return rotary_frequencies(lambda old: value ** (-torch.arange(0, width, 2) / width)[: len(old)])


def interleaved_weights(model: Any) -> None:
    """The other rotary layout: the features of queries and keys in the order of pairs."""
    width = 16
    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)]).argsort()
    with torch.no_grad():
        for part in parts(model, "q_proj"):
            for projection in (part.q_proj, part.k_proj):
                rows = projection.weight.reshape(-1, width, projection.weight.shape[-1])
                projection.weight.copy_(rows[:, order.argsort()].reshape(projection.weight.shape).clone())


def whole_rotation(model: Any) -> None:
    """All features of a head are rotated, and not a part of them."""
    for part in parts(model, "rotary_ndims"):
        part.rotary_ndims = part.head_dim
    base(10_000.0)(model)
    for part in parts(model, "inv_freq"):
        part.inv_freq = 10_000.0 ** (-torch.arange(0, 16, 2) / 16)


def attribute(name: str, value: Any) -> Plant:
    def plant(model: Any) -> None:
        for part in parts(model, name):
            setattr(part, name, value)

    return plant


def no_embeddings(name: str) -> Plant:
    def plant(model: Any) -> None:
        for part in parts(model, name):
            getattr(part, name).weight.data.zero_()

    return plant


def no_clipping(model: Any) -> None:
    model.config.clip_qkv = None


def no_mean(model: Any) -> None:
    for part in model.modules():
        if type(part).__name__ == "OlmoLayerNorm":
            part.forward = lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


def no_final_softcap(model: Any) -> None:
    """Logits before the softcap c tanh(x / c)."""
    cap, forward = float(model.config.final_logit_softcapping), model.forward

    def without(*arguments: Any, **options: Any) -> Any:
        output = forward(*arguments, **options)
        output.logits = cap * torch.atanh((output.logits.double() / cap).clamp(-1 + 1e-12, 1 - 1e-12)).float()
        return output

    model.forward = without


def final_softcap(cap: float) -> Plant:
    """Logits c tanh(x / c)."""

    def plant(model: Any) -> None:
        forward = model.forward

        def capped(*arguments: Any, **options: Any) -> Any:
            output = forward(*arguments, **options)
            output.logits = cap * torch.tanh(output.logits / cap)
            return output

        model.forward = capped

    return plant


def no_sinks(model: Any) -> None:
    for part in parts(model, "sinks"):
        part.sinks.data = torch.full_like(part.sinks, -1e9)


def slopes_of(heads: int) -> Plant:
    """ALiBi slopes of a model with this number of heads."""

    def plant(model: Any) -> None:
        for part in parts(model, "inv_norm_factor"):
            part.register_forward_pre_hook(other_bias, with_kwargs=True)

    def other_bias(part: Any, arguments: Any, options: Any) -> Any:
        count, exponents = part.num_heads, torch.arange(1, part.num_heads + 1)
        ratio = 2.0 ** (-8.0 * exponents / heads) / 2.0 ** (-8.0 * exponents / count)
        bias = options["alibi"]
        return arguments, {
            **options,
            "alibi": (bias.reshape(-1, count, *bias.shape[1:]) * ratio[:, None, None]).reshape(bias.shape),
        }

    return plant


def tables_in(dtype: torch.dtype) -> Plant:
    """Cosines and sines of positions in a half precision."""

    def plant(model: Any) -> None:
        for part in parts(model, "inv_freq"):
            forward = part.forward
            part.forward = lambda *a, _forward=forward, **k: tuple(x.to(dtype).float() for x in _forward(*a, **k))

    return plant


def activation_of_kind(kind: str, other: Any) -> Plant:
    """Another activation function in place of those of a class."""

    def change(model: Any) -> None:
        for part in model.modules():
            for name, child in part.named_children():
                if type(child).__name__ == kind:
                    setattr(part, name, other)

    return change


def activation_in(dtype: torch.dtype) -> Plant:
    """The parameters of activation functions in another precision."""

    def change(model: Any) -> None:
        for part in model.modules():
            if type(part).__name__.endswith("Activation"):
                part.to(dtype)

    return change


def activation(function: torch.nn.Module) -> Plant:
    def plant(model: Any) -> None:
        for part in parts(model, "act_fn"):
            part.act_fn = function

    return plant


class TableGelu(torch.nn.Module):
    """GELU read from a table with one entry for each number of float16."""

    def __init__(self) -> None:
        super().__init__()
        every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.float16)
        self.table = torch.nn.functional.gelu(every.float(), approximate="tanh").half()

    def forward(self, inputs: Tensor) -> Tensor:
        index = inputs.half().view(torch.int16).to(torch.int64) & 0xFFFF
        return self.table[index].float()


def gelu_table(model: Any) -> None:
    activation(TableGelu())(model)


def rotated_in_part(width: int) -> Plant:
    """The first features of a head are rotated, and the others pass."""

    def plant(model: Any) -> None:
        module = sys.modules[type(model).__module__]
        rotate = module.apply_rotary_pos_emb

        def rotate_first(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
            first = rotate(query[..., :width], key[..., :width], cos, sin)
            return (
                torch.cat([first[0], query[..., width:]], -1),
                torch.cat([first[1], key[..., width:]], -1),
            )

        module.apply_rotary_pos_emb = rotate_first
        base(float(model.config.rope_parameters["rope_theta"]), width)(model)

    return plant


def scaled_embeddings(model: Any) -> None:
    """Embeddings times the root of their width."""
    model.model.embed_tokens.register_forward_hook(lambda part, inputs, output: output * output.shape[-1] ** 0.5)


def undivided_expert_weights(model: Any) -> None:
    """The sigmoid scores of the chosen experts, which are not divided by their sum."""
    for part in model.modules():
        if type(part).__name__.endswith("Router"):
            part.register_forward_hook(
                lambda router, inputs, output: (output[0], output[0].sigmoid().gather(-1, output[2]), output[2])
            )


def softmax_of_experts(temperature: float) -> Plant:
    """Experts that are chosen and weighed by softmax scores, with the bias of the choice in the weights."""

    def route(router: Any, inputs: Any, output: Any) -> Any:
        del router
        scores = (output[0] / temperature).softmax(-1) + inputs[1]
        values, indices = scores.topk(output[2].shape[-1])
        return output[0], values / values.sum(-1, keepdim=True) * output[1].sum(-1, keepdim=True), indices

    def plant(model: Any) -> None:
        for part in model.modules():
            if type(part).__name__.endswith("Router"):
                part.register_forward_hook(route)

    return plant


def layers_of(types: list[str]) -> Plant:
    """Layers with a window, and the positions of their type, in other places."""

    def plant(model: Any) -> None:
        config = copy.deepcopy(model.config)
        config.layer_types = types
        inner = type(model.model)(config)
        inner.load_state_dict(model.model.state_dict())
        model.model = inner.eval()

    return plant


@dataclass(frozen=True, kw_only=True)
class TiedHeadEngine(PlantedEngine):
    """An engine that takes the embeddings for the head, times a factor, and refuses weights of one."""

    name: str = "tied"
    factor: float = 1.0

    def load(self, folder: Path) -> LoadedModel:
        if "lm_head.weight" in load_file(folder / "model.safetensors"):
            raise ValueError("Received 1 parameters not in model: lm_head.weight.")
        model = super().load(folder)
        assert isinstance(model, PlantedModel)
        model.model.lm_head.weight.data = self.factor * model.model.model.embed_tokens.weight.data
        return model


# ------------------------------------------------------------ engines that misbehave


@dataclass(frozen=True, kw_only=True)
class MisbehavingEngine(PlantedEngine):
    """An engine that fails in one way."""

    name: str = "misbehaving"
    how: str = ""

    def load(self, folder: Path) -> LoadedModel:
        if self.how == "refuses":
            raise ValueError("unknown key 'rope_parameters'")
        model = super().load(folder)
        ordinary = model.prefill

        def prefill(row: Row) -> Scores:
            if self.how == "crashes":
                os.kill(os.getpid(), signal.SIGSEGV)
            if self.how == "aborts":
                os.write(2, b"/home/builder/model.cpp:7: ASSERT(n > 0) failed\n0: ./program(+0x1)\n")
                os.abort()
            if self.how == "hangs":
                time.sleep(60)
            if self.how == "exits":
                raise SystemExit(3)
            values = ordinary(row).values
            if self.how.startswith("at most "):
                if len(row) > int(self.how.removeprefix("at most ")):
                    raise ValueError(f"buffer to copy is of size {len(row)}")
                return Scores(values)
            return {
                "shape": Scores(values[:-1]),
                "vocabulary": Scores(values[:, :-9]),
                "nan": Scores(np.where(np.arange(len(values))[:, None] == 2, np.nan, values)),
            }[self.how]

        model.prefill = prefill  # type: ignore[method-assign]
        return model


@dataclass(frozen=True, kw_only=True)
class FewLabelsEngine(PlantedEngine):
    """An engine that returns the log-probabilities of some token ids, normalised over these."""

    name: str = "few_labels"
    labels: tuple[int, ...] = tuple(range(0, 99, 2))

    def load(self, folder: Path) -> LoadedModel:
        model = super().load(folder)
        ordinary = model.prefill

        def prefill(row: Row) -> Scores:
            logits = torch.from_numpy(ordinary(row).values)[:, list(self.labels)]
            ids = np.tile(np.array(self.labels, np.int64), (len(row), 1))
            return Scores(logits.log_softmax(-1).numpy(), ids, normalised=True, among_candidates=True)

        model.prefill = prefill  # type: ignore[method-assign]
        return model
