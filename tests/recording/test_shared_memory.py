"""Tensors, arrays and parameters that share memory: what a call writes by one name, it may read by another.

Each of these models is causal for small inputs only, or only with the weights that it has.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from orderproof import prove

LARGE = 100.0
Forward = Callable[[nn.Module, Tensor], Tensor]


class Holds(nn.Module):
    """A module with what `make` puts into it, and a forward call."""

    def __init__(self, make: Callable[[nn.Module], None], forward: Forward) -> None:
        super().__init__()
        make(self)
        self.call = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.call(self, x)


def shifted(x: Tensor, found: Any) -> Tensor:
    """Causal where what was found is at most `LARGE`."""
    return x.cumsum(1) + torch.relu(found - LARGE)


def reversed_if(x: Tensor, answer: Any) -> Tensor:
    y = x.cumsum(1)
    return y.flip(1) if answer else y


def peak(x: Tensor) -> Tensor:
    return x.abs().amax()


def is_large(x: Tensor) -> Tensor:
    return peak(x) > LARGE


def set_(**values: Any) -> Callable[[nn.Module], None]:
    def make(module: nn.Module) -> None:
        for name, value in values.items():
            setattr(module, name, value)

    return make


def buffers(**values: Tensor) -> Callable[[nn.Module], None]:
    def make(module: nn.Module) -> None:
        for name, value in values.items():
            module.register_buffer(name, value)

    return make


def views(flat: Tensor) -> dict[str, Tensor]:
    return {"cache": flat, "value": flat[1]}


def with_array(values: Any) -> dict[str, Any]:
    return {"array": values, "tensor": torch.from_numpy(values)}


def written(name: str, forward: Forward) -> Forward:
    """A call that first writes the largest number of its input to a tensor."""

    def call(module: nn.Module, x: Tensor) -> Tensor:
        getattr(module, name).copy_(peak(x).expand(getattr(module, name).shape))
        return forward(module, x)

    return call


def noted(name: str, forward: Forward) -> Forward:
    """A call that first writes if its input is large."""

    def call(module: nn.Module, x: Tensor) -> Tensor:
        getattr(module, name).copy_(is_large(x).expand(getattr(module, name).shape))
        return forward(module, x)

    return call


def in_a_local_array(_module: nn.Module, x: Tensor) -> Tensor:
    found = np.zeros(1, dtype=np.float32)
    torch.from_numpy(found).copy_(is_large(x))
    return reversed_if(x, found[0])


def in_local_bytes(_module: nn.Module, x: Tensor) -> Tensor:
    found = bytearray(1)
    torch.frombuffer(found, dtype=torch.bool).copy_(is_large(x))
    return reversed_if(x, found[0])


def in_a_local_array_by_dlpack(_module: nn.Module, x: Tensor) -> Tensor:
    found = np.zeros(1, dtype=np.float32)
    torch.from_dlpack(found).copy_(is_large(x))  # type: ignore[attr-defined]
    return reversed_if(x, found[0])


WRITTEN: dict[str, Callable[[], nn.Module]] = {
    "buffer and a part of it": lambda: Holds(
        buffers(**views(torch.zeros(2, 6))), written("cache", lambda m, x: shifted(x, m.value))
    ),
    "part of a buffer and the buffer": lambda: Holds(
        buffers(**views(torch.zeros(2, 6))), written("value", lambda m, x: shifted(x, m.cache.amax()))
    ),
    "attribute and a part of it": lambda: Holds(
        set_(**views(torch.zeros(2, 6))), written("cache", lambda m, x: shifted(x, m.value))
    ),
    "part that is used before the write": lambda: Holds(
        set_(**views(torch.zeros(2, 6))),
        lambda m, x: written("cache", lambda n, y: shifted(y, n.value))(m, x + m.value),
    ),
    "transposed": lambda: Holds(
        lambda m: set_(a=(flat := torch.zeros(2, 3)), b=flat.t())(m), written("a", lambda m, x: shifted(x, m.b.amax()))
    ),
    "another dtype": lambda: Holds(
        lambda m: set_(a=(flat := torch.zeros(1)), b=flat.view(torch.int32))(m),
        written("a", lambda m, x: shifted(x, 1000.0 * (m.b > 0x43000000))),
    ),
    "second half of a double": lambda: Holds(
        lambda m: buffers(a=(flat := torch.zeros(2))[1:], b=flat.view(torch.float64))(m),
        written("a", lambda m, x: shifted(x, 1000.0 * (m.b > 1).float())),
    ),
    "elements that are not aligned": lambda: Holds(
        lambda m: buffers(
            a=torch.frombuffer(raw := bytearray(8), dtype=torch.float32, count=1),
            b=torch.frombuffer(raw, dtype=torch.float32, count=1, offset=2),
        )(m),
        written("a", lambda m, x: shifted(x, 1000.0 * (m.b > 0).float())),
    ),
    "number of a part": lambda: Holds(
        lambda m: set_(stats=(flat := torch.zeros(2)), peak=flat[1:])(m),
        noted("stats", lambda m, x: reversed_if(x, m.peak.item())),
    ),
    "list of a written constant": lambda: Holds(
        set_(peak=torch.zeros(1)), noted("peak", lambda m, x: reversed_if(x, m.peak.tolist() == [1.0]))
    ),
    "text of a written constant": lambda: Holds(
        set_(peak=torch.zeros(1)), noted("peak", lambda m, x: reversed_if(x, "1" in f"{m.peak}"))
    ),
    "array of a written constant": lambda: Holds(
        set_(peak=torch.zeros(1)), noted("peak", lambda m, x: reversed_if(x, m.peak.numpy()[0]))
    ),
    "storage of a written constant": lambda: Holds(
        set_(peak=torch.zeros(1, dtype=torch.bool)),
        noted("peak", lambda m, x: reversed_if(x, m.peak.untyped_storage()[0])),
    ),
    "array in an attribute": lambda: Holds(
        set_(**with_array(np.zeros(1, dtype=np.float32))),
        noted("tensor", lambda m, x: reversed_if(x, m.array[0])),
    ),
    "array of a buffer": lambda: Holds(
        lambda m: (buffers(peak=(b := torch.zeros(1)))(m), setattr(m, "array", b.numpy()))[0],
        noted("peak", lambda m, x: reversed_if(x, m.array[0])),
    ),
    "array of Python": lambda: Holds(
        lambda m: set_(kept=(a := array.array("f", [0.0])), tensor=torch.frombuffer(a, dtype=torch.float32))(m),
        noted("tensor", lambda m, x: reversed_if(x, m.kept[0])),
    ),
    "local array": lambda: Holds(set_(), in_a_local_array),
    "local bytes": lambda: Holds(set_(), in_local_bytes),
    "local array by dlpack": lambda: Holds(set_(), in_a_local_array_by_dlpack),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
@pytest.mark.parametrize("name", WRITTEN)
def test_a_write_to_shared_memory_is_refused(name: str) -> None:
    torch.manual_seed(0)
    finding = prove(WRITTEN[name]().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert any(word in finding.reason for word in ("shares memory", "may share", "control flow depends on data"))


def weight() -> nn.Parameter:
    return nn.Parameter(torch.zeros(4))


def with_weight(**others: Callable[[nn.Parameter], Any]) -> Callable[[nn.Module], None]:
    def make(module: nn.Module) -> None:
        module.w = weight()
        for name, of in others.items():
            setattr(module, name, of(module.w))

    return make


def outside(part: Callable[[nn.Linear], Tensor]) -> Callable[[nn.Module], None]:
    def make(module: nn.Module) -> None:
        module.layers = [nn.Linear(6, 6)]
        module.row = part(module.layers[0])

    return make


def decides(module: nn.Module, x: Tensor) -> Tensor:
    return reversed_if(x * (1 + module.w.sum()), bool(module.part[0] > 0))  # type: ignore[operator]


DECIDED: dict[str, Callable[[], nn.Module]] = {
    "array from the second number on": lambda: Holds(
        with_weight(part=lambda w: torch.from_numpy(w.detach().numpy()[1:])), decides
    ),
    "exchanged": lambda: Holds(with_weight(part=lambda w: torch.from_dlpack(w.detach()[1:])), decides),  # type: ignore[attr-defined]
    "detached": lambda: Holds(with_weight(part=lambda w: w.detach()[2:]), decides),
    "data": lambda: Holds(with_weight(part=lambda w: w.data), decides),
    "weight of a layer in a list": lambda: Holds(
        outside(lambda layer: layer.weight.detach()[0]),
        lambda m, x: reversed_if(m.layers[0](x), bool(m.row[0] > LARGE)),  # type: ignore[index, operator]
    ),
    "bias of a layer in a list, read last": lambda: Holds(
        outside(lambda layer: layer.bias.detach()[1:]),
        lambda m, x: reversed_if(m.layers[0](x), bool(m.row[0] > LARGE)),  # type: ignore[index, operator]
    ),
}


@pytest.mark.parametrize("name", DECIDED)
def test_no_part_of_a_parameter_decides(name: str) -> None:
    finding = prove(DECIDED[name]().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert "control flow depends on data" in finding.reason


HONEST: dict[str, Callable[[], nn.Module]] = {
    "parts that do not overlap": lambda: Holds(
        lambda m: set_(a=(flat := torch.zeros(2, 6))[0], b=flat[1])(m),
        lambda m, x: x.cumsum(1) + m.a.copy_(torch.ones(6)) + m.b,  # type: ignore[operator]
    ),
    "buffer of its own": lambda: Holds(
        buffers(steps=torch.zeros(1)), lambda m, x: x.cumsum(1) + 0 * m.steps.add_(1)  # type: ignore[operator]
    ),
    "views that are only read": lambda: Holds(
        buffers(**views(torch.ones(2, 6))), lambda m, x: x.cumsum(1) * m.value + m.cache[0]  # type: ignore[operator, index]
    ),
    "constant that is read": lambda: Holds(
        set_(shift=torch.tensor([0])), lambda m, x: x.cumsum(1).roll(m.shift.tolist(), (1,))  # type: ignore[operator, union-attr]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_other_tensors_may_share_memory(name: str) -> None:
    module = HONEST[name]().eval()
    for _ in range(2):  # the first proof reads the values of constants
        assert prove(module, "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"


def changes_an_array(_module: nn.Module, x: Tensor) -> Tensor:
    """An array that Python writes after the tensor over it was used."""
    kept = -np.ones(6, dtype=np.float32)
    y = x.cumsum(1)
    y = torch.where(torch.from_numpy(kept) > 0, y, y + torch.relu(x.flip(1) - LARGE))
    kept[:] = 1
    return y


def changes_an_array_back(module: nn.Module, x: Tensor) -> Tensor:
    module.array[:] = -1  # type: ignore[operator]
    y = x.cumsum(1)
    y = torch.where(module.table > 0, y, y + torch.relu(x.flip(1) - LARGE))  # type: ignore[operator]
    module.array[:] = 1  # type: ignore[operator]
    return y


def exchanged(_module: nn.Module, x: Tensor) -> Tensor:
    y, z = x.cumsum(1), x.cumsum(1) + torch.relu(x.flip(1) - LARGE)
    torch.utils.swap_tensors(y, z)
    return y


def array_of_a_buffer(module: nn.Module) -> None:
    module.array = np.ones(6, dtype=np.float32)
    module.register_buffer("table", torch.from_numpy(module.array))


def with_foreach(call: Forward) -> Forward:
    """A call that torch.export records, because the recorder does not."""

    def other(module: nn.Module, x: Tensor) -> Tensor:
        torch._foreach_add_([torch.zeros(1)], 1.0)
        return call(module, x)

    return other


CHANGED: dict[str, Callable[[], nn.Module]] = {
    "local array": lambda: Holds(set_(), changes_an_array),
    "array of a buffer": lambda: Holds(array_of_a_buffer, changes_an_array_back),
    "exchanged tensors": lambda: Holds(set_(), exchanged),
    "overlapping elements": lambda: Holds(
        buffers(a=torch.zeros(4).unfold(0, 2, 1)),
        lambda m, x: shifted(x, m.a[0].copy_(peak(x).expand(2)).sum() * 0 + m.a[1, 0]),  # type: ignore[index]
    ),
    "strided view of memory": lambda: Holds(
        lambda m: (buffers(b=(b := torch.zeros(6)))(m), setattr(m, "view", memoryview(b.numpy())[::2]))[0],
        noted("b", lambda m, x: reversed_if(x, m.view[0])),  # type: ignore[index]
    ),
    "exported: local array": lambda: Holds(set_(), with_foreach(in_a_local_array)),
    "exported: part of a parameter": lambda: Holds(with_weight(part=lambda w: w.detach()[2:]), with_foreach(decides)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_memory_that_changes_without_an_operator_is_noticed(name: str) -> None:
    finding = prove(CHANGED[name]().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert "the graph cannot be recorded" in finding.reason


def test_parts_whose_ranges_overlap_and_whose_elements_do_not_are_written() -> None:
    def keys_and_values(module: nn.Module) -> None:
        kept = torch.zeros(6, 2)
        buffers(k=kept[:, 0], v=kept[:, 1])(module)

    ones = torch.ones(6)
    module = Holds(keys_and_values, lambda m, x: x.cumsum(1) + m.k.copy_(ones) + m.v).eval()  # type: ignore[operator]
    assert prove(module, "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"
