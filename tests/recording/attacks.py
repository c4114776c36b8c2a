"""Modules whose recorded program could differ from the one that runs: each must be refused, noted or recorded rightly.

None of them is equivariant for every input; a proof without a note would be false.
"""

from __future__ import annotations

import copy
import io
import pickle
import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

Answer = Callable[[Tensor], bool]


class Branch(nn.Module):
    """Adds positions if `question` says so: a rare event, which no random input shows."""

    def __init__(self, question: Answer) -> None:
        super().__init__()
        self.question = question

    def forward(self, x: Tensor) -> Tensor:
        if self.question(x):
            x = x + torch.arange(x.shape[1], dtype=x.dtype)[:, None]
        return x + x.mean(1, keepdim=True)


def swallowed(read: Answer) -> Answer:
    """A read whose errors the model catches."""

    def question(x: Tensor) -> bool:
        try:
            return read(x)
        except Exception:
            return False

    return question


def pickled(x: Tensor) -> bytes:
    stream = io.BytesIO()
    pickle.dump(x, stream)
    return stream.getvalue()


def without_functions(x: Tensor) -> bool:
    with torch._C.DisableTorchFunction():
        return x.device.type == "cpu"


READS: dict[str, Answer] = {
    "bool": lambda x: bool((x > 20).any()),
    "item": lambda x: x.max().item() > 20,
    "float": lambda x: float(x.max()) > 20,
    "int": lambda x: int(x.max()) > 20,
    "tolist": lambda x: max(x.flatten().tolist()) > 20,
    "iteration over tolist of a row": lambda x: any(v > 20 for v in x[0, 0].tolist()),
    "numpy": lambda x: x.numpy().max() > 20,
    "detached numpy": lambda x: x.detach().numpy().max() > 20,
    "array protocol": lambda x: x.__array__().max() > 20,
    "repr": lambda x: "e+" in repr(x * 1e3),
    "format": lambda x: f"{x.max():.1f}" > "20.0",
    "str": lambda x: "2" in str(x.max()),
    "pickle": lambda x: b"\x41" in pickled(x),
    "deepcopy": lambda x: copy.deepcopy(x).max() > 20,  # type: ignore[return-value]
    "storage": lambda x: max(x.untyped_storage().tolist()) > 250,
    "dlpack": lambda x: torch.from_dlpack(x.__dlpack__()).max().item() > 20,
    "equal": lambda x: torch.equal(x, x.flip(1)),
    "allclose": lambda x: torch.allclose(x, x.flip(1)),
    "nonzero": lambda x: len((x > 20).nonzero()) > 0,
    "masked selection": lambda x: x[x > 20].numel() > 0,
    "unique": lambda x: len(x.unique()) < x.numel(),
    "address": lambda x: x.data_ptr() % 3 == 7,
    "in": lambda x: 20.0 in x,
    "while": lambda x: next((True for row in x[0] if row.sum() > 100), False),
    "key of a maximum": lambda x: max(x[0, :, 0], key=float).item() > 20,
}
WORLDS: dict[str, Answer] = {
    "exporting": lambda x: not torch.compiler.is_exporting() and bool((x > 20).any()),
    "compiling": lambda x: not torch.compiler.is_compiling() and bool((x > 20).any()),
    "dynamo": lambda x: not torch.compiler.is_dynamo_compiling() and bool((x > 20).any()),
    "type": lambda x: type(x) is Tensor and bool((x > 20).any()),
    "fake": lambda x: not isinstance(x, FakeTensor) and bool((x > 20).any()),
    "subclass": lambda x: not type(x).__name__.endswith("FakeTensor") and bool((x > 20).any()),
    "meta": lambda x: not x.is_meta and bool((x > 20).any()),
    "device": lambda x: x.device.type == "cpu" and bool((x > 20).any()),
    "cpu": lambda x: x.is_cpu and bool((x > 20).any()),
    "type name": lambda x: x.type() == "torch.FloatTensor" and bool((x > 20).any()),
    "instance of a tensor type": lambda x: isinstance(x, torch.FloatTensor) and bool((x > 20).any()),
    "dispatch keys": lambda x: "Meta" not in str(torch._C._dispatch_keys(x)) and bool((x > 20).any()),
    "function modes off": lambda x: without_functions(x) and bool((x > 20).any()),
    "function modes": lambda x: not torch.overrides.has_torch_function((x,)) and bool((x > 20).any()),
    "dispatch modes": lambda x: not torch._C._len_torch_dispatch_stack() and bool((x > 20).any()),
    "numpy without modes": lambda x: isinstance(x, torch.FloatTensor) and x.numpy().max() > 20,
    "list without modes": lambda x: isinstance(x, torch.FloatTensor) and max(x.flatten().tolist()) > 20,
    "program without modes": lambda x: isinstance(x, torch.FloatTensor),
    "tracing": lambda x: not torch.jit.is_tracing() and bool((x > 20).any()),
    "scripting": lambda x: not torch.jit.is_scripting() and bool((x > 20).any()),
    "class dictionary": lambda x: "fake_mode" not in dir(x) and bool((x > 20).any()),
    "weight": lambda x: x.new_zeros(1).device.type == "cpu" and bool((x > 20).any()),
}


class CountsCalls(nn.Module):
    """Another function from the 60th call on."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x.flip(1) if self.calls > 60 else x + x.mean(1, keepdim=True)


class CountsInAList(CountsCalls):
    """The count is the length of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.shape[1])
        return x.flip(1) if len(self.seen) > 60 else x + x.mean(1, keepdim=True)


class CountsInADictionary(CountsCalls):
    """The count is in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.state = {"calls": 0}

    def forward(self, x: Tensor) -> Tensor:
        self.state["calls"] += 1000
        return x.flip(1) if self.state["calls"] > 60_000 else x + x.mean(1, keepdim=True)


class CountsInASubmodule(nn.Module):
    """The count is an attribute of a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()
        self.inner.calls = 1000  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        self.inner.calls = self.inner.calls + 1  # type: ignore[assignment, operator]
        return x.flip(1) if self.inner.calls > 1060 else x + x.mean(1, keepdim=True)  # type: ignore[operator]


class NewAttribute(nn.Module):
    """An attribute that the first call creates."""

    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "warm"):
            return x.flip(1)
        self.warm = True
        return x + x.mean(1, keepdim=True)


class CountsInABuffer(nn.Module):
    """The count is a buffer, which the graph reads."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)  # type: ignore[operator]
        return torch.where(self.calls > 60, x.flip(1), x + x.mean(1, keepdim=True))  # type: ignore[operator]


class CountsInANewBuffer(CountsInABuffer):
    """The same with another tensor at each call."""

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1  # type: ignore[operator]
        return torch.where(self.calls > 60, x.flip(1), x + x.mean(1, keepdim=True))


class CountsInATensor(CountsInABuffer):
    """The same with a tensor that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.held = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        self.held += 1
        return torch.where(self.held > 60, x.flip(1), x + x.mean(1, keepdim=True))


class PythonChance(nn.Module):
    """One call in three hundred is another function."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flip(1) if random.random() < 0.003 else x + x.mean(1, keepdim=True)


class NumpyChance(nn.Module):
    """The same with numpy's generator."""

    def forward(self, x: Tensor) -> Tensor:
        import numpy as np

        return x.flip(1) if np.random.rand() < 0.003 else x + x.mean(1, keepdim=True)  # noqa: NPY002


STATEFUL: dict[str, Callable[[], nn.Module]] = {
    "calls": CountsCalls,
    "list": CountsInAList,
    "dictionary": CountsInADictionary,
    "submodule": CountsInASubmodule,
    "new attribute": NewAttribute,
    "buffer": CountsInABuffer,
    "new buffer": CountsInANewBuffer,
    "tensor": CountsInATensor,
    "Python's generator": PythonChance,
    "numpy's generator": NumpyChance,
}
