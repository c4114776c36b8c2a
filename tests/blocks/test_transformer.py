from __future__ import annotations

import re

import pytest
import torch

from orderproof import positions
from orderproof.blocks import (
    AttentionInputs,
    Decoder,
    Encoder,
    Transformer,
    TransformerLayer,
    TransformerStack,
    fingerprint_model,
)
from orderproof.encodings import ALiBi, Claims, NoEncoding, PositionalEncoding, Rotary
from orderproof.errors import EncodingError, PositionError, UsageError
from tests.encodings.examples import (
    SOON,
    WIDTH,
    every_encoding,
    every_encoding_and_mask,
    exports,
    normal,
    one_encoding_of_each_site,
    placed,
    tolerance,
    usable_encodings,
)

EXACT = tolerance(torch.float64, terms=WIDTH * 30)


@every_encoding_and_mask
def test_the_fingerprint_block_is_the_same_for_the_same_seed(name: str, causal: bool) -> None:
    state = torch.get_rng_state()
    blocks = [fingerprint_model(name, causal=causal, seed=seed) for seed in (3, 3, 4)]
    assert torch.equal(torch.get_rng_state(), state)
    x = normal(2, 7, WIDTH, dtype=torch.float32)
    first, same, other = (block(x) for block in blocks)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert len(blocks[0].stack.layers) == 2
    assert not blocks[0].training


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SOON else pytest.mark.slow)
        for name, causal in usable_encodings
        if not causal
    ],
)
@exports
def test_an_encoder_exports_and_the_graph_gives_the_same_numbers(name: str) -> None:
    # One layer: a second one exports the same code again. A decoder is exported below.
    block, x = fingerprint_model(name, causal=False, layers=1), normal(2, 7, WIDTH, dtype=torch.float32)
    with torch.no_grad():
        program = torch.export.export(block, (x,), strict=False)
        assert torch.allclose(program.module()(x), block(x), atol=1e-5)
    assert_no_value_is_read(program)


def assert_no_value_is_read(program: torch.export.ExportedProgram) -> None:
    """An exported program has no operator that reads a value."""
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert not {target for target in targets if "aten.item" in target or "_assert_scalar" in target}


@one_encoding_of_each_site
def test_it_compiles_without_a_break(name: str) -> None:
    torch.compiler.reset()  # torch counts the models compiled before as recompilations of this one
    block, x = fingerprint_model(name, causal=True, layers=1), normal(2, 7, WIDTH, dtype=torch.float32)
    with torch.no_grad():
        compiled = torch.compile(block, backend="eager", fullgraph=True)
        assert torch.allclose(compiled(x), block(x), atol=1e-5)


@exports
def test_the_number_of_tokens_may_stay_open_in_an_export() -> None:
    block = fingerprint_model("rotary", causal=True)
    shapes = ({1: torch.export.Dim("token", min=2, max=50)},)
    with torch.no_grad():
        example = normal(2, 7, WIDTH, dtype=torch.float32)
        program = torch.export.export(block, (example,), dynamic_shapes=shapes, strict=False)
        x = normal(2, 11, WIDTH, dtype=torch.float32)
        assert torch.allclose(program.module()(x), block(x), atol=1e-5)


@one_encoding_of_each_site
@exports
def test_a_decoder_exports_with_positions_and_padding_as_inputs(name: str) -> None:
    block, x = fingerprint_model(name, causal=True, layers=1), normal(2, 7, WIDTH, dtype=torch.float32)
    real = torch.arange(7) >= torch.tensor([[0], [3]])
    inputs = {"positions": placed(block.encoding, positions.from_mask(real)), "padding_mask": real}
    with torch.no_grad():
        program = torch.export.export(block, (x,), inputs, strict=False)
        assert torch.allclose(program.module()(x, **inputs), block(x, **inputs), atol=1e-5)
    assert_no_value_is_read(program)


@every_encoding
def test_no_token_of_a_causal_model_sees_a_later_one(name: str) -> None:
    block, x = fingerprint_model(name, causal=True).double(), normal(2, 7, WIDTH)
    for cut in range(1, 7):
        changed = x.clone()
        changed[:, cut:] = normal(2, 7 - cut, WIDTH, seed=9)
        difference = (block(changed) - block(x)).abs().amax((0, 2))
        assert difference[:cut].max() == 0
        assert difference[cut:].min() > 1e-3


@every_encoding
@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 1, 3], [8, 1]], ids=["one by one", "chunks", "prompt and one"])
def test_decoding_with_a_cache_equals_one_forward_pass(name: str, chunks: list[int]) -> None:
    block, x = fingerprint_model(name, causal=True).double(), normal(2, 9, WIDTH)
    with torch.no_grad():
        caches = block.new_caches(2, 9)
        found = torch.cat([block(part, caches=caches) for part in x.split(chunks, dim=1)], dim=1)
        assert (found - block(x)).abs().max() < EXACT
        assert all(cache.length == 9 for cache in caches)


@every_encoding
def test_decoding_a_left_padded_row_equals_decoding_it_alone(name: str) -> None:
    block, x = fingerprint_model(name, causal=True).double(), normal(2, 9, WIDTH)
    real = torch.arange(6) >= torch.tensor([[0], [2]])
    with torch.no_grad():
        caches = block.new_caches(2, 9)
        prompt = block(x[:, :6], padding_mask=real, caches=caches)
        steps = [block(x[:, i : i + 1], caches=caches) for i in range(6, 9)]
        found = torch.cat([prompt, *steps], dim=1)
        assert (found[1:, 2:] - block(x[1:, 2:])).abs().max() < EXACT
        assert (found[:1] - block(x[:1])).abs().max() < EXACT


@every_encoding
@pytest.mark.parametrize("chunks", [[3, 4, 2], [1] * 9, [6, 1, 1, 1]], ids=["chunks", "one by one", "prompt and ones"])
def test_a_padded_prompt_may_come_in_chunks(name: str, chunks: list[int]) -> None:
    block, x = fingerprint_model(name, causal=True).double(), normal(2, 9, WIDTH)
    real = torch.arange(9) >= torch.tensor([[1], [4]])
    with torch.no_grad():
        caches = block.new_caches(2, 9)
        parts = zip(x.split(chunks, dim=1), real.split(chunks, dim=1), strict=True)
        found = torch.cat([block(part, padding_mask=mask, caches=caches) for part, mask in parts], dim=1)
        assert (found - block(x, padding_mask=real))[real].abs().max() < EXACT


@every_encoding_and_mask
def test_padding_on_either_side_changes_no_real_token(name: str, causal: bool) -> None:
    block, x = fingerprint_model(name, causal=causal).double(), normal(1, 9, WIDTH)
    places = torch.arange(9)[None]
    for real in (places >= 4, places < 5):
        alone = block(x[real][None])
        assert (block(x, padding_mask=real)[real] - alone).abs().max() < EXACT


def test_a_cropped_cache_continues_without_the_removed_tokens() -> None:
    block, x = fingerprint_model("rotary", causal=True).double(), normal(2, 6, WIDTH)
    with torch.no_grad():
        caches = block.new_caches(2, 6)
        block(torch.cat([x[:, :3], normal(2, 2, WIDTH, seed=8)], dim=1), caches=caches)
        for cache in caches:
            cache.crop(3)
        assert (block(x[:, 3:], caches=caches) - block(x)[:, 3:]).abs().max() < EXACT


def test_backends_norms_and_orders_are_used() -> None:
    x, outputs = normal(2, 5, WIDTH), []
    for options in ({}, {"norm": "rms"}, {"norm_placement": "after"}, {"hidden": 16}):
        for backend in ("sdpa", "eager"):
            torch.manual_seed(0)
            outputs.append(Transformer(WIDTH, 4, 2, causal=True, backend=backend, **options).double()(x))
    for sdpa, eager in zip(outputs[::2], outputs[1::2], strict=True):
        assert (sdpa - eager).abs().max() < EXACT
    assert all((outputs[0] - other).abs().max() > 1e-3 for other in outputs[2::2])


def test_an_encoder_sees_ahead_and_a_decoder_does_not() -> None:
    x, p = normal(1, 4, WIDTH), positions.arange(4)
    changed = x.clone()
    changed[:, 3] = normal(1, WIDTH, seed=9)
    for stack, sees in ((Encoder, True), (Decoder, False)):
        torch.manual_seed(0)
        block = stack(WIDTH, 4, 2).double()
        difference = block(changed, p, encoding=NoEncoding()) - block(x, p, encoding=NoEncoding())
        assert bool(difference[:, 0].abs().max() > 1e-6) is sees


def test_words_in_scores_out() -> None:
    model = Transformer(WIDTH, 4, 1, causal=True, vocabulary=11)
    words = torch.tensor([[1, 2, 3], [3, 2, 1]])
    assert model(words).shape == (2, 3, 11)
    with pytest.raises(
        UsageError, match=r"x: expected words as integers \[batch, token\], got torch.float32 \[1, 3, 32\]"
    ):
        model(torch.zeros(1, 3, WIDTH))
    with pytest.raises(UsageError, match="words need vocabulary="):
        Transformer(WIDTH, 4, 1, causal=True)(words)


def test_all_layers_share_one_encoding() -> None:
    model = Transformer(WIDTH, 4, 3, encoding="t5", causal=True)
    assert [key for key in model.state_dict() if "encoding" in key] == ["encoding.weight"]


def test_an_encoding_instance_is_used_directly() -> None:
    rotary = Rotary(8, base=77.0)
    assert Transformer(WIDTH, 4, 1, encoding=rotary, causal=True).encoding is rotary
    with pytest.raises(UsageError, match="length: expected none with an encoding instance"):
        Transformer(WIDTH, 4, 1, encoding=ALiBi(4), causal=True, length=8)


def test_positions_of_several_axes_are_required() -> None:
    class Flat(PositionalEncoding):
        claims = Claims(site="none", relative=True, symmetric=True, ndim=2)

    block, x, p = (
        Transformer(WIDTH, 4, 2, encoding=Flat(), causal=True).double(),
        normal(2, 6, WIDTH),
        positions.grid(2, 3),
    )
    with pytest.raises(PositionError, match="positions: expected for an encoding of 2 axes, got none; pass them"):
        block(x)
    with torch.no_grad():
        caches = block.new_caches(2, 6)
        found = [block(x[:, i : i + 3], p[:, i : i + 3], caches=caches) for i in (0, 3)]
        assert (torch.cat(found, dim=1) - block(x, p)).abs().max() < EXACT


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="LearnedAbsolute: a table needs a length; pass it"):
        Transformer(WIDTH, 4, 1, encoding="learned", causal=True)
    with pytest.raises(UsageError, match="layers: expected 1 or more, got 0"):
        TransformerStack(WIDTH, 4, 0, causal=True)
    block = fingerprint_model("none", causal=True)
    message = re.escape("caches: expected one per layer, 2, got 1")
    with pytest.raises(UsageError, match=message), torch.no_grad():
        block(torch.zeros(1, 1, WIDTH), caches=block.new_caches(1, 4)[:1])


def test_a_layer_keeps_the_shape() -> None:
    layer = TransformerLayer(WIDTH, 4, causal=True, hidden=16)
    inputs = AttentionInputs(encoding=NoEncoding(), positions=positions.arange(5))
    assert layer(torch.zeros(2, 5, WIDTH), inputs).shape == (2, 5, WIDTH)
