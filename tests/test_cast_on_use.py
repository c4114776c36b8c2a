"""A float64 copy whose parameters are cast where they are used computes bit for bit what a full copy computes."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from orderproof import cast_on_use
from orderproof.cast_on_use import CastOnUse, cast_tensor, source_of
from orderproof.weight_bits import weight_bits
from tests.models.hf.adapters import tiny_adapter


@pytest.fixture(autouse=True)
def _cast_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cast_on_use, "LEAST_ELEMENTS", 0)
    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)


def parameter(*shape: int) -> tuple[Tensor, Tensor]:
    """A tensor in bfloat16, and its numbers in float64 that are cast where they are used."""
    narrow = torch.randn(shape, generator=torch.Generator().manual_seed(0)).bfloat16()
    return narrow, cast_tensor(narrow, torch.float64)


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom", "mixtral", "mamba", "t5", "bert"])
@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float32])
def test_a_copy_that_shares_its_parameters_computes_the_same_bits(name: str, narrow: torch.dtype) -> None:
    adapter = tiny_adapter(name).cast_to(narrow)
    adapter = adapter.with_module(copy.deepcopy(adapter.module))
    full, shared = copy.deepcopy(adapter.module).double(), adapter.in_float64()
    held = [p for p in shared.module.parameters() if not isinstance(p, CastOnUse)]
    assert not held
    tokens = adapter.sample_tokens(2, 7, 0)
    tokens = tokens.double() if tokens.is_floating_point() else tokens
    with torch.no_grad():
        expected = adapter.with_module(full).call(tokens, keep=False).output
        found = shared.call(tokens, keep=False).output
    assert found.dtype == torch.float64
    assert type(found) is Tensor
    assert torch.equal(found, expected)


@pytest.mark.parametrize("rows", [1, 2, 14, 64])
@pytest.mark.parametrize("shape", [(1000, 384), (512, 1024), (1024, 3072), (4097, 96)])
@pytest.mark.parametrize("in_parts", [False, True])
def test_a_product_is_that_with_a_full_copy(
    rows: int, shape: tuple[int, int], in_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cast_on_use, "MOST_CAST", 2**16 if in_parts else 2**25)
    narrow, wide = parameter(*shape)
    generator = torch.Generator().manual_seed(1)
    x, y, bias = (
        torch.randn(n, dtype=torch.float64, generator=generator)
        for n in ((rows, shape[1]), (rows, shape[0]), shape[:1])
    )
    linear = nn.functional.linear
    pairs = [
        (linear(x, wide), linear(x, narrow.double())),
        (linear(x, wide, bias), linear(x, narrow.double(), bias)),
        (y @ wide, y @ narrow.double()),
    ]
    for found, expected in pairs:
        if in_parts:  # which may add in another order
            assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)
        else:
            assert torch.equal(found, expected)


def test_a_large_matrix_takes_the_memory_of_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cast_on_use, "MOST_CAST", 2**10)
    monkeypatch.setattr(cast_on_use, "_scratch", [])
    _, wide = parameter(500, 24)
    nn.functional.linear(torch.randn(3, 24, dtype=torch.float64), wide)
    assert [x.numel() for x in cast_on_use._scratch] == [1008 * 8]


def test_views_and_rows_hold_no_cast_numbers() -> None:
    narrow, wide = parameter(50, 8)
    for view in (wide.t(), wide[3:7], wide.reshape(-1), wide.detach(), nn.Parameter(wide)):
        assert isinstance(view, CastOnUse)
        assert source_of(view).untyped_storage().data_ptr() == narrow.untyped_storage().data_ptr()
    ids = torch.tensor([4, 9, 4])
    assert torch.equal(nn.functional.embedding(ids, wide), narrow.double()[ids])
    assert torch.equal(wide[ids], narrow.double()[ids])
    assert torch.equal(wide * 2 + wide.sum(), narrow.double() * 2 + narrow.double().sum())
    assert copy.deepcopy(wide) is wide


def test_a_cast_of_rounded_numbers_is_of_the_rounded_ones() -> None:
    exact = torch.randn(5, 5)
    rounded = cast_tensor(exact, torch.bfloat16)
    for dtype in (torch.float32, torch.float64):
        again = cast_tensor(rounded, dtype)
        assert torch.equal(again + 0, exact.bfloat16().to(dtype))
        assert torch.equal(again @ torch.eye(5, dtype=dtype), exact.bfloat16().to(dtype))
        assert torch.equal(torch.eye(5, dtype=dtype) @ again, exact.bfloat16().to(dtype))


def test_it_cannot_be_written() -> None:
    _, wide = parameter(5, 5)
    with pytest.raises(RuntimeError, match="expected no write to a parameter that is cast where it is used"):
        wide.copy_(torch.zeros(5, 5))
    target = torch.zeros(5, 5, dtype=torch.float64)
    assert torch.equal(target.copy_(wide), wide.cast())  # type: ignore[attr-defined]


def test_its_bits_are_those_of_the_parameter() -> None:
    narrow, wide = parameter(5, 4)
    layers = nn.Linear(4, 5, bias=False, dtype=torch.bfloat16), nn.Linear(4, 5, bias=False)
    for layer, weight in zip(layers, (narrow, wide), strict=True):
        layer.weight = nn.Parameter(weight)
    assert list(weight_bits(layers[0]).values()) == list(weight_bits(layers[1]).values())
    assert weight_bits(layers[0], own=True) == weight_bits(layers[0])
    assert weight_bits(layers[1], own=True) == {}  # they are those of the parameter, which are looked at there
