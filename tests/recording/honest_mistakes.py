"""Mistakes that engineers make by accident: what a call remembers, and what surrounds it.

Each model looks causal in the call that is recorded, and is not causal in another call, at another length or with
another setting. `honest_mistakes_with_data.py` holds those that follow the numbers of inputs and weights.
"""

from __future__ import annotations

import functools
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH = 6
CALLS = 100  # after which a count changes what a model computes


@dataclass(frozen=True)
class Mistake:
    """A model with a mistake, and how the build of today protects its user."""

    make: type[nn.Module]
    protection: str  # "refuted", "undecided", "noted", "assumed", or "harmless"
    words: str  # which the note, the assumption or the reason contains


MISTAKES: dict[str, Mistake] = {}


def mistake(protection: str, words: str = "") -> Callable[[type[nn.Module]], type[nn.Module]]:
    """Enter a model in the corpus."""

    def entered(model: type[nn.Module]) -> type[nn.Module]:
        MISTAKES[model.__name__] = Mistake(model, protection, words)
        return model

    return entered


def causal_mask(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def with_mean(x: Tensor) -> Tensor:
    """Every token sees all tokens."""
    return x + x.mean(1, keepdim=True)


class CausalAttention(nn.Module):
    """One causal attention without a mistake."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.prepare()

    def prepare(self) -> None: ...

    def mask(self, x: Tensor) -> Tensor | None:
        return causal_mask(x.shape[1])

    def forward(self, x: Tensor) -> Tensor:
        mask = self.mask(x)
        return x + F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), attn_mask=mask)


# ---------------------------------------------------------------- lengths


@mistake("refuted", "token 0 comes to depend on token 64")
class TableOfTheFirstCall(CausalAttention):
    """The mask is a table of 64 tokens; a longer call goes without."""

    def prepare(self) -> None:
        self.table: Tensor | None = None

    def mask(self, x: Tensor) -> Tensor:
        if self.table is None:
            self.table = causal_mask(64)
        n = x.shape[1]
        return self.table[:n, :n] if n <= 64 else torch.ones(n, n, dtype=torch.bool)


@functools.lru_cache
def cached_mask(n: int) -> Tensor:
    return causal_mask(n) if n < 64 else torch.ones(n, n, dtype=torch.bool)


@mistake("refuted", "token 0 comes to depend on token 63")
class CachedFunction(CausalAttention):
    """A cached function gives masks up to 63 tokens."""

    def mask(self, x: Tensor) -> Tensor:
        return cached_mask(x.shape[1])


@mistake("refuted", "token 0 comes to depend on token 1")
class WindowOffByOne(CausalAttention):
    """Above 300 tokens the mask is off by one."""

    def mask(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        place = torch.arange(n)
        return place <= place[:, None] + (n > 300)


@mistake("refuted", "token 0 comes to depend on token 399")
class ShortcutForLongInputs(CausalAttention):
    """From 400 tokens on the mean replaces the attention."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.size(1) < 400 else with_mean(x)


@mistake("refuted", "token 0 comes to depend on token 256")
class BlocksOfAComputedSize(CausalAttention):
    """Above 256 tokens a block is as long as the input."""

    def mask(self, x: Tensor) -> Tensor | None:
        n = x.shape[1]
        block = torch.arange(n) // (1 << (n - 1).bit_length())
        return block <= block[:, None] if n > 256 else super().mask(x)


# ---------------------------------------------------------------- what a call remembers


@mistake("noted", "the call changes step")
class CountedCalls(CausalAttention):
    """A schedule that opens the mask after some calls."""

    def prepare(self) -> None:
        self.step = 0

    def mask(self, x: Tensor) -> Tensor | None:
        self.step += 1
        return super().mask(x) if self.step < CALLS else None


@mistake("noted", "the call changes step")
class CountedInABuffer(CausalAttention):
    """The same schedule, counted in a buffer."""

    def prepare(self) -> None:
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def mask(self, x: Tensor) -> Tensor:
        self.step += 1
        return causal_mask(x.shape[1]) | (self.step > CALLS)


@mistake("noted", "the call changes CountedInADefault.forward.calls")
class CountedInADefault(CausalAttention):
    """A default argument that keeps what was written into it."""

    def forward(self, x: Tensor, cache: dict[str, int] = {}) -> Tensor:  # noqa: B006
        cache["calls"] = cache.get("calls", 0) + 1
        return super().forward(x) if cache["calls"] < CALLS else with_mean(x)


@mistake("noted", "the call changes config.calls")
class CountedInTheSettings(CausalAttention):
    """An object of settings holds the count."""

    def prepare(self) -> None:
        self.config = SimpleNamespace(calls=0)

    def mask(self, x: Tensor) -> Tensor | None:
        self.config.calls += 1
        return super().mask(x) if self.config.calls < CALLS else None


@mistake("noted", "the call changes CountedInTheClass.calls")
class CountedInTheClass(CausalAttention):
    """All instances share one count."""

    calls = 0

    def mask(self, x: Tensor) -> Tensor | None:
        type(self).calls += 1
        return super().mask(x) if self.calls < CALLS else None


@mistake("noted", "the call changes calls")
class CountedInAHook(CausalAttention):
    """A forward hook that removes the mean over tokens after some calls."""

    def prepare(self) -> None:
        self.calls = 0

        def hook(_module: nn.Module, _inputs: Any, y: Tensor) -> Tensor | None:
            self.calls += 1
            return y - y.mean(1, keepdim=True) if self.calls > CALLS else None

        self.value.register_forward_hook(hook)


TABLES: dict[str, Tensor] = {}


@mistake("noted", "the call changes global TABLES.mask")
class GlobalTable(CausalAttention):
    """A table that all models share has the length of whoever called first."""

    def mask(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        table = TABLES.setdefault("mask", causal_mask(n))
        return table[:n, :n] if table.shape[0] >= n else torch.ones(n, n, dtype=torch.bool)


@mistake("noted", "the call changes past")
class ForgottenReset(CausalAttention):
    """Keys of the last call stay in the cache."""

    def prepare(self) -> None:
        self.past: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        key = self.key(x)
        if self.past is not None:
            key = key + self.past.mean()
        self.past = key.detach()
        return x + F.scaled_dot_product_attention(self.query(x), key, self.value(x), is_causal=True)


@mistake("noted", "the call changes mean")
class RunningMeanWithoutTraining(CausalAttention):
    """The mean of all tokens is updated in evaluation too, and the next call sees it."""

    def prepare(self) -> None:
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x) - self.mean
        self.mean.lerp_(x.mean((0, 1)), 0.1)
        return y


@mistake("undecided", "`data_ptr` of a tensor")
class ResultsByAddress(CausalAttention):
    """Results are cached by the address of the input's memory, which another input may have later."""

    def prepare(self) -> None:
        self.seen: dict[Any, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        key = x.data_ptr(), tuple(x.shape)
        if key not in self.seen:
            self.seen[key] = super().forward(x)
        return self.seen[key]


@mistake("noted", "the call changes seen")
class ResultsByIdentity(CausalAttention):
    """Results are cached by the identity of the input, which another input may have later."""

    def prepare(self) -> None:
        self.seen: dict[int, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        if id(x) not in self.seen:
            self.seen[id(x)] = super().forward(x)
        return self.seen[id(x)]


# ---------------------------------------------------------------- random numbers and the clock


@mistake("noted", "Python's random generator")
class LayerDropWithoutTraining(CausalAttention):
    """Forgets to ask whether the model is trained."""

    def forward(self, x: Tensor) -> Tensor:
        return with_mean(x) if random.random() < 0.01 else super().forward(x)


@mistake("noted", "numpy's random generator")
class JitterOfNumpy(CausalAttention):
    """The same with numpy's generator."""

    def forward(self, x: Tensor) -> Tensor:
        return with_mean(x) if np.random.rand() < 0.01 else super().forward(x)  # noqa: NPY002


START = time.time()


@mistake("noted", "with the same answers of time.time")
class WarmUpByTheClock(CausalAttention):
    """The first hours run another branch than all later ones."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if time.time() - START < 9000 else with_mean(x)


# ---------------------------------------------------------------- settings


@mistake("refuted", "token 0 comes to depend on token 6")
class MaskUnderCompileOnly(CausalAttention):
    """The branch that runs eagerly has no mask."""

    def mask(self, x: Tensor) -> Tensor | None:
        return super().mask(x) if torch.compiler.is_compiling() else None


@mistake("refuted", "token 0 comes to depend on token 6")
class MaskUnderExportOnly(CausalAttention):
    """The branch that is not exported has no mask."""

    def mask(self, x: Tensor) -> Tensor | None:
        exported = torch.onnx.is_in_onnx_export() or torch.jit.is_tracing() or torch.compiler.is_exporting()
        return super().mask(x) if exported else None


@mistake("refuted", "token 0 comes to depend on token 6")
class MaskOnOneDevice(CausalAttention):
    """The branch for the CPU has no mask."""

    def mask(self, x: Tensor) -> Tensor | None:
        return super().mask(x) if x.device.type != "cpu" else None


@mistake("undecided", "the model computes other things in float64")
class MaskInOneDtype(CausalAttention):
    """The branch for float64 has no mask."""

    def mask(self, x: Tensor) -> Tensor | None:
        return super().mask(x) if x.dtype == torch.float32 else None


@mistake("assumed", "called without gradients")
class NoMaskWithGradients(CausalAttention):
    """The branch for gradients has no mask."""

    def mask(self, x: Tensor) -> Tensor | None:
        return None if torch.is_grad_enabled() else super().mask(x)


@mistake("assumed", "environment variables")
class EnvironmentSwitch(CausalAttention):
    """A switch for an experiment stayed in the code."""

    def mask(self, x: Tensor) -> Tensor | None:
        return None if os.environ.get("ORDERPROOF_TEST_NO_MASK") else super().mask(x)


@mistake("assumed", "layout")
class FastPathForContiguousInputs(CausalAttention):
    """The path for inputs with strides takes the mean."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.is_contiguous() else with_mean(x)
