"""Layouts that are read off the operands are those that torch derives with symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher

from orderproof.recording.open_sizes import OpenSizes
from orderproof.recording.result_shapes import ResultShapes
from orderproof.recording.shape_rules import ShapeRules, key_of

aten = torch.ops.aten
F32, F64, BF16, I64, BOOL = torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool


def _tensor(sizes: OpenSizes, shape: str, dtype: torch.dtype = F32, order: tuple[int, ...] | None = None) -> Tensor:
    """A tensor of ``b 4 n 8``; ``order`` gives the axes as they are in memory."""
    wanted = [sizes.symbols[s] if s in sizes.symbols else int(s) for s in shape.split()]
    if order is None:
        return torch.empty(wanted, dtype=dtype, device="meta")
    memory = torch.empty([wanted[axis] for axis in order], dtype=dtype, device="meta")
    with enable_python_dispatcher():
        return memory.permute([order.index(axis) for axis in range(len(order))])


def _layout(x: Any) -> tuple[Any, ...]:
    return tuple(map(key_of, x.shape)), tuple(map(key_of, x.stride())), x.dtype, key_of(x.storage_offset())


Operands = Callable[[Callable[..., Tensor]], tuple[Any, ...]]
SWAPPED = (0, 2, 1, 3)  # [b, h, n, d] that is [b, n, h, d] in memory
READ_OFF: list[tuple[Any, Operands, dict[str, Any]]] = [
    (aten.add.Tensor, lambda t: (t("b n 8"), t("b n 8")), {}),
    (aten.add.Tensor, lambda t: (t("b n 8"), t("8")), {}),
    (aten.add.Tensor, lambda t: (t("n 8", BF16), t("n 8")), {}),
    (aten.add.Tensor, lambda t: (t("b n 8", I64), 0.5), {}),
    (aten.add.Tensor, lambda t: (t("b n 8", BF16), t("", F64)), {}),
    (aten.mul.Tensor, lambda t: (t("b 4 n 8", F32, SWAPPED), t("b 1 n 8")), {}),
    (aten.mul.Tensor, lambda t: (t("b 4 n 8", F32, SWAPPED), t("b 4 n 8")), {}),
    (aten.mul.Tensor, lambda t: (t("b 1 n 8"), t("b 4 n 8")), {}),
    (aten.where.self, lambda t: (t("1 1 n n", BOOL), t("b 4 n n"), t("")), {}),
    (aten.le.Tensor, lambda t: (t("1 n", I64), t("n 1", I64)), {}),
    (aten.bitwise_and.Tensor, lambda t: (t("b 1 1 n", BOOL), t("b 1 1 n", BOOL)), {}),
    (aten.masked_fill.Scalar, lambda t: (t("b 4 n n"), t("b 1 n n", BOOL), -1.0), {}),
    (aten.__and__.Tensor, lambda t: (t("1 1 n n", BOOL), t("b 1 1 n", BOOL)), {}),
    (aten.mean.dim, lambda t: (t("b n 8"), [-1], True), {}),
    (aten.mean.dim, lambda t: (t("b n 8"), [1]), {"keepdim": True}),
    (aten.sum.dim_IntList, lambda t: (t("b n 4 8", BF16), [1, -1]), {}),
    (aten.pow.Tensor_Scalar, lambda t: (t("b n 8"), 2), {}),
    (aten.gelu.default, lambda t: (t("b n 8", BF16),), {"approximate": "tanh"}),
    (aten.neg.default, lambda t: (t("b 4 n 8", F32, SWAPPED),), {}),
    (aten.neg.default, lambda t: (t("b 4 n 8").narrow(3, 0, 4),), {}),
    (aten.mul.Tensor, lambda t: (t("b 4 n 8").narrow(3, 4, 4), t("b 4 n 4", F32, SWAPPED)), {}),
    (aten.view.default, lambda t: (t("b n 8"), [*t("b n").shape, 2, 4]), {}),
    (aten.view.default, lambda t: (t("b n 8"), [*t("b").shape, -1, 8]), {}),
    (aten.view.default, lambda t: (t("b n 4 2"), [*t("b n").shape, -1]), {}),
    (aten.view.default, lambda t: (t("b n 8"), [-1, 8]), {}),
    (aten.reshape.default, lambda t: (t("b n 8"), [*t("b n").shape, 1, 8]), {}),
    (aten.reshape.default, lambda t: (t("b 4 n 8", F32, SWAPPED), [*t("b 4 n").shape, 2, -1]), {}),
    (aten.view.default, lambda t: (t("b 4 n 8", F32, SWAPPED), [*t("b").shape, 2, 2, *t("n").shape, 8]), {}),
    (aten.clone.default, lambda t: (t("b n 8"),), {}),
    (aten.clone.default, lambda t: (t("b 4 n 8", F32, SWAPPED),), {}),
    (aten.clone.default, lambda t: (t("b n 8 4").select(2, 3),), {}),
    (aten.clone.default, lambda t: (t("b 4 n 8", F32, SWAPPED).select(3, 1),), {}),
    (aten.neg.default, lambda t: (t("b 4 n 8", F32, SWAPPED).narrow(3, 0, 4),), {}),
    (aten.clone.default, lambda t: (t("b 4 n 8", F32, SWAPPED),), {"memory_format": torch.contiguous_format}),
    (aten._to_copy.default, lambda t: (t("b n 8"),), {"dtype": F64, "memory_format": torch.contiguous_format}),
    (aten.tril.default, lambda t: (t("n n", BOOL),), {}),
    (aten.triu.default, lambda t: (t("b 4 n m", F32, SWAPPED), 1), {}),
    (aten.tril.default, lambda t: (t("b n n", F32, (0, 2, 1)), -1), {}),
    (aten.arange.default, lambda t: (t("n").shape[0],), {"device": "meta"}),
    (aten.max_pool1d.default, lambda t: (t("b n 8"), [2]), {}),
    (aten.max_pool1d.default, lambda t: (t("b n 8"), [3], [2], [1]), {}),
    (aten.max_pool1d.default, lambda t: (t("b n 8"), [3], [1], [1], [2]), {}),
    (aten.arange.start, lambda t: (0, t("n").shape[0]), {"device": "meta", "dtype": F32}),
    (aten.arange.default, lambda _: (7,), {"device": "meta"}),
    (aten.arange.start_step, lambda _: (9, 1, -3), {"device": "meta", "dtype": F32}),
    (aten.einsum.default, lambda t: ("bhnd,bhmd->bhnm", [t("b 4 n 8"), t("b 4 m 8")]), {}),
    (aten.einsum.default, lambda t: ("b n d, b m d -> b m n", [t("b n 8"), t("b m 8")]), {}),
    (aten.einsum.default, lambda t: ("bhnd,bnh->bnd", [t("b 4 n 8", F32, SWAPPED), t("b n 4")]), {}),
    (aten.linear.default, lambda t: (t("b n 8"), t("16 8"), t("16")), {}),
    (aten.linear.default, lambda t: (t("n 8"), t("16 8")), {}),
    (aten.layer_norm.default, lambda t: (t("b n 8"), [8], t("8"), t("8")), {}),
    (aten.scaled_dot_product_attention.default, lambda t: (t("b 4 n 8"), t("b 4 n 8"), t("b 4 n 6")), {}),
    (aten.matmul.default, lambda t: (t("b 4 n 8", F32, SWAPPED), t("b 4 8 m")), {}),
    (aten.matmul.default, lambda t: (t("b 4 n 8", F32, SWAPPED), t("b 4 n 8", F32, SWAPPED).transpose(2, 3)), {}),
    (aten.matmul.default, lambda t: (t("b 1 1 8"), t("b 1 8 1")), {}),
    (aten.matmul.default, lambda t: (t("b n 8"), t("8 16")), {}),
    (aten.matmul.default, lambda t: (t("b 4 n 8", F32, SWAPPED), t("16 8").t()), {}),
    (aten.matmul.default, lambda t: (t("n 8"), t("8 m")), {}),
    (aten.cumsum.default, lambda t: (t("b n", I64), 1), {}),
    (aten.cumsum.default, lambda t: (t("b n", BOOL), -1), {}),
    (aten.cumsum.default, lambda t: (t("b n", I64), 0), {"dtype": F32}),
    (aten.cumsum.default, lambda t: (t("b n 8", BF16), 1), {}),
    (aten.slice_scatter.default, lambda t: (t("b n 8"), t("b n 4"), 2, 0, 4), {}),
    (aten.slice_scatter.default, lambda t: (t("b 4 n 8").select(1, 2), t("b n 4"), 2, 4, 8), {}),
    (aten.select_scatter.default, lambda t: (t("b 4 n 8", F32, SWAPPED), t("b 4 n"), 3, 1), {}),
    (aten.select_scatter.default, lambda t: (t("b 8 n").narrow(1, 2, 4), t("b n"), 1, 1), {}),
    (aten.unsqueeze.default, lambda t: (t("b n 8"), 1), {}),
    (aten.unsqueeze.default, lambda t: (t("b n 8"), 0), {}),
    (aten.unsqueeze.default, lambda t: (t("b n 8"), -1), {}),
    (aten.unsqueeze.default, lambda t: (t("b 4 n 8", F32, SWAPPED).narrow(3, 4, 4), 2), {}),
    (aten.unsqueeze.default, lambda t: (t(""), 0), {}),
    (aten.cat.default, lambda t: ([t("b n 8"), t("b m 8"), t("b 1 8")], 1), {}),
    (aten.cat.default, lambda t: ([t("b n 8"), t("b n 4")], -1), {}),
    (aten.cat.default, lambda t: ([t("b 4 n 8", F32, SWAPPED).narrow(3, 4, 4), t("b 4 n 4", F32, SWAPPED)], -1), {}),
    (aten.cat.default, lambda t: ([t("b n"), t("b n")],), {}),
    (aten._to_copy.default, lambda t: (t("b 4 n 8", F32, SWAPPED),), {"dtype": F64}),
    (aten._to_copy.default, lambda t: (t("b 4 n 8").narrow(3, 4, 4),), {"dtype": BF16}),
    (
        aten.scaled_dot_product_attention.default,
        lambda t: (t("b 4 n 8", F32, SWAPPED), t("b 2 n 8", F32, SWAPPED), t("b 2 n 8", F32, SWAPPED)),
        {"attn_mask": None, "enable_gqa": True},
    ),
    (
        aten.scaled_dot_product_attention.default,
        lambda t: (t("b 4 n 8"), t("b 4 m 8"), t("b 4 m 8"), t("b 1 n m", BOOL)),
        {},
    ),
]
LEFT_TO_TORCH: list[tuple[Any, Operands, dict[str, Any]]] = [
    (aten.add.Tensor, lambda t: (t("b n 8"), t("b 23 8")), {}),  # equal for the example only
    (aten.mul.Tensor, lambda t: (t("1 n 8", F32, (1, 0, 2)), t("b n 8")), {}),
    (aten.view.default, lambda t: (t("b n 8"), [3, 23, 8]), {}),  # likewise
    (aten.view.default, lambda t: (t("b n 8"), [*t("n b").shape, -1, 4, 4]), {}),  # raises
    (aten.view.default, lambda t: (t("b n 8"), [*t("m").shape, -1]), {}),
    (aten.reshape.default, lambda t: (t("b 4 n 8", F32, SWAPPED), [*t("b").shape, -1, 8]), {}),  # a copy
    (aten.sum.dim_IntList, lambda t: (t("b n 8", BOOL), [1]), {}),
    (aten.sum.dim_IntList, lambda t: (t("b n 8"), [1]), {"dtype": F64}),
    (aten.mean.dim, lambda t: (t("b n 8"), []), {}),
    (aten.mean.dim, lambda t: (t("b n 8"), [4]), {}),  # raises
    (aten.mean.dim, lambda t: (t("b n 8"), [2, -1]), {}),  # raises
    (aten.mean.dim, lambda t: (t(""), [-1]), {}),
    (aten.view.default, lambda t: (t("b n 8"), [*t("b n").shape, -2, -4]), {}),  # raises
    (aten.view.default, lambda t: (t("b n 8"), [*t("b n").shape, -1, -2]), {}),  # raises
    (aten.mean.dim, lambda t: (t("b 4 n 8", F32, SWAPPED), [-1]), {}),
    (aten.einsum.default, lambda t: ("bnd,bmd->bnm", [t("b n 8"), t("b m 1")]), {}),
    (aten.einsum.default, lambda t: ("bnd,bnd->bn", [t("b n 8"), t("b 23 8")]), {}),
    (aten.einsum.default, lambda t: ("...d,de->...e", [t("b n 8"), t("8 4")]), {}),
    (aten.einsum.default, lambda t: ("bnd,bmd", [t("b n 8"), t("b m 8")]), {}),
    (aten.neg.default, lambda t: (t("1 n 8").expand(*t("b n 8").shape),), {}),
    (aten.linear.default, lambda t: (t("b 4 n 8", F32, SWAPPED), t("16 8")), {}),
    (aten.linear.default, lambda t: (t("b n 8", BF16), t("16 8", BF16), t("3", BF16)), {}),  # raises
    (aten.layer_norm.default, lambda t: (t("b 4 n 8", F32, SWAPPED), [8]), {}),
    (aten.matmul.default, lambda t: (t("8"), t("8 n")), {}),
    (aten.matmul.default, lambda t: (t("n 8"), t("b 8 n")), {}),  # torch computes the transposed product
    (aten.matmul.default, lambda t: (t("1 n 8"), t("b 8 n")), {}),
    (aten.matmul.default, lambda t: (t("b n 8"), t("b 23 n")), {}),  # raises
    (aten.matmul.default, lambda t: (t("b n n"), t("b 23 n")), {}),  # equal for the example only
    (aten.matmul.default, lambda t: (t("b n 8"), t("b 8 n", F64)), {}),  # raises
    (aten.select_scatter.default, lambda t: (t("1 n 8").expand(*t("b n 8").shape), t("b n"), 2, 1), {}),  # overlaps
    (aten.cumsum.default, lambda t: (t("b n", I64), 2), {}),  # raises
    (aten.cumsum.default, lambda t: (t("", I64), 0), {}),
    (aten.cumsum.default, lambda t: (t("b 4 n 8", F32, SWAPPED), 2), {}),
    (aten.unsqueeze.default, lambda t: (t("b n"), 3), {}),  # raises
    (aten.cat.default, lambda t: ([t("b n 8"), t("b 23 8")], 2), {}),  # equal for the example only
    (aten.cat.default, lambda t: ([t("b n 8"), t("b n 8", F64)], 2), {}),
    (aten.cat.default, lambda t: ([t("b n 8"), t("0")], 1), {}),  # an empty tensor is left out
    (aten.cat.default, lambda t: ([t("b 4 n 8", F32, (0, 2, 3, 1)), t("b 4 n 8", F32, (0, 2, 3, 1))], 1), {}),
    (aten.cat.default, lambda t: ([t("b n 8"), t("b n 8")], 3), {}),  # raises
    (aten.clone.default, lambda t: (t("b 4 n 8"),), {"memory_format": torch.channels_last}),
    (aten.arange.default, lambda t: (t("n").shape[0] - 3,), {"device": "meta"}),  # which may be negative
    (aten.arange.start_step, lambda t: (0, t("n").shape[0], 2), {"device": "meta"}),
    (aten.scaled_dot_product_attention.default, lambda t: (t("b n 8"), t("b n 8"), t("b n 8")), {}),
    (aten.scaled_dot_product_attention.default, lambda t: (t("b 4 n 8"), t("b 2 n 8"), t("b 2 n 8")), {}),
    (
        aten.scaled_dot_product_attention.default,
        lambda t: (t("b 4 n 8"), t("b 4 n 8"), t("b 4 n 8"), t("b 2 n n", BOOL)),
        {},
    ),
]


@pytest.mark.parametrize(("func", "operands", "options"), READ_OFF)
def test_a_layout_is_that_of_torch(func: Any, operands: Operands, options: dict[str, Any]) -> None:
    sizes = OpenSizes({"b": 3, "n": 23, "m": 19})
    with enable_python_dispatcher():
        args = operands(lambda *how: _tensor(sizes, *how))
    found = ShapeRules().result(func, args, options)
    assert found is not None
    assert not sizes.environment.guards, "a rule asks nothing about sizes"
    with enable_python_dispatcher():
        expected = func(*args, **options)
        result = ResultShapes().call(func, *args, **options)
    assert _layout(result) == _layout(expected)
    own = tuple(map(key_of, found.sizes)), tuple(map(key_of, found.strides)), found.dtype, key_of(found.offset)
    assert own == _layout(expected)
    assert result is not expected
    assert result.device.type == "meta"


@pytest.mark.parametrize(("func", "operands", "options"), LEFT_TO_TORCH)
def test_what_is_not_plain_is_left_to_torch(func: Any, operands: Operands, options: dict[str, Any]) -> None:
    sizes = OpenSizes({"b": 3, "n": 23, "m": 19})
    with enable_python_dispatcher():
        args = operands(lambda *how: _tensor(sizes, *how))
    assert ShapeRules().result(func, args, options) is None


def test_a_size_that_is_only_equal_in_the_example_stays_a_condition() -> None:
    sizes = OpenSizes({"b": 3, "n": 23, "m": 19})
    with enable_python_dispatcher():
        ResultShapes().call(aten.add.Tensor, _tensor(sizes, "b n 8"), _tensor(sizes, "b 23 8"))
    assert sizes.fixed == ["n"]
