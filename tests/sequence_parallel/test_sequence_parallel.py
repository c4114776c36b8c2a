"""Rows split over two ranks give the outputs and gradients of one process.

All ranks are started once, for all cases. Outputs are held to `tolerance` for their dtype, which is rounding in sums of
this size; gradients to 1e-6 of the largest, in float64 and float32, or to what one process itself loses to rounding
where that is more.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import NamedTuple, get_args

import pytest
import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.blocks import AttentionInputs, SelfAttention, Transformer, fingerprint_model
from orderproof.blocks.sequence_parallel import (
    AllGatherKV,
    RankGroup,
    SequenceParallel,
    TokenSplit,
    Ulysses,
    local_token_indices,
)
from orderproof.blocks.sequence_parallel.all_gather import all_gather
from orderproof.blocks.sequence_parallel.all_reduce import all_reduce_gradients
from orderproof.blocks.sequence_parallel.all_to_all import all_to_all
from orderproof.blocks.sequence_parallel.head_slice import slice_heads
from orderproof.blocks.sequence_parallel.local_ranks import run_on_ranks
from orderproof.encodings import ALiBi, AttentionContent, NoEncoding, PositionalEncoding, Rotary, schedules
from orderproof.errors import EncodingError, OrderproofError, PositionError, UsageError
from tests.encodings.examples import (
    HEADS,
    IN_ATTENTION,
    WIDTH,
    build,
    every_encoding_and_mask,
    normal,
    placed,
    qkv,
    token_state_of,
    tolerance,
    usable_encodings,
)

TOKENS, WORLD = 8, 2
WAYS: tuple[type[SequenceParallel], ...] = (AllGatherKV, Ulysses)
ALONE = RankGroup(rank=0, world_size=1)
NEAR = 1e-6  # gradients, relative to the largest


class Case(NamedTuple):
    name: str
    causal: bool
    way: type[SequenceParallel]
    split: TokenSplit
    dtype: torch.dtype = torch.float64
    row: str = "plain"

    def model(self) -> Transformer:
        made = _model(self.name, self.causal, self.dtype)
        made.zero_grad()
        return made

    def masks(self) -> dict[str, Tensor]:
        """The arguments of the whole row besides its tokens."""
        model = self.model()
        if self.row == "padded":
            real = torch.arange(TOKENS) >= torch.tensor([[0], [3]])
            return {"positions": place.from_mask(real), "padding_mask": real}
        if self.row == "packed":
            ends = torch.tensor([0, 3, TOKENS])
            return {"positions": place.packed(ends), "document_ids": place.document_ids(ends)}
        return {"positions": placed(model.encoding, place.arange(TOKENS), "text")}


@cache
def _model(name: str, causal: bool, dtype: torch.dtype) -> Transformer:
    return fingerprint_model(name, causal=causal).to(dtype)


CASES = [
    *(Case(*known, way, split) for known in usable_encodings for way in WAYS for split in get_args(TokenSplit)),
    *(Case(*known, AllGatherKV, "zig-zag", torch.float32) for known in usable_encodings),
    *(
        Case(name, causal, way, "zig-zag", row=row)
        for name in ("rotary", "alibi", "shaw")
        for causal in (True, False)
        for way in WAYS
        for row in ("padded", "packed")
    ),
]
CASES = [case for case in CASES if not (case.way is Ulysses and case.name == "dape")]  # refused, see below
Found = tuple[Tensor, Tensor, Tensor]


def found(case: Case, ranks: RankGroup | None, *, wide: bool = False) -> Found:
    """Output, gradient of the input and of all parameters: of this rank's part, or of the row called plainly.

    ``wide``: the same weights and the same row, worked out in float64.
    """
    model, masks = case.model(), case.masks()
    to = torch.float64 if wide else case.dtype
    if to != case.dtype:
        model = copy.deepcopy(model).to(to)
    own = torch.arange(TOKENS) if ranks is None else local_token_indices(TOKENS, ranks, split=case.split)
    x = normal(2, TOKENS, WIDTH, dtype=case.dtype)[:, own].to(to).requires_grad_()
    weight = normal(2, TOKENS, WIDTH, dtype=case.dtype, seed=5).to(to)
    if "padding_mask" in masks:
        weight = weight * masks["padding_mask"].unsqueeze(-1)
    sequence_parallel = None if ranks is None else case.way(ranks)
    output = model(x, **{name: value[..., own] for name, value in masks.items()}, sequence_parallel=sequence_parallel)
    (output * weight[:, own]).sum().backward()
    if ranks is not None:
        all_reduce_gradients(model.parameters(), ranks)
    assert x.grad is not None
    # One number more, so that an encoding without parameters of its own gives a tensor too.
    parameters = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return output.detach() * (weight[:, own] != 0), x.grad, torch.cat([p.reshape(-1) for p in parameters])


@cache
def over_two() -> dict[Case, list[Found]]:
    """The results of each rank, for every case."""

    def work(rank: int) -> list[Tensor]:
        with torch.enable_grad():
            return [x for case in CASES for x in found(case, RankGroup.current())]

    each = run_on_ranks(work, WORLD, limit=240)
    return {case: [tuple(made[3 * i : 3 * i + 3]) for made in each] for i, case in enumerate(CASES)}  # type: ignore[misc]


def compare(case: Case) -> None:
    output, *gradients = found(case, None)
    # What float32 makes of one process: of `dape`, whose network sees every score, more than is asked of the ranks.
    # They lose as much, and both together are apart by twice that.
    rounding = [(a - b).abs().max() for a, b in zip(gradients, found(case, None, wide=True)[1:], strict=True)]
    of_input, of_parameters = gradients
    for rank, (part, of_part, summed) in enumerate(over_two()[case]):
        own = local_token_indices(TOKENS, RankGroup(rank=rank, world_size=WORLD), split=case.split)
        near = tolerance(case.dtype, terms=WIDTH * 30, scale=float(output.abs().max()))
        assert torch.allclose(part, output[:, own], rtol=0, atol=near), case
        assert (of_part - of_input[:, own]).abs().max() <= max(NEAR * of_input.abs().max(), 2 * rounding[0]), case
        assert (summed - of_parameters).abs().max() <= max(NEAR * of_parameters.abs().max(), 2 * rounding[1]), case
        assert of_parameters.abs().max() > 0


@every_encoding_and_mask
def test_two_ranks_give_the_result_of_one_process(name: str, causal: bool) -> None:
    cases = [case for case in CASES if case[:2] == (name, causal) and case.row == "plain"]
    assert len(cases) == (3 if name == "dape" else 5)
    for case in cases:
        compare(case)


@pytest.mark.parametrize("row", ["padded", "packed"])
@pytest.mark.parametrize("name", ["rotary", "alibi", "shaw"])
def test_pads_and_documents_are_those_of_the_whole_row(name: str, row: str) -> None:
    cases = [case for case in CASES if (case.name, case.row) == (name, row)]
    assert len(cases) == 4
    for case in cases:
        compare(case)


@every_encoding_and_mask
def test_one_process_is_the_same_code(name: str, causal: bool) -> None:
    for way in WAYS:
        case = Case(name, causal, way, "contiguous")
        for plain, parallel in zip(found(case, None), found(case, ALONE), strict=True):
            assert torch.allclose(plain, parallel, rtol=0, atol=tolerance(torch.float64, terms=100, scale=1e3))


@pytest.mark.parametrize("way", WAYS)
def test_frequencies_depend_on_given_lengths(way: type[SequenceParallel]) -> None:
    encoding = Rotary(WIDTH // HEADS, schedule=schedules.DynamicNTK(2.0, original=4))
    model = Transformer(WIDTH, HEADS, 1, encoding=encoding, causal=True).double()
    x, p = normal(2, TOKENS, WIDTH), place.arange(TOKENS)
    plain, parallel = (model(x, p, lengths=64, sequence_parallel=how) for how in (None, way(ALONE)))
    assert torch.allclose(plain, parallel, rtol=0, atol=tolerance(torch.float64, terms=WIDTH * 30))
    assert (model(x, p, sequence_parallel=way(ALONE)) - parallel).abs().max() > 1e-3


def local(ranks: RankGroup, *, causal: bool, positions: Tensor) -> Tensor:
    model = fingerprint_model("alibi", causal=causal).double()
    x = normal(2, TOKENS, WIDTH)[:, local_token_indices(TOKENS, ranks, split="zig-zag")]
    try:
        return model(x, positions, sequence_parallel=AllGatherKV(ranks))  # type: ignore[no-any-return]
    except OrderproofError as error:
        return torch.tensor(list(str(error).encode()))


@cache
def faulty() -> list[list[Tensor]]:
    """The result of each rank with invalid positions or heads; an error as its characters."""

    def work(rank: int) -> list[Tensor]:
        ranks, half = RankGroup.current(), TOKENS // WORLD
        counted, on = place.arange(half), place.offset(rank * half, half)
        odd = SelfAttention(3, 1, causal=True)
        try:
            inputs = AttentionInputs(encoding=NoEncoding(), positions=on, sequence_parallel=Ulysses(ranks))
            refused = odd(torch.zeros(1, half, 3), inputs)
        except UsageError as error:
            refused = torch.tensor(list(str(error).encode()))
        return [
            local(ranks, causal=False, positions=counted),
            local(ranks, causal=True, positions=on),
            local(ranks, causal=True, positions=counted),
            refused,
        ]

    return run_on_ranks(work, WORLD)


def said(letters: Tensor) -> str:
    return bytes(letters.tolist()).decode()


@pytest.mark.parametrize("causal", [False, True])
def test_local_positions_give_another_result(causal: bool) -> None:
    whole = fingerprint_model("alibi", causal=causal).double()(normal(2, TOKENS, WIDTH))
    for rank, made in enumerate(faulty()):
        own = local_token_indices(TOKENS, RankGroup(rank=rank, world_size=WORLD), split="zig-zag")
        assert (made[int(causal)] - whole[:, own]).abs().max() > 1e-2


def test_a_causal_row_with_one_position_on_two_ranks_is_rejected() -> None:
    for made in faulty():
        assert said(made[2]).startswith("positions: expected distinct positions for the tokens of a causal row")


def test_ulysses_rejects_heads_that_the_ranks_do_not_divide() -> None:
    for made in faulty():
        assert said(made[3]) == "heads: expected a multiple of the 2 ranks for Ulysses, got 1; use AllGatherKV"


@cache
def pieces() -> list[list[Tensor]]:
    """Outputs and gradients of collectives, for a gradient with permuted axes."""

    def work(rank: int) -> list[Tensor]:
        ranks = RankGroup.current()
        made = []
        with torch.enable_grad():
            for send in (lambda x: all_gather(x, 1, ranks), lambda x: all_to_all(x, ranks, split=2, join=1)):
                x = (torch.arange(24.0).view(2, 3, 4) + 100 * rank).requires_grad_()
                y = send(x)
                gradient = normal(*reversed(y.shape), seed=rank, dtype=torch.float32).permute(2, 1, 0)
                assert not gradient.is_contiguous()
                y.backward(gradient)
                assert x.grad is not None
                made += [y.detach(), gradient, x.grad]
        alone, nobody = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))
        if rank == 1:
            alone.grad = torch.tensor([3.0, 4.0])
        all_reduce_gradients([alone, nobody], ranks)
        assert nobody.grad is None
        assert alone.grad is not None
        return [*made, alone.grad]

    return run_on_ranks(work, WORLD)


def test_a_gathered_shard_gets_its_gradient_from_every_rank() -> None:
    (whole, first, _, *_), (other, second, _, *_) = pieces()
    parts = [torch.arange(24.0).view(2, 3, 4) + 100 * rank for rank in range(WORLD)]
    assert torch.equal(whole, torch.cat(parts, 1))
    assert torch.equal(whole, other)
    for rank, made in enumerate(pieces()):
        assert torch.allclose(made[2], (first + second)[:, 3 * rank : 3 * rank + 3])


def test_the_gradient_of_all_to_all_is_its_inverse() -> None:
    gradients = [made[4] for made in pieces()]
    for rank, (*_, y, _, back, _) in enumerate(pieces()):
        parts = [torch.arange(24.0).view(2, 3, 4) + 100 * r for r in range(WORLD)]
        assert torch.equal(y, torch.cat([part.chunk(WORLD, 2)[rank] for part in parts], 1))
        assert torch.equal(back, torch.cat([g.chunk(WORLD, 1)[rank] for g in gradients], 2))


def test_a_gradient_that_one_rank_has_reaches_all_and_one_that_none_has_stays_none() -> None:
    assert [made[-1].tolist() for made in pieces()] == [[3.0, 4.0]] * WORLD


@pytest.mark.parametrize("split", get_args(TokenSplit))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_token_is_on_one_rank(split: TokenSplit, count: int) -> None:
    own = [local_token_indices(12, RankGroup(rank=number, world_size=count), split=split) for number in range(count)]
    assert torch.cat(own).sort().values.tolist() == list(range(12))
    assert {len(one) for one in own} == {12 // count}


def test_zig_zag_gives_each_rank_as_much_of_the_front_as_of_the_back() -> None:
    own = [local_token_indices(8, RankGroup(rank=number, world_size=2), split="zig-zag").tolist() for number in (0, 1)]
    assert own == [[0, 1, 6, 7], [2, 3, 4, 5]]


def test_a_row_that_cannot_be_split_evenly_is_rejected() -> None:
    with pytest.raises(UsageError, match="tokens: expected a multiple of 4 for a zig-zag split over 2, got 6"):
        local_token_indices(6, RankGroup(rank=0, world_size=2), split="zig-zag")
    with pytest.raises(UsageError, match="split: expected 'contiguous' or 'zig-zag', got 'striped'"):
        local_token_indices(6, RankGroup(rank=0, world_size=2), split="striped")  # type: ignore[arg-type]


def test_positions_are_required_and_caches_and_masks_rejected() -> None:
    model, x = fingerprint_model("rotary", causal=True), normal(1, 4, WIDTH, dtype=torch.float32)
    with pytest.raises(PositionError, match="positions: expected the global positions of this rank's tokens"):
        model(x, sequence_parallel=AllGatherKV(ALONE))
    with (
        torch.no_grad(),
        pytest.raises(UsageError, match="sequence_parallel: expected neither cache nor mask"),
    ):
        model(x, place.arange(4), caches=model.new_caches(1, 4), sequence_parallel=AllGatherKV(ALONE))
    with pytest.raises(UsageError, match="sequence_parallel: expected neither cache nor mask"):
        model(x, place.arange(4), mask=torch.ones(4, 4, dtype=torch.bool), sequence_parallel=Ulysses(ALONE))


def tied(positions: list[int], *, document_ids: list[int] | None = None, real: list[bool] | None = None) -> None:
    attention = SelfAttention(8, 2, causal=True)
    masks = {
        "document_ids": None if document_ids is None else torch.tensor(document_ids),
        "padding_mask": None if real is None else torch.tensor([real]),
    }
    inputs = AttentionInputs(
        encoding=Rotary(4), positions=torch.tensor(positions), sequence_parallel=AllGatherKV(ALONE), **masks
    )
    attention(torch.zeros(1, 3, 8), inputs)


def test_only_real_tokens_of_one_document_need_distinct_positions() -> None:
    tied([0, 0, 1], document_ids=[0, 1, 1])
    tied([0, 0, 1], real=[False, True, True])
    tied([2, 0, 1])
    for masks in ({}, {"document_ids": [0, 0, 1]}, {"real": [True, True, False]}):
        with pytest.raises(PositionError, match="expected distinct positions for the tokens of a causal row"):
            tied([0, 0, 1], **masks)  # type: ignore[arg-type]


BIASES = [(name, causal) for name, causal in IN_ATTENTION if build(name, causal=causal).claims.site == "bias"]


@pytest.mark.parametrize(("name", "causal"), [known for known in BIASES if known[0] != "dape"])
def test_a_slice_of_heads_equals_those_heads_of_the_whole(name: str, causal: bool) -> None:
    encoding = build(name, causal=causal).double()
    if getattr(encoding, "heads", None) is None:
        assert slice_heads(encoding, first=1, heads=2) is encoding
        return
    part = slice_heads(encoding, first=1, heads=2)
    p = placed(encoding, place.arange(6), "text")
    whole = encoding.bias(p, p, content=_content(encoding, slice(None)), dtype=torch.float64)
    made = part.bias(p, p, content=_content(encoding, slice(1, 3)), dtype=torch.float64)
    assert torch.allclose(made, whole[:, 1:3] if whole.shape[1] == HEADS else whole, rtol=0, atol=1e-12)
    if not (encoding.claims.content_dependent or encoding.claims.adds_to_values):
        zero, at = torch.tensor(0.0, dtype=torch.float64), torch.tensor(0)
        for head, query, key in ((0, 4, 1), (1, 5, 5)):
            found = part.score_mod(p, p)(zero, at, at + head, at + query, at + key)
            assert torch.allclose(found, whole[0, head + 1, query, key], atol=1e-5)


def _content(encoding: PositionalEncoding, heads: slice) -> AttentionContent | None:
    if not encoding.claims.content_dependent:
        return None
    q, k, _ = qkv(6, 6)
    token_state = token_state_of(encoding, 6)
    visible = torch.ones(6, 6, dtype=torch.bool).tril()[None, None]
    return AttentionContent(
        q=q[:, heads],
        k=k[:, heads],
        scale=0.5,
        visible=visible,
        token_state=None if token_state is None else token_state[:, heads],
    )


def test_mixed_heads_are_not_sliced() -> None:
    with pytest.raises(EncodingError, match="DAPE: it mixes heads, which Ulysses splits over ranks"):
        slice_heads(build("dape"), first=0, heads=2)
    assert slice_heads(mixing := build("dape"), first=0, heads=HEADS) is mixing


def test_sliced_heads_keep_their_slopes() -> None:
    part = slice_heads(ALiBi(8), first=4, heads=2)
    assert torch.equal(
        part.bias(place.arange(3), place.arange(3)), ALiBi(8).bias(place.arange(3), place.arange(3))[:, 4:6]
    )


def test_without_a_process_group_there_is_one_rank() -> None:
    assert all(way().ranks == ALONE for way in WAYS)
