"""The contract of every registered encoding in every dtype: casts change no position, and results round once."""

from __future__ import annotations

import pytest
import torch

from orderproof import positions
from tests.encodings.examples import (
    apply,
    build,
    every_encoding,
)


@every_encoding
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_casting_the_module_casts_nothing_but_parameters(name: str, dtype: torch.dtype) -> None:
    encoding = build(name)
    for parameter in encoding.parameters():
        parameter.data = parameter.data.to(dtype).to(torch.float32)
    p = positions.offset(41, 7)
    assert torch.equal(apply(encoding, p), apply(encoding.to(dtype), p))


@every_encoding
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_it_returns_the_requested_dtype_and_rounds_once(name: str, dtype: torch.dtype) -> None:
    encoding = build(name)
    if encoding.claims.site == "none":
        return
    found = apply(encoding, positions.offset(40, 9), dtype=dtype)
    exact = apply(encoding, positions.offset(40, 9))
    assert found.dtype == dtype
    # The inputs were rounded too: two half units, and a rotation adds two products.
    assert (found.double() - exact).abs().max() <= 4 * torch.finfo(dtype).eps * exact.abs().max().clamp(min=1)


@every_encoding
def test_autocast_changes_nothing(name: str) -> None:
    encoding = build(name)
    plain = apply(encoding, positions.offset(40, 9), dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(apply(encoding, positions.offset(40, 9), dtype=torch.float32), plain)
