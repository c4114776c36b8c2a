"""The sums of bits change with the weights, whatever their dtype, layout and place in a storage."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof.weight_bits import weight_bits

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.complex64, torch.int64, torch.bool)
LAYOUTS = {
    "scalar": lambda x: x[0],
    "three": lambda x: x[:3],
    "eight": lambda x: x[:8],
    "one after three": lambda x: x[3:4],
    "transposed": lambda x: x[:6].view(2, 3).t(),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_change_of_one_element_changes_the_sum(dtype: torch.dtype, layout: str) -> None:
    values = LAYOUTS[layout](torch.ones(8, dtype=dtype))
    module = module_with(values)
    before = weight_bits(module)
    assert weight_bits(module) == before
    values.view(-1)[-1:].zero_() if values.is_contiguous() else values[-1, -1].zero_()
    assert weight_bits(module) != before


def test_constants_are_told_apart() -> None:
    assert weight_bits(module_with(torch.full((4,), 0.5))) != weight_bits(module_with(torch.ones(4)))


def test_shapes_and_dtypes_are_part_of_the_names() -> None:
    zero = weight_bits(module_with(torch.zeros(4)))
    assert zero != weight_bits(module_with(torch.zeros(2, 2)))
    assert zero != weight_bits(module_with(torch.zeros(4, dtype=torch.int32)))
    assert weight_bits(module_with(torch.zeros(0))) == {"values [0] torch.float32": 0}
    assert weight_bits(nn.Linear(2, 2, device="meta")) == {}


def module_with(values: Tensor) -> nn.Module:
    module = nn.Module()
    module.register_buffer("values", values)
    return module
