"""Frequencies that depend on the context length of a row, which is an input."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from orderproof import encodings, positions
from orderproof.blocks import Transformer
from orderproof.encodings import ALiBi, Rotary, Schedule, attention, schedules
from orderproof.errors import EncodingError
from tests.encodings.examples import HEAD_WIDTH, HEADS, build, normal, placed

BY_LENGTH = pytest.mark.parametrize(
    "schedule",
    [
        schedules.DynamicNTK(4.0, 8, maximum=64),
        schedules.LongRope((1.0, 1.5, 2.0, 3.0), (4.0, 5.0, 7.0, 9.0), 8, 64, short_mscale=1.0, long_mscale=1.5),
    ],
    ids=lambda schedule: type(schedule).__name__,
)


def qkv(tokens: int, *, rows: int = 2, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    return [normal(rows, 2, tokens, 8, seed=seed, dtype=dtype) for seed in range(3)]


@BY_LENGTH
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("rotary_width", [None, 8])
def test_each_row_is_rotated_at_the_frequencies_of_its_length(
    schedule: Schedule, layout: str, rotary_width: int | None
) -> None:
    width = 8 if rotary_width is None else 12
    q, k = normal(4, 2, 5, width, seed=1), normal(4, 2, 5, width, seed=2)
    lengths, p = [5, 8, 9, 40], positions.offset(torch.tensor([0, 3, 4, 30]), 5)
    rotary = Rotary(width, layout=layout, rotary_width=rotary_width, schedule=schedule)
    found = rotary.rotate(q, k, p, lengths=torch.tensor(lengths))
    for row, length in enumerate(lengths):
        spectra = schedule.spectrum_at(torch.tensor([length]), width=8, base=10_000.0)
        spectrum = encodings.Spectrum(
            frequencies=tuple(spectra.frequencies[0].tolist()), attention_scaling=float(spectra.attention_scaling[0])
        )
        fixed = Rotary(width, layout=layout, rotary_width=rotary_width, schedule=lambda width, base, s=spectrum: s)
        for x, y in zip((q, k), found, strict=True):
            assert torch.allclose(y[row], fixed.rotate(x, x, p)[0][row], atol=1e-13)


@BY_LENGTH
def test_the_default_length_is_the_declared_maximum(schedule: Schedule) -> None:
    rotary, (q, k, _), p = Rotary(8, schedule=schedule), qkv(5), positions.offset(2, 5)
    assert rotary.claims.decode_state == "length"
    frozen, at_maximum = rotary.rotate(q, k, p), rotary.rotate(q, k, p, lengths=64)
    assert all(torch.allclose(a, b, atol=1e-13) for a, b in zip(frozen, at_maximum, strict=True))
    assert not torch.allclose(rotary.rotate(q, k, p, lengths=8)[0], frozen[0], atol=1e-3)


@BY_LENGTH
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_decoding_is_one_forward_at_the_same_declared_length(schedule: Schedule, dtype: torch.dtype) -> None:
    rotary, (q, k, v), p = Rotary(8, schedule=schedule), qkv(12, dtype=dtype), positions.arange(12)
    options = {"encoding": rotary, "causal": True, "lengths": torch.tensor([12, 12]), "backend": "eager"}
    whole = attention(q, k, v, q_positions=p, **options)
    rotated = rotary.rotate(q, k, p, lengths=12)
    for n in range(12):
        here, so_far = slice(n, n + 1), slice(0, n + 1)
        step = attention(
            q[:, :, here], k[:, :, so_far], v[:, :, so_far], q_positions=p[here], k_positions=p[so_far], **options
        )
        tolerance = 8 * torch.finfo(dtype).eps
        assert (step - whole[:, :, here]).abs().max() <= tolerance * v.abs().max()
        # What is rotated is the same to the last bit; only sums over keys may differ in their order.
        q_step, k_step = rotary.rotate(q[:, :, here], k[:, :, so_far], p[here], p[so_far], lengths=12)
        assert torch.equal(q_step, rotated[0][:, :, here])
        assert torch.equal(k_step, rotated[1][:, :, so_far])


@BY_LENGTH
def test_a_row_is_the_same_alone_and_in_a_batch_with_longer_rows(schedule: Schedule) -> None:
    rotary, (q, k, _), p = Rotary(8, schedule=schedule), qkv(6, rows=3), positions.arange(6)
    together = rotary.rotate(q, k, p, lengths=torch.tensor([6, 60, 9]))
    for row, length in enumerate((6, 60, 9)):
        for lengths in (length, torch.tensor([length])):
            alone = rotary.rotate(q[row : row + 1], k[row : row + 1], p, lengths=lengths)
            assert all(torch.equal(a[0], b[row]) for a, b in zip(alone, together, strict=True))


@BY_LENGTH
def test_decoding_equals_one_forward_pass_alone_and_in_a_batch_with_a_longer_row(schedule: Schedule) -> None:
    torch.manual_seed(0)
    block, x = Transformer(16, 2, 2, encoding=Rotary(8, schedule=schedule), causal=True).double(), normal(2, 12, 16)
    lengths = torch.tensor([12, 50])
    with torch.no_grad():
        whole, caches = block(x, lengths=lengths), block.new_caches(2, 12)
        steps = [block(part, caches=caches, lengths=lengths) for part in x.split([5, 1, 1, 5], dim=1)]
        assert torch.allclose(torch.cat(steps, dim=1), whole, atol=1e-13)
        for row in (0, 1):
            alone = block(x[row : row + 1], lengths=int(lengths[row]))
            assert torch.allclose(alone[0], whole[row], atol=1e-13)
        short = x[:, :8]
        assert not torch.allclose(block(short, lengths=8), block(short, lengths=50), atol=1e-3)


@BY_LENGTH
def test_a_score_depends_on_the_distance_only_within_one_length(schedule: Schedule) -> None:
    rotary, (q, k, _) = Rotary(8, schedule=schedule), qkv(4)
    scores = []
    for shift in (0, 17):
        p, s = positions.offset(shift, 4), positions.offset(shift + 3, 4)
        rotated = rotary.rotate(q, k, p, s, lengths=torch.tensor([24, 50]))
        scores.append(rotated[0] @ rotated[1].mT)
    assert torch.allclose(*scores, atol=1e-12)


@BY_LENGTH
@pytest.mark.parametrize("kind", ["one", "each", "none"])
def test_a_new_length_needs_no_python_branch(schedule: Schedule, kind: str) -> None:
    torch.compiler.reset()
    rotary, graphs = Rotary(8, schedule=schedule), []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    def turn(q: torch.Tensor, k: torch.Tensor, p: torch.Tensor, lengths: object) -> tuple[torch.Tensor, ...]:
        return rotary.rotate(q, k, p, lengths=lengths)

    compiled = torch.compile(turn, backend=backend, fullgraph=True, dynamic=True)
    for tokens, length in ((5, 7), (9, 63), (11, 33)):
        lengths = {"one": length, "each": torch.tensor([length, 11]), "none": None}[kind]
        q, k, _ = qkv(tokens)
        arguments = (q, k, positions.arange(tokens), lengths)
        for ours, plain in zip(compiled(*arguments), turn(*arguments), strict=True):
            assert torch.allclose(ours, plain, atol=1e-14)
    assert len(graphs) == 1


@BY_LENGTH
def test_meta_tensors_autocast_and_gradients(schedule: Schedule) -> None:
    rotary, p, lengths = Rotary(8, schedule=schedule), positions.arange(5), torch.tensor([5, 50])
    empty = torch.empty(2, 2, 5, 8, device="meta")
    for given in (9, lengths.to("meta")):
        assert rotary.rotate(empty, empty, p.to("meta"), lengths=given)[0].shape == empty.shape
    q, k, _ = qkv(5, dtype=torch.float32)
    plain = rotary.rotate(q, k, p, lengths=lengths)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(rotary.rotate(q, k, p, lengths=lengths)[0], plain[0])
    out = torch.empty_like(q), torch.empty_like(k)
    assert rotary.rotate(q, k, p, lengths=lengths, out=out)[0] is out[0]
    assert torch.equal(out[1], plain[1])
    rotary.rotate(q.requires_grad_(), k, p, lengths=lengths)[0].square().sum().backward()
    gains = schedule.spectrum_at(lengths, width=8, base=10_000.0).attention_scaling.float()
    assert torch.allclose(q.grad, 2 * q.detach() * gains.square()[:, None, None, None], atol=1e-5)


@BY_LENGTH
def test_it_can_be_copied_and_pickled(schedule: Schedule) -> None:
    rotary, (q, k, _), p = Rotary(8, schedule=schedule), qkv(5), positions.arange(5)
    for other in (copy.deepcopy(rotary), pickle.loads(pickle.dumps(rotary))):
        assert torch.equal(other.rotate(q, k, p, lengths=9)[0], rotary.rotate(q, k, p, lengths=9)[0])
        assert other.claims == rotary.claims


@pytest.mark.parametrize("name", [name for name in encodings.names() if build(name).claims.site == "rotate"])
def test_a_rotation_that_does_not_depend_on_the_length_rejects_lengths(name: str) -> None:
    encoding, x = build(name), normal(2, HEADS, 5, HEAD_WIDTH)
    owner = type(encoding).__name__
    with pytest.raises(EncodingError, match=f"{owner}: expected no lengths, its claims.decode_state is not 'length'"):
        encoding.rotate(x, x, placed(encoding, positions.arange(5)), lengths=9)


def test_other_encodings_reject_lengths() -> None:
    (q, k, v), p = qkv(5), positions.arange(5)
    with pytest.raises(EncodingError, match="ALiBi: expected no lengths"):
        attention(q, k, v, encoding=ALiBi(2), q_positions=p, causal=True, lengths=9)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (0, "Rotary: lengths must be an integer, 1 or more, or one per row, got 0"),
        (2.5, "Rotary: lengths must be an integer, 1 or more, or one per row, got 2.5"),
        (True, "Rotary: lengths must be an integer, 1 or more, or one per row, got True"),
        (torch.tensor([3, 0]), "Rotary: lengths must be 1 or more, got 0"),
        (torch.tensor([3]), r"Rotary: lengths must be integers of shape \[2\], one per row, got torch.int64 \[1\]"),
        (torch.tensor([3.0, 4.0]), r"Rotary: lengths must be integers of shape \[2\], one per row, got torch.float32"),
        (torch.tensor([3, 4], device="meta"), "Rotary: lengths must be on cpu, got meta"),
    ],
)
def test_bad_lengths_are_rejected(lengths: object, message: str) -> None:
    (q, k, _), p = qkv(5), positions.arange(5)
    with pytest.raises(EncodingError, match=message):
        Rotary(8, schedule=schedules.DynamicNTK(2.0, 8)).rotate(q, k, p, lengths=lengths)


@pytest.mark.parametrize("lengths", [6, torch.tensor([9, 6])])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_position_at_or_above_the_length_of_its_row_is_rejected(lengths: object, compiled: bool) -> None:
    torch.compiler.reset()
    rotary, (q, k, _) = Rotary(8, schedule=schedules.DynamicNTK(2.0, 8)), qkv(5)

    def turn(p: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return rotary.rotate(q, k, p, s, lengths=lengths)[0]

    run = torch.compile(turn, backend="eager", fullgraph=True) if compiled else turn
    low, high = positions.offset(1, 5), positions.offset(2, 5)
    assert run(low, low).shape == q.shape
    for name, p, s in (("q_positions", high, low), ("k_positions", low, high)):
        message = f"Rotary: lengths must be above all positions, got a row with {name} at or above its length"
        with pytest.raises(RuntimeError if compiled else EncodingError, match=message):
            run(p, s)


@BY_LENGTH
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_position_past_the_default_length_needs_lengths(
    schedule: Schedule, compiled: bool, dtype: torch.dtype
) -> None:
    torch.compiler.reset()
    rotary, (q, k, _) = Rotary(8, schedule=schedule), qkv(5, dtype=dtype)

    def turn(p: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return rotary.rotate(q, k, p, s)[0]

    run = torch.compile(turn, backend="eager", fullgraph=True) if compiled else turn
    low, high = positions.offset(59, 5), positions.offset(60, 5)
    assert run(low, low).shape == q.shape
    for name, p, s in (("q_positions", high, low), ("k_positions", low, high)):
        wanted = f"^Rotary: {name} must be below 64, the schedule's default length, got (64|a larger one); pass lengths"
        with pytest.raises(RuntimeError if compiled else EncodingError, match=wanted):
            run(p, s)
    assert rotary.rotate(q, k, high, high, lengths=65)[0].shape == q.shape


def test_the_default_length_of_a_schedule_is_its_maximum() -> None:
    assert schedules.DynamicNTK(4.0, 8).default_length == 32
    assert schedules.DynamicNTK(4.0, 8, maximum=64).default_length == 64
    assert schedules.LongRope((1.0,), (2.0,), 8, 64).default_length == 64
