"""Packed documents give the result of separate rows, and restarting positions without document ids are rejected."""

from __future__ import annotations

import re

import pytest
import torch

from orderproof import positions
from orderproof.blocks import Transformer, fingerprint_model
from orderproof.encodings import NoEncoding, Rotary, attention
from orderproof.errors import PositionError, UsageError
from tests.encodings.examples import (
    WIDTH,
    build,
    every_encoding,
    every_encoding_and_mask,
    in_attention_with,
    normal,
    placed,
    qkv,
    token_state_of,
    tolerance,
)

LENGTHS = [4, 1, 4]
BOUNDARIES = torch.tensor([0, 4, 5, 9])
START_AGAIN = re.escape("k_positions: expected rising or distinct positions along the row, got some that restart")
with_every_backend = in_attention_with("backend", "sdpa", "eager", "flex")


@with_every_backend
def test_packed_documents_give_the_result_of_separate_rows(name: str, causal: bool, backend: str) -> None:
    encoding, (q, k, v) = build(name, causal=causal).requires_grad_(False), qkv(9, 9)
    token_state = token_state_of(encoding, 9)
    packed = attention(
        q,
        k,
        v,
        encoding=encoding,
        q_positions=placed(encoding, positions.packed(BOUNDARIES)),
        q_document_ids=positions.document_ids(BOUNDARIES),
        causal=causal,
        token_state=token_state,
        backend=backend,
    )
    for start, length in zip(BOUNDARIES, LENGTHS, strict=False):
        own = slice(start, start + length)
        alone = attention(
            *(x[:, :, own] for x in (q, k, v)),
            encoding=encoding,
            q_positions=placed(encoding, positions.arange(length)),
            causal=causal,
            token_state=None if token_state is None else token_state[:, :, own],
            backend=backend,
        )
        # A function for FlexAttention gives float32 numbers, whose size decides what rounding them costs.
        exact = tolerance(torch.float64, terms=100)
        allowed = tolerance(torch.float32, terms=9, scale=50.0) if backend == "flex" else exact
        assert (packed[:, :, own] - alone).abs().max() <= allowed


@every_encoding_and_mask
def test_a_model_gives_packed_documents_the_result_of_separate_rows(name: str, causal: bool) -> None:
    block, x = fingerprint_model(name, causal=causal).double(), normal(2, 9, WIDTH)
    packed = block(x, document_ids=positions.document_ids(BOUNDARIES))
    alone = torch.cat([block(part) for part in x.split(LENGTHS, dim=1)], dim=1)
    assert (packed - alone).abs().max() < tolerance(torch.float64, terms=WIDTH * 30)


@every_encoding
@torch.no_grad()
def test_documents_continue_from_a_cache(name: str) -> None:
    block, x = fingerprint_model(name, causal=True).double(), normal(2, 9, WIDTH)
    # The second row's documents end elsewhere.
    document_ids = torch.tensor([[7, 7, 7, 7, 5, 9, 9, 9, 9], [0, 0, 1, 1, 1, 1, 1, 1, 1]])
    p = placed(block.encoding, positions.from_document_ids(document_ids), "text")
    whole, caches = block(x, p, document_ids=document_ids), block.new_caches(2, 9)
    parts = [
        block(x[:, some], p[..., some], document_ids=document_ids[:, some], caches=caches)
        for some in (slice(0, 3), slice(3, 6), *(slice(t, t + 1) for t in range(6, 9)))
    ]
    assert (torch.cat(parts, dim=1) - whole).abs().max() < tolerance(torch.float64, terms=WIDTH * 30)


@with_every_backend
def test_restarting_positions_without_document_ids_are_rejected(name: str, causal: bool, backend: str) -> None:
    encoding, (q, k, v) = build(name, causal=causal).requires_grad_(False), qkv(9, 9)
    given = {
        "q_positions": placed(encoding, positions.packed(BOUNDARIES), "text"),
        "token_state": token_state_of(encoding, 9),
    }
    if not causal:  # every token sees every other then, whatever the positions are
        assert attention(q, k, v, encoding=encoding, causal=False, backend=backend, **given).isfinite().all()
        return
    with pytest.raises(PositionError, match=START_AGAIN) as caught:
        attention(q, k, v, encoding=encoding, causal=True, backend=backend, **given)
    assert "\n" not in str(caught.value)


DOCUMENTS = positions.document_ids(BOUNDARIES)
REAL_TOKENS = torch.tensor([[True] * 6 + [False] * 3, [False] * 2 + [True] * 7])
REFUSED = {
    "packed": (positions.packed(BOUNDARIES), {}),
    "packed in one row of two": (torch.stack([positions.arange(9), positions.packed(BOUNDARIES)]), {}),
    "pads that nothing hides": (positions.from_mask(REAL_TOKENS), {}),
    "two documents under one number": (positions.packed(BOUNDARIES), {"q_document_ids": DOCUMENTS // 2}),
    "a mask that leaves documents together": (positions.packed(BOUNDARIES), {"mask": torch.ones(9, 9).tril().bool()}),
    "packed real tokens among pads": (positions.packed(BOUNDARIES), {"padding_mask": REAL_TOKENS}),
}
ACCEPTED = {
    "numbered": (positions.packed(BOUNDARIES), {"q_document_ids": DOCUMENTS}),
    "numbered anyhow": (positions.packed(BOUNDARIES), {"q_document_ids": torch.tensor([5] * 4 + [-1] + [3] * 4)}),
    "kept apart by a mask": (positions.packed(BOUNDARIES), {"mask": DOCUMENTS[:, None] == DOCUMENTS}),
    "pads that are hidden": (positions.from_mask(REAL_TOKENS), {"padding_mask": REAL_TOKENS}),
    "documents and pads": (
        positions.from_document_ids(DOCUMENTS),
        {"q_document_ids": DOCUMENTS, "padding_mask": torch.arange(9).expand(2, 9) != 8},
    ),
    "moved with their tokens": (torch.tensor([3, 0, 6, 1, 5, 2, 4, 8, 7]), {}),
    "equal ids side by side": (torch.tensor([0, 0, 1, 1, 1, 2, 3, 3, 4]), {}),
    "branches of a tree under its mask": (
        torch.tensor([0, 1, 2, 2, 1, 2, 3, 2, 3]),
        {"mask": torch.tensor([[n <= m and n in p for n in range(9)] for m, p in enumerate(
            [[0], [0, 1], [0, 1, 2], [0, 1, 3], [0, 4], [0, 4, 5], [0, 4, 5, 6], [0, 4, 7], [0, 4, 7, 8]])])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_no_query_sees_a_repeated_position(case: str) -> None:
    (q, k, v), (p, given) = qkv(9, 9), REFUSED[case]
    with pytest.raises(PositionError, match=START_AGAIN):
        attention(q, k, v, encoding=NoEncoding(), q_positions=p, causal=True, **given)


@pytest.mark.parametrize("case", ACCEPTED)
def test_positions_that_cannot_leak_are_accepted(case: str) -> None:
    (q, k, v), (p, given) = qkv(9, 9), ACCEPTED[case]
    found = attention(q, k, v, encoding=NoEncoding(), q_positions=p, causal=True, **given)
    # A later token of the row is visible only through a smaller position.
    changed = v + 100 * (torch.arange(9) == 8).view(1, 1, 9, 1)
    after = attention(q, k, changed, encoding=NoEncoding(), q_positions=p, causal=True, **given)
    if case != "moved with their tokens":
        assert torch.equal(found[:, :, :8], after[:, :, :8])


@pytest.mark.parametrize("case", [*REFUSED, *ACCEPTED])
def test_a_compiled_graph_rejects_the_same_except_with_a_mask(case: str) -> None:
    torch.compiler.reset()
    (q, k, v), (p, given), rotary = qkv(9, 9), (REFUSED | ACCEPTED)[case], Rotary(8)

    def attend(p: torch.Tensor) -> torch.Tensor:
        return attention(q, k, v, encoding=rotary, q_positions=p, causal=True, **given)

    compiled = torch.compile(attend, backend="eager", fullgraph=True)
    if case in REFUSED and "mask" not in given:
        with pytest.raises(RuntimeError, match=START_AGAIN):
            compiled(p)
    else:
        assert compiled(p).shape == q.shape


def rejects(message: str, **changes: object) -> None:
    q, k, v = qkv(4, 4)
    arguments = {"q": q, "k": k, "v": v, "encoding": NoEncoding(), "q_positions": positions.arange(4), "causal": True}
    with pytest.raises(PositionError, match=re.escape(message)) as caught:
        attention(**(arguments | changes))
    assert "\n" not in str(caught.value)


def test_document_ids_that_do_not_fit_are_rejected() -> None:
    q, _, _ = qkv(4, 4)
    four = torch.zeros(4, dtype=torch.int64)
    rejects("q_document_ids: expected integers [4] or [2, 4], got torch.float32 [4]", q_document_ids=torch.zeros(4))
    rejects("q_document_ids: expected integers [4] or [2, 4], got torch.int64 [3, 4]", q_document_ids=four.expand(3, 4))
    rejects("q_document_ids: expected integers [4] or [2, 4], got list", q_document_ids=[0, 0, 0, 0])
    rejects("q_document_ids: expected device cpu, got meta", q_document_ids=four.to("meta"))
    rejects(
        "k_document_ids: expected integers [4] or [2, 4], got torch.int64 [3]",
        q_document_ids=four,
        k_document_ids=four[:3],
    )
    rejects("q_document_ids: expected ids with k_document_ids, got none", k_document_ids=four)
    less = {"q": q[:, :, 3:], "q_positions": torch.tensor([3]), "k_positions": positions.arange(4)}
    rejects("k_document_ids: expected ids of 4 keys, got none for 1 queries", q_document_ids=four[:1], **less)


def test_a_query_whose_document_has_no_keys_gets_zeros() -> None:
    q, k, v = qkv(4, 4)
    found = attention(
        q,
        k,
        v,
        encoding=NoEncoding(),
        q_positions=positions.arange(4),
        causal=True,
        q_document_ids=torch.tensor([0, 0, 1, 2]),
        k_document_ids=torch.tensor([0, 0, 1, 1]),
    )
    assert (found[:, :, 3] == 0).all()
    assert (found[:, :, :3] != 0).all()


def test_default_positions_count_documents_only_without_padding_and_caches() -> None:
    block, x = Transformer(8, 2, 1, causal=True), normal(1, 4, 8, dtype=torch.float32)
    document_ids, message = (
        torch.tensor([0, 0, 1, 1]),
        "positions: expected with document_ids and pad tokens or a cache",
    )
    with pytest.raises(PositionError, match=message):
        block(x, document_ids=document_ids, padding_mask=torch.ones(1, 4).bool())
    with torch.no_grad(), pytest.raises(PositionError, match=message):
        block(x, document_ids=document_ids, caches=block.new_caches(1, 4))


@torch.no_grad()
def test_a_cache_takes_documents_with_all_tokens_or_with_none() -> None:
    block, x = Transformer(8, 2, 1, causal=True), normal(1, 4, 8, dtype=torch.float32)
    for first, then in ((None, torch.zeros(1).long()), (torch.zeros(3).long(), None)):
        caches = block.new_caches(1, 4)
        block(x[:, :3], positions.arange(3), document_ids=first, caches=caches)
        with pytest.raises(UsageError, match="cache: expected document_ids with all tokens or with none"):
            block(x[:, 3:], positions.offset(3, 1), document_ids=then, caches=caches)


@torch.no_grad()
def test_reordering_a_cache_moves_its_documents() -> None:
    block, x = Transformer(8, 2, 1, causal=True), normal(2, 4, 8, dtype=torch.float32)
    document_ids = torch.tensor([[0, 0, 1], [0, 1, 1]])
    (cache,) = caches = block.new_caches(2, 4)
    block(x[:, :3], positions.from_document_ids(document_ids), document_ids=document_ids, caches=caches)
    cache.reorder(torch.tensor([1, 0]))
    assert torch.equal(cache.contents().document_ids, document_ids.flip(0))
