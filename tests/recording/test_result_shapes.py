"""Layouts of results that are computed once are those that the operators compute."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dispatch.python import enable_python_dispatcher

from orderproof.recording.open_sizes import OpenSizes
from orderproof.recording.result_shapes import KnownShapes, ResultShapes

aten = torch.ops.aten
SIZES = OpenSizes({"batch": 3, "tokens": 23})
ROWS, TOKENS = SIZES.symbols["batch"], SIZES.symbols["tokens"]


def _meta(*sizes: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(sizes, dtype=dtype, device="meta")


def _layout(x: Tensor) -> tuple[Any, ...]:
    return SIZES.shape(x), tuple(map(SIZES.term, x.stride())), SIZES.term(x.storage_offset()), x.dtype


def _operands() -> tuple[Tensor, Tensor]:
    return _meta(ROWS, TOKENS, 8), _meta(ROWS, TOKENS, 8, dtype=torch.float64)


@pytest.mark.parametrize(
    ("func", "make"),
    [
        (aten.add.Tensor, _operands),
        (aten.mul.Tensor, lambda: (_meta(ROWS, 1, TOKENS), _meta(TOKENS, 1))),
        (aten.transpose.int, lambda: (_operands()[0], 1, 2)),
        (aten.slice.Tensor, lambda: (_operands()[0], 1, 1, TOKENS - 1)),
        (aten.view.default, lambda: (_operands()[0], [ROWS, TOKENS, 2, 4])),
        (aten.clone.default, lambda: (_operands()[0].transpose(0, 1),)),
        (aten.cat.default, lambda: ([_operands()[0], _meta(ROWS, 1, 8)], 1)),
        (aten.lt.Tensor, _operands),
    ],
    ids=lambda value: str(value) if isinstance(value, torch._ops.OpOverload) else "",
)
def test_second_result_has_the_layout_of_the_operator(func: Any, make: Any) -> None:
    results = ResultShapes()
    with enable_python_dispatcher():
        results.call(func, *make())
        args = make()
        second, expected = results.call(func, *args), func(*args)
    assert _layout(second) == _layout(expected)
    operand = args[0] if isinstance(args[0], Tensor) else args[0][0]
    storages = [x.untyped_storage()._cdata for x in (second, expected, operand)]
    assert (storages[0] == storages[2]) == (storages[1] == storages[2])


def test_operands_of_other_shapes_dtypes_or_numbers_are_computed_again() -> None:
    results = ResultShapes()
    with enable_python_dispatcher():
        for dtype, size in [(torch.float32, TOKENS), (torch.float64, TOKENS), (torch.float32, TOKENS + 1)]:
            x = _meta(ROWS, size, dtype=dtype)
            for step in (1, 2):
                assert _layout(results.call(aten.slice.Tensor, x, 0, 0, 2, step)) == _layout(x[0:2:step])


def test_an_operand_that_is_returned_stays_the_same_object() -> None:
    results = ResultShapes()
    first, second = _operands()[0], _operands()[0]
    with enable_python_dispatcher():
        assert results.call(aten.contiguous.default, first) is first
        assert results.call(aten.contiguous.default, second) is second


def test_results_with_numbers_as_sizes_have_the_layout_of_the_operator() -> None:
    results = ResultShapes()
    x, weight = _meta(2, 7, 8).transpose(0, 1), _meta(8)
    for func, args in (
        (aten.layer_norm.default, (x, [8], weight, weight)),
        (aten.gelu.default, (x,)),
        (aten.select.int, (x, 0, 3)),
        (aten.split.Tensor, (x, 4)),
    ):
        for _ in range(2):
            found, expected = results.call(func, *args), func(*args)
            pairs = zip(found, expected, strict=True) if isinstance(expected, tuple | list) else [(found, expected)]
            assert all(_layout(one) == _layout(other) for one, other in pairs)


def test_a_custom_operator_is_called_each_time() -> None:
    calls = []

    @torch.library.custom_op("orderproof_tests::counted", mutates_args=())
    def counted(x: Tensor) -> Tensor:
        return x.clone()

    @counted.register_fake
    def _(x: Tensor) -> Tensor:
        calls.append(x)
        return torch.empty_like(x)

    results = ResultShapes()
    for _ in range(2):
        results.call(torch.ops.orderproof_tests.counted.default, _meta(2, 3))
    assert len(calls) == 2


class _WithTable(nn.Module):
    """Layers on the meta device, a table on the processor, and a write."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8, device="meta") for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        table = torch.arange(6).view(2, 3).t()
        for layer in self.layers:
            x = layer(x).transpose(0, 1).relu_()
        return x[:, : int(table.max())], table, x.to(torch.float64).sum(-1), x.unbind(1)[0]


@pytest.mark.parametrize("tokens", [7, 8])
def test_a_call_without_values_has_the_shapes_of_the_operators(tokens: int) -> None:
    module, x = _WithTable(), torch.empty(2, tokens, 8, device="meta")
    with torch.no_grad():
        expected = module(x)
        with KnownShapes():
            found = module(x)
    same = [(one.shape, one.stride(), one.dtype, one.device) for one in found]
    assert same == [(one.shape, one.stride(), one.dtype, one.device) for one in expected]
    assert torch.equal(found[1], expected[1])
