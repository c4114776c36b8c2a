"""What holds for every registered encoding."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orderproof import encodings, positions
from orderproof.blocks import fingerprint_block
from orderproof.encodings import Claims, PositionalEncoding, Sizes
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import (
    HEADS,
    WIDTH,
    apply,
    build,
    call,
    content_of,
    every_encoding,
    every_encoding_and_mask,
    every_mask,
    hooks,
    normal,
    operands,
    placed,
    tolerance,
    usable,
)


def subclasses_in_files() -> set[type[PositionalEncoding]]:
    found = set()
    files = [f for f in pkgutil.iter_modules(encodings.__path__) if not f.name.startswith("_") and not f.ispkg]
    for file in files:
        for _, value in inspect.getmembers(
            importlib.import_module(f"{encodings.__name__}.{file.name}"), inspect.isclass
        ):
            if issubclass(value, PositionalEncoding) and value.__module__.endswith(f".{file.name}"):
                found.add(value)
    return found


def test_every_encoding_in_the_folder_is_registered_and_exported() -> None:
    registered = {encodings.get(name) for name in encodings.names()}
    assert subclasses_in_files() == registered
    assert all(getattr(encodings, encoding.__name__) is encoding for encoding in registered)


@every_encoding
def test_it_knows_its_name_and_its_file_names_its_source(name: str) -> None:
    encoding = encodings.get(name)
    assert encoding.name == name
    assert "Source:" in (inspect.getmodule(encoding).__doc__ or "")


@every_encoding
@every_mask
def test_it_has_the_hook_of_its_site_and_no_other(name: str, causal: bool) -> None:
    encoding = build(name, causal=causal)
    own = hooks(encoding.claims)
    for hook in ("embed", "rotate", "bias", "score_mod", "values"):
        is_own = getattr(type(encoding), hook) is not getattr(PositionalEncoding, hook)
        assert is_own == (hook in own)
    x, heads, p = normal(1, 3, WIDTH), normal(1, HEADS, 3, 8), positions.arange(3)
    calls = {
        "embed": lambda: encoding.embed(x, p),
        "rotate": lambda: encoding.rotate(heads, heads, p),
        "bias": lambda: encoding.bias(p, p),
        "score_mod": lambda: encoding.score_mod(p, p),
        "values": lambda: encoding.values(heads @ heads.mT, p, p),
    }
    for hook in calls.keys() - set(own):
        with pytest.raises(EncodingError, match=f"{type(encoding).__name__} has no {hook}: "):
            calls[hook]()


@every_encoding
def test_its_claims_cannot_be_changed(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        build(name).claims.relative = True  # type: ignore[misc]


@every_encoding
def test_it_keeps_no_state(name: str) -> None:
    encoding = build(name)
    before = {key: value.clone() for key, value in encoding.state_dict().items()}
    attributes = dict(vars(encoding))
    first = apply(encoding, positions.arange(7))
    apply(encoding, positions.offset(20, 11))
    assert torch.equal(apply(encoding, positions.arange(7)), first)
    assert dict(vars(encoding)) == attributes
    assert not list(encoding.buffers())
    assert all(torch.equal(value, before[key]) for key, value in encoding.state_dict().items())


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
def test_it_answers_in_the_dtype_it_is_asked_in_and_rounds_once(name: str, dtype: torch.dtype) -> None:
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


@every_encoding
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_each_position_decides_alone(name: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(st.integers(0, 63), min_size=5, max_size=5), min_size=2, max_size=2))
    dtype = data.draw(st.sampled_from([torch.int64, torch.int32, torch.int16, torch.uint8]))
    encoding = build(name)
    p = torch.tensor(rows, dtype=dtype)
    both = apply(encoding, p)
    if encoding.claims.site == "none":
        assert torch.equal(both, torch.zeros(()))
        return
    for row in (0, 1):
        alone = apply(encoding, p[row])
        batch = 1 if both.dim() == 5 else 0
        mine, own = both.select(batch, row), alone.select(batch, min(row, alone.shape[batch] - 1))
        if encoding.claims.content:  # products of content, which torch may sum in another order for another batch
            allowed = tolerance(torch.float64, terms=WIDTH, scale=float(own.detach().abs().max()))
            assert (mine - own).abs().max() <= allowed
        else:
            assert torch.equal(mine, own)


@every_encoding
def test_positions_of_one_row_are_those_of_every_row(name: str) -> None:
    encoding, p = build(name), positions.offset(17, 5)
    once = apply(encoding, p)
    for rows in (p.unsqueeze(0), p.expand(2, 5)):
        found, own = torch.broadcast_tensors(apply(encoding, rows), once)
        if encoding.claims.content:  # products of content, which torch may sum in another order for another batch
            assert (found - own).abs().max() <= tolerance(torch.float64, terms=WIDTH, scale=float(own.detach().max()))
        else:
            assert torch.equal(found, own)


@every_encoding_and_mask
def test_it_is_relative_exactly_where_it_claims_to_be(name: str, causal: bool) -> None:
    block = fingerprint_block(name, causal=causal).double()
    x, claims = normal(2, 7, WIDTH), block.encoding.claims
    p = placed(block.encoding, positions.arange(7))
    # Each axis by a distance of its own.
    by = 23 + torch.arange(claims.ndim).view(-1, *[1] * (p.dim() - 1))
    shifted = (block(x, p + (23 if claims.ndim == 1 else by)) - block(x, p)).abs().max()
    if claims.relative:
        assert shifted < tolerance(torch.float64, terms=WIDTH * 30)
    else:
        assert shifted > 1e-3
    if claims.relative_within is not None:
        at_the_end, past = (block(x, p + claims.relative_within + by) for by in (-6, 2000))
        assert (at_the_end - block(x, p)).abs().max() < tolerance(torch.float64, terms=WIDTH * 30)
        assert (past - block(x, p)).abs().max() > 1e-3


@every_encoding
def test_it_is_blind_to_reversal_exactly_where_it_claims_symmetry(name: str) -> None:
    if not usable(name, causal=False):
        assert not build(name).claims.symmetric
        return
    block = fingerprint_block(name, causal=False).double()
    # Alike on all axes: in a picture seven tokens stand in one row, and columns may turn too slowly to be seen.
    x, p = normal(2, 7, WIDTH), placed(block.encoding, positions.arange(7), "text")
    reversed_ = block(x.flip(1), p) - block(x, p).flip(1)
    claims = block.encoding.claims
    if claims.symmetric and claims.relative:
        assert reversed_.abs().max() < tolerance(torch.float64, terms=WIDTH * 30)
    else:
        assert reversed_.abs().max() > 1e-3


@every_encoding_and_mask
def test_tokens_moved_with_their_positions_move_the_output(name: str, causal: bool) -> None:
    block = fingerprint_block(name, causal=causal).double()
    x, order = normal(2, 7, WIDTH), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    # Causal sight goes by the first axis, and by storage where that ties: let it tell all tokens apart.
    p = placed(block.encoding, positions.arange(7) * 8 ** (block.encoding.claims.ndim - 1))
    moved = block(x[:, order], p[..., order])
    assert (moved - block(x, p)[:, order]).abs().max() < tolerance(torch.float64, terms=WIDTH * 30)


@every_encoding
def test_order_matters_to_every_encoding_but_none(name: str) -> None:
    x = normal(2, 7, WIDTH)
    if usable(name, causal=False):
        block, order = fingerprint_block(name, causal=False).double(), torch.tensor([3, 0, 6, 1, 5, 2, 4])
        difference = block(x[:, order]) - block(x)[:, order]
    else:  # one causal layer without positions does not know the order of its prompt
        block, order = fingerprint_block(name, causal=True, layers=1).double(), torch.tensor([3, 0, 5, 1, 4, 2, 6])
        difference = (block(x[:, order]) - block(x))[:, -1]
    assert bool(difference.abs().max() < 1e-9) == (name == "none")


@every_encoding
def test_a_new_length_needs_no_python_branch(name: str) -> None:
    torch.compiler.reset()  # torch counts the encodings compiled before as recompilations of this one
    encoding = build(name)
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    compiled = torch.compile(call, backend=backend, fullgraph=True, dynamic=True)
    for tokens in (5, 9, 11):
        p, given = placed(encoding, positions.offset(17, tokens)), operands(encoding, tokens)
        found, expected = compiled(encoding, given, p), call(encoding, given, p)
        assert (
            torch.allclose(found, expected, rtol=1e-13, atol=1e-13)
            if encoding.claims.content
            else torch.equal(found, expected)
        )
    assert len(graphs) <= 1


@every_encoding
def test_it_runs_on_meta_tensors(name: str) -> None:
    encoding = build(name).to("meta")
    given = tuple(x.to("meta") for x in operands(encoding, 5))
    found = call(encoding, given, placed(encoding, positions.arange(5, device="meta")))
    real = call(build(name), operands(encoding, 5), placed(encoding, positions.arange(5)))
    assert found.is_meta
    assert found.shape == real.shape


@every_encoding
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (torch.arange(5.0), "positions: expected an integer dtype, got torch.float32"),
        (torch.arange(5) - 1, "positions: expected no negative position, got -1"),
        (torch.zeros(2, 2, 2, 5, dtype=torch.int64), "positions: expected shape"),
    ],
    ids=["floating", "negative", "four dimensions"],
)
def test_bad_positions_are_refused_in_one_line(name: str, bad: torch.Tensor, message: str) -> None:
    encoding = build(name)
    if encoding.claims.site == "none":
        with pytest.raises(PositionError, match=message):
            positions.check(bad)
        return
    with pytest.raises(PositionError, match=message) as caught:
        apply(encoding, bad)
    assert "\n" not in str(caught.value)


def test_a_class_that_does_not_say_how_it_is_built_is_an_error() -> None:
    class Unfinished(PositionalEncoding):
        claims = Claims(site="none", relative=True, symmetric=True)

    with pytest.raises(NotImplementedError, match="Unfinished does not say how it is built"):
        Unfinished.for_model(Sizes(width=8, heads=2, causal=True))


@every_encoding
def test_its_text_names_its_arguments(name: str) -> None:
    assert repr(build(name)).startswith(encodings.get(name).__name__ + "(")


@pytest.mark.parametrize("name", [name for name in encodings.names() if build(name).claims.content])
def test_content_that_does_not_fit_is_refused(name: str) -> None:
    encoding = build(name)
    p, given = positions.arange(5), operands(encoding, 5)
    content, owner = content_of(encoding, given, p), type(encoding).__name__
    bad = [
        (None, "content must be the Content of queries and keys, got None"),
        (dataclasses.replace(content, q=content.q[0]), r"content.q must be floating \[batch, "),
        (dataclasses.replace(content, k=content.k.long()), r"content.k must be floating .*, got torch.int64"),
    ]
    if encoding.claims.state == "notes":
        newest = content.notes[:, :, -1:]  # torch would spread it over all keys
        for notes, came in ((None, "none"), (newest, "torch.float64"), (content.notes[..., :0], "torch.float64")):
            message = rf"notes must be \[2, {HEADS}, 5, \d+\], one for every key, got {came}"
            bad.append((dataclasses.replace(content, notes=notes), message))
    for wrong, message in bad:
        with pytest.raises(EncodingError, match=f"{owner}: {message}") as caught:
            encoding.bias(p, p, content=wrong)
        assert "\n" not in str(caught.value)


@every_encoding
def test_it_makes_notes_exactly_where_it_claims_to(name: str) -> None:
    encoding, x = build(name), normal(2, 5, WIDTH)
    notes = encoding.notes(x)
    assert (notes is not None) == (encoding.claims.state == "notes")
    if notes is not None:
        assert notes.shape[:3] == (2, HEADS, 5)
        changed = x.clone()
        changed[:, 2] = normal(2, WIDTH, seed=9)
        told = (encoding.notes(changed) - notes).abs().amax((0, 1, 3)) > 1e-6
        assert told.tolist() == [False, False, True, False, False]


@every_encoding
def test_values_are_told_apart_exactly_where_it_claims_to_add_to_them(name: str) -> None:
    encoding = build(name).double()
    if not encoding.claims.values:
        return
    p, weights = positions.arange(5), normal(2, HEADS, 5, 5).softmax(-1)
    found = encoding.values(weights, p, p)
    assert found.shape == (2, HEADS, 5, WIDTH // HEADS)
    assert torch.equal(found, encoding.values(weights, p + 9, p + 9))
    assert (found - encoding.values(weights.flip(-1), p, p)).abs().max() > 1e-3
