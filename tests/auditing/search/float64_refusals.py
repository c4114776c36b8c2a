"""Causal attention whose float64 copy is refused or misleads; `leak=True` shows each token the next one."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH = 8


class Causal(nn.Module):
    """The model that all others vary: it runs in float64."""

    def __init__(self, *, leak: bool = False) -> None:
        super().__init__()
        self.leak = leak
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def mix(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(2 if self.leak else 1)
        scores = (query @ key.transpose(1, 2)).masked_fill(hidden, float("-inf"))
        return self.out(torch.softmax(scores, -1) @ value)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x)


class AssertsFloat32(Causal):
    def forward(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.float32, "float32 only"
        return self.mix(x)


class Bfloat16Table(Causal):
    """As nanochat keeps its rotary tables."""

    def __init__(self, *, leak: bool = False) -> None:
        super().__init__(leak=leak)
        self.register_buffer("table", torch.cos(torch.arange(32.0)).bfloat16()[:, None])
        self.table: Tensor

    def forward(self, x: Tensor) -> Tensor:
        assert self.table.dtype == torch.bfloat16
        return self.mix(x * self.table[: x.shape[1]])


class Bfloat16Weights(Causal):
    def __init__(self, *, leak: bool = False) -> None:
        super().__init__(leak=leak)
        self.bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x.bfloat16()).float()


class DefaultDtype(Causal):
    def forward(self, x: Tensor) -> Tensor:
        if x.dtype != torch.get_default_dtype():
            raise TypeError(f"expected {torch.get_default_dtype()}")
        return self.mix(x)


class OtherBranchInFloat64(Causal):
    """A float64 copy runs, and does not leak."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.get_default_dtype():
            return self.mix(x)
        return self.out(x)


class PlainParameter(Causal):
    """A parameter that `Module.double` does not find."""

    def __init__(self, *, leak: bool = False) -> None:
        super().__init__(leak=leak)
        self.scales = [nn.Parameter(torch.rand(WIDTH, WIDTH) + 0.5)]

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.mix(x), self.scales[0])


class Lock(Causal):
    def __init__(self, *, leak: bool = False) -> None:
        super().__init__(leak=leak)
        self.lock = threading.Lock()


class Generator(Causal):
    def __init__(self, *, leak: bool = False) -> None:
        super().__init__(leak=leak)
        self.steps = (step for step in range(3))


class ExtensionObject(Causal):
    def __init__(self, *, leak: bool = False) -> None:
        super().__init__(leak=leak)
        self.memory = memoryview(b"0")


class WeakReference(Causal):
    """Its copy refers to the original."""

    def __init__(self, *, leak: bool = False) -> None:
        super().__init__(leak=leak)
        self.reference = weakref.ref(self.qkv)

    def forward(self, x: Tensor) -> Tensor:
        assert self.reference() is self.qkv
        return self.mix(x)


class FloatInside(Causal):
    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x).float() + x.float()


class Autocast(Causal):
    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return self.mix(x).float()


class Float32Operator(Causal):
    """Neither the module nor its graph runs in float64."""

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(float32_only(x))


class Float32DataBranch(Causal):
    """Neither runs in float64, nor can its graph be recorded."""

    def forward(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.float32, "float32 only"
        mixed = self.mix(x)
        return mixed + 1 if bool(mixed.sum() > 1e9) else mixed


class LockAndDataBranch(Lock):
    def forward(self, x: Tensor) -> Tensor:
        mixed = self.mix(x)
        return mixed + 1 if bool(mixed.sum() > 1e9) else mixed


@torch.library.custom_op("orderproof_tests::float32_only", mutates_args=())
def float32_only(x: Tensor) -> Tensor:
    """Twice the input, which must be float32."""
    if x.dtype != torch.float32:
        raise RuntimeError("no kernel but for float32")
    return 2 * x


@float32_only.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


class OrderBlind(nn.Module):
    """Order-blind up to rounding, with a part in another dtype; no graph of it can be recorded."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).to(self.dtype).chunk(3, -1)
        summed = self.sum_of_tokens(torch.softmax(query @ key.transpose(1, 2), -1) @ value)
        return summed + 1 if bool(summed.sum() > 1e9) else summed

    def sum_of_tokens(self, x: Tensor) -> Tensor:
        total = torch.zeros_like(x[:, 0])
        for token in x.unbind(1):
            total = total + token  # one rounding a token
        return total


class OrderBlindOnlyInFloat32(OrderBlind):
    def forward(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.float32
        return super().forward(x)


def subclasses(of: type[nn.Module] = Causal) -> Iterator[type[nn.Module]]:
    """All models that vary it."""
    for each in of.__subclasses__():
        yield each
        yield from subclasses(each)
