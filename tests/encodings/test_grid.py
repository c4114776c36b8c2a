from __future__ import annotations

import pytest
import torch
from transformers import Swinv2Config
from transformers.models.swin.modeling_swin import SwinRelativePositionBias
from transformers.models.swinv2.modeling_swinv2 import Swinv2SelfAttention

from orderproof import positions
from orderproof.encodings import ModelSizes, SwinBias, SwinV2Bias, attention
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import HEAD_WIDTH, HEADS, build, normal


@pytest.mark.parametrize("window", [(4, 4), (3, 5), (1, 6)])
def test_the_table_is_that_of_transformers_swin(window: tuple[int, int]) -> None:
    theirs = SwinRelativePositionBias(4, window).double()
    ours = SwinBias(4, window=window).double()
    torch.nn.init.normal_(ours.weight)
    theirs.load_state_dict({"relative_position_bias_table": ours.weight})
    p = positions.grid(*window)
    assert torch.equal(ours.bias(p, p, dtype=torch.float64)[0], theirs().squeeze(0))


@pytest.mark.parametrize(("window", "trained"), [(4, 0), (4, 8), (7, 3)])
def test_the_network_is_that_of_transformers_swin_v2(window: int, trained: int) -> None:
    torch.manual_seed(0)
    layer = Swinv2SelfAttention(Swinv2Config(), 16, 4, (window, window), (trained, trained)).double()
    # Their table is made in float32 and cast to the network's dtype: recompute it in float64.
    kept = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        layer.relative_coords_table = layer.create_coords_table_and_index()[0].double()
    finally:
        torch.set_default_dtype(kept)
    ours = SwinV2Bias(4, window=(window, window), trained=(trained, trained) if trained else None).double()
    network = layer.continuous_position_bias_mlp
    ours.inner.load_state_dict(network[0].state_dict())
    ours.outer.load_state_dict(network[2].state_dict())
    table = network(layer.relative_coords_table).view(-1, 4)
    n = window * window
    theirs = 16 * torch.sigmoid(table[layer.relative_position_index.view(-1)].view(n, n, 4).permute(2, 0, 1))
    p = positions.grid(window, window)
    # Their offsets pass through .float(): what differs is one rounding to float32.
    assert torch.allclose(ours.bias(p, p, dtype=torch.float64)[0], theirs, atol=1e-5)


@pytest.mark.parametrize("name", ["grid_table", "grid_mlp"])
def test_each_offset_has_one_number_at_any_position(name: str) -> None:
    encoding, p = build(name), positions.grid(4, 4)
    bias = encoding.bias(p, p, dtype=torch.float64).detach()[0, 0]
    by_offset: dict[tuple[int, int], set[float]] = {}
    for i in range(16):
        for j in range(16):
            by_offset.setdefault((i // 4 - j // 4, i % 4 - j % 4), set()).add(float(bias[i, j]))
    assert len(by_offset) == 49
    assert all(len(numbers) == 1 for numbers in by_offset.values())
    assert len(set.union(*by_offset.values())) == 49


@pytest.mark.parametrize("name", ["grid_table", "grid_mlp"])
def test_offsets_outside_the_table_are_an_error_on_every_path(name: str) -> None:
    encoding = build(name).requires_grad_(False)  # a window of 8 x 8
    near, far = torch.tensor([[0], [0]]), torch.tensor([[0], [8]])
    for hook in (encoding.bias, encoding.score_mod):
        with pytest.raises(EncodingError, match="expected positions at most 7 columns apart, got 8"):
            hook(near, far)
        with pytest.raises(EncodingError, match="rows apart, got 9"):
            hook(torch.tensor([[9], [0]]), near)
    torch.compiler.reset()
    compiled = torch.compile(encoding.bias, backend="eager", fullgraph=True)
    inside = torch.tensor([[0], [7]])
    assert torch.equal(compiled(near, inside), encoding.bias(near, inside))
    with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
        compiled(near, far)


def test_score_mod_adds_the_bias_score_by_score() -> None:
    encoding = build("grid_table").requires_grad_(False)
    q, k = torch.stack([positions.grid(2, 3), positions.grid(3, 2)], dim=1), positions.grid(2, 2)
    score = normal(2, HEADS, 6, 4, dtype=torch.float32)
    index = torch.meshgrid(*(torch.arange(n) for n in score.shape), indexing="ij")
    assert torch.equal(encoding.score_mod(q, k)(score, *index), score + encoding.bias(q, k))


def test_both_get_gradients_through_attention() -> None:
    q, k, v = (normal(2, HEADS, 6, HEAD_WIDTH, seed=s) for s in range(3))
    for name in ("grid_table", "grid_mlp"):
        encoding = build(name).double()
        found = attention(q, k, v, encoding=encoding, q_positions=positions.grid(2, 3), causal=False)
        found.square().sum().backward()
        assert all(parameter.grad.abs().max() > 0 for parameter in encoding.parameters())


def test_a_model_of_a_given_length_gets_a_square_window() -> None:
    for length, side in ((1, 1), (49, 7), (50, 8)):
        sizes = ModelSizes(width=8, heads=2, causal=False, length=length)
        assert SwinBias.for_model(sizes).window == (side, side)
        assert SwinV2Bias.for_model(sizes).trained == (side, side)
    with pytest.raises(EncodingError, match="SwinBias: a table needs a length; pass it"):
        SwinBias.for_model(ModelSizes(width=8, heads=2, causal=False))


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match=r"SwinBias: window must be \(rows, columns\), got 7"):
        SwinBias(2, window=7)
    with pytest.raises(EncodingError, match=r"SwinV2Bias: trained\[1\] must be an integer, 1 or more, got 0"):
        SwinV2Bias(2, window=(2, 2), trained=(2, 0))
    with pytest.raises(PositionError, match=r"q_positions: expected shape \[2, token\] or \[2, batch, token\]"):
        build("grid_table").bias(positions.arange(3), positions.grid(1, 3))
