from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from orderproof import positions
from orderproof.encodings import Rotary, rotary_layout
from orderproof.encodings._rotary_pairs import RotaryLayout
from orderproof.errors import EncodingError
from tests.encodings.examples import normal

WIDTH, TOKENS = 24, 9


def attended(weights: dict[str, Tensor], heads: dict[str, int], rope: Rotary) -> Tensor:
    """One layer of attention: project, rotate, attend."""
    x, p = normal(2, TOKENS, WIDTH, seed=7), positions.offset(11, TOKENS)

    def projected(name: str) -> Tensor:
        y = x @ weights[name].T + weights[f"{name}_bias"]
        return y.unflatten(-1, (heads[name], -1)).transpose(1, 2)

    q, k = rope.rotate(projected("q"), projected("k"), p)
    return functional.scaled_dot_product_attention(q, k, projected("v"), is_causal=True, enable_gqa=True)


def drawn(heads: dict[str, int], head_width: int) -> dict[str, Tensor]:
    weights = {}
    for seed, (name, count) in enumerate(heads.items()):
        weights[name] = normal(count * head_width, WIDTH, seed=seed)
        weights[f"{name}_bias"] = normal(count * head_width, seed=seed + 10)
    return weights


@pytest.mark.parametrize(("src", "dst"), [("interleaved", "half"), ("half", "interleaved")])
@pytest.mark.parametrize("rotary_width", [None, 6, 8], ids=["whole", "six", "eight"])
@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_a_model_with_converted_weights_in_the_other_layout_is_the_same_model(
    src: RotaryLayout, dst: RotaryLayout, rotary_width: int | None, key_heads: int
) -> None:
    heads = {"q": 4, "k": key_heads, "v": key_heads}
    weights = drawn(heads, 12)
    expected = attended(weights, heads, Rotary(12, layout=src, rotary_width=rotary_width))
    other = Rotary(12, layout=dst, rotary_width=rotary_width)
    assert (attended(weights, heads, other) - expected).abs().max() > 1e-2  # unconverted weights are a wrong model
    for name in ("q", "k", "q_bias", "k_bias"):
        weights[name] = rotary_layout.convert_rotary_layout(
            weights[name], heads=heads[name[0]], src=src, dst=dst, rotary_width=rotary_width
        )
    assert (attended(weights, heads, other) - expected).abs().max() < 1e-13


def test_interleaved_rows_become_two_halves_and_the_rest_stays() -> None:
    rows = torch.arange(16.0)
    found = rotary_layout.convert_rotary_layout(rows, heads=2, src="interleaved", dst="half", rotary_width=6)
    assert found.tolist() == [0, 2, 4, 1, 3, 5, 6, 7, 8, 10, 12, 9, 11, 13, 14, 15]


@given(heads=st.integers(1, 4), pairs=st.integers(1, 6), rest=st.integers(0, 3), flat=st.booleans())
def test_there_and_back_is_where_it_began(heads: int, pairs: int, rest: int, flat: bool) -> None:
    weight = normal(heads * (2 * pairs + rest), *(() if flat else (3,)))
    half = rotary_layout.convert_rotary_layout(
        weight, heads=heads, src="interleaved", dst="half", rotary_width=2 * pairs
    )
    back = rotary_layout.convert_rotary_layout(half, heads=heads, src="half", dst="interleaved", rotary_width=2 * pairs)
    assert torch.equal(back, weight)
    assert torch.equal(
        rotary_layout.convert_rotary_layout(weight, heads=heads, src="half", dst="half", rotary_width=2 * pairs), weight
    )


def test_the_result_is_a_new_tensor_through_which_gradients_flow() -> None:
    weight = normal(8, 3).requires_grad_()
    found = rotary_layout.convert_rotary_layout(weight, heads=2, src="half", dst="half")
    assert found.data_ptr() != weight.data_ptr()
    rotary_layout.convert_rotary_layout(weight, heads=2, src="interleaved", dst="half")[1].sum().backward()
    assert weight.grad is not None
    assert weight.grad[2].tolist() == [1, 1, 1]
    assert int(weight.grad.count_nonzero()) == 3


def test_invalid_arguments_are_rejected() -> None:
    w = normal(8, 3)
    with pytest.raises(
        EncodingError, match="convert_rotary_layout, src: layout must be 'half' or 'interleaved', got 'neox'"
    ):
        rotary_layout.convert_rotary_layout(w, heads=2, src="neox", dst="half")  # type: ignore[arg-type]
    with pytest.raises(
        EncodingError, match="convert_rotary_layout, dst: layout must be 'half' or 'interleaved', got None"
    ):
        rotary_layout.convert_rotary_layout(w, heads=2, src="half", dst=None)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="convert_rotary_layout: heads must be an integer, 1 or more, got 0"):
        rotary_layout.convert_rotary_layout(w, heads=0, src="half", dst="interleaved")
    with pytest.raises(
        EncodingError, match=r"convert_rotary_layout: weight must be floating \[3 \* head_width, in\] or a bias, got"
    ):
        rotary_layout.convert_rotary_layout(w, heads=3, src="half", dst="interleaved")
    with pytest.raises(EncodingError, match=r"weight must be floating .* got torch.int8 \[8, 3\]"):
        rotary_layout.convert_rotary_layout(w.to(torch.int8), heads=2, src="half", dst="interleaved")
    with pytest.raises(EncodingError, match=r"weight must be floating .* got torch.float64 \[2, 4, 3\]"):
        rotary_layout.convert_rotary_layout(w.view(2, 4, 3), heads=2, src="half", dst="interleaved")
    with pytest.raises(
        EncodingError, match=r"convert_rotary_layout: head_width \(rows / heads\) must be an even integer"
    ):
        rotary_layout.convert_rotary_layout(normal(6, 3), heads=2, src="half", dst="interleaved")
    with pytest.raises(
        EncodingError, match=r"convert_rotary_layout: rotary_width must be at most 4 \(rows / heads\), got 6"
    ):
        rotary_layout.convert_rotary_layout(w, heads=2, src="half", dst="interleaved", rotary_width=6)
    for bad in (3, 0, True):
        with pytest.raises(
            EncodingError, match="convert_rotary_layout: rotary_width must be an even integer, 2 or more, got"
        ):
            rotary_layout.convert_rotary_layout(w, heads=2, src="half", dst="interleaved", rotary_width=bad)
