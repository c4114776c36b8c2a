"""The claims of every registered encoding, checked on a real model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from orderproof import positions
from orderproof.auditing.api import as_subject, audit_context
from orderproof.auditing.decide.relation import ProofOptions
from orderproof.auditing.decide.verdict import prove_law
from orderproof.blocks import fingerprint_model
from orderproof.laws import find_proved_law
from tests.encodings.examples import (
    HEADS,
    WIDTH,
    build,
    call,
    every_encoding,
    every_encoding_and_mask,
    normal,
    operands,
    placed,
    tolerance,
    usable,
)

REFERENCE = Path(__file__).parents[2] / "docs/reference/encodings.md"


@every_encoding_and_mask
def test_it_is_relative_exactly_where_it_claims_to_be(name: str, causal: bool) -> None:
    block = fingerprint_model(name, causal=causal).double()
    x, claims = normal(2, 7, WIDTH), block.encoding.claims
    p = placed(block.encoding, positions.arange(7))
    # Each axis by a distance of its own.
    by = 23 + torch.arange(claims.ndim).view(-1, *[1] * (p.dim() - 1))
    shifted = (block(x, p + (23 if claims.ndim == 1 else by)) - block(x, p)).abs().max()
    if claims.relative:
        assert shifted < tolerance(torch.float64, terms=WIDTH * 30)
    else:
        assert shifted > 1e-3
    if claims.relative_up_to is not None:
        at_the_end, past = (block(x, p + claims.relative_up_to + by) for by in (-6, 2000))
        assert (at_the_end - block(x, p)).abs().max() < tolerance(torch.float64, terms=WIDTH * 30)
        assert (past - block(x, p)).abs().max() > 1e-3


@every_encoding
def test_reversal_holds_exactly_if_it_claims_symmetry(name: str) -> None:
    if not usable(name, causal=False):
        assert not build(name).claims.symmetric
        return
    block = fingerprint_model(name, causal=False).double()
    # Alike on all axes: in a picture seven tokens stand in one row, and columns may turn too slowly to be seen.
    x, p = normal(2, 7, WIDTH), placed(block.encoding, positions.arange(7), "text")
    reversed_ = block(x.flip(1), p) - block(x, p).flip(1)
    claims = block.encoding.claims
    if claims.symmetric and claims.relative:
        assert reversed_.abs().max() < tolerance(torch.float64, terms=WIDTH * 30)
    else:
        assert reversed_.abs().max() > 1e-3


@every_encoding_and_mask
def test_permuting_tokens_with_their_positions_permutes_the_output(name: str, causal: bool) -> None:
    block = fingerprint_model(name, causal=causal).double()
    x, order = normal(2, 7, WIDTH), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    # Causal visibility follows the first axis, and storage order for ties: all tokens must differ.
    p = placed(block.encoding, positions.arange(7) * 8 ** (block.encoding.claims.ndim - 1))
    moved = block(x[:, order], p[..., order])
    assert (moved - block(x, p)[:, order]).abs().max() < tolerance(torch.float64, terms=WIDTH * 30)


@every_encoding
def test_order_matters_to_every_encoding_but_none(name: str) -> None:
    x = normal(2, 7, WIDTH)
    if usable(name, causal=False):
        block, order = fingerprint_model(name, causal=False).double(), torch.tensor([3, 0, 6, 1, 5, 2, 4])
        difference = block(x[:, order]) - block(x)[:, order]
    else:  # one causal layer without positions does not know the order of its prompt
        block, order = fingerprint_model(name, causal=True, layers=1).double(), torch.tensor([3, 0, 5, 1, 4, 2, 6])
        difference = (block(x[:, order]) - block(x))[:, -1]
    assert bool(difference.abs().max() < 1e-9) == (name == "none")


@every_encoding
def test_it_computes_token_state_exactly_if_it_claims_to(name: str) -> None:
    encoding, x = build(name), normal(2, 5, WIDTH)
    token_state = encoding.token_state(x)
    assert (token_state is not None) == (encoding.claims.decode_state == "token_state")
    if token_state is not None:
        assert token_state.shape[:3] == (2, HEADS, 5)
        changed = x.clone()
        changed[:, 2] = normal(2, WIDTH, seed=9)
        changes = (encoding.token_state(changed) - token_state).abs().amax((0, 1, 3)) > 1e-6
        assert changes.tolist() == [False, False, True, False, False]


@every_encoding
def test_it_adds_to_values_exactly_if_it_claims_to(name: str) -> None:
    encoding = build(name).double()
    if not encoding.claims.adds_to_values:
        return
    p, weights = positions.arange(5), normal(2, HEADS, 5, 5).softmax(-1)
    found = encoding.value_bias(weights, p, p)
    assert found.shape == (2, HEADS, 5, WIDTH // HEADS)
    assert torch.equal(found, encoding.value_bias(weights, p + 9, p + 9))
    assert (found - encoding.value_bias(weights.flip(-1), p, p)).abs().max() > 1e-3


@every_encoding
def test_it_mixes_heads_exactly_if_it_claims_to(name: str) -> None:
    encoding = build(name).double()
    if not encoding.claims.content_dependent:
        assert not encoding.claims.mixes_heads
        return
    p = positions.arange(5)
    given = operands(encoding, 5)
    other = (given[0], *(x.clone() for x in given[1:3]), given[3])
    for x in other[1:3]:
        x[:, 1:] = normal(2, HEADS - 1, 5, WIDTH // HEADS, seed=9)
    changed = (call(encoding, other, p) - call(encoding, given, p))[:, 0].abs().max()
    assert bool(changed > 1e-3) == encoding.claims.mixes_heads
    assert encoding.claims.mixes_heads or changed == 0


@pytest.mark.slow  # a proof for each encoding
@every_encoding
def test_the_reference_says_whether_it_is_proved_causal(name: str) -> None:
    context = audit_context(as_subject(fingerprint_model(name, causal=True)))
    options = ProofOptions(every_length=False, search_witness=False)
    (finding,) = prove_law(context, find_proved_law("causal"), options)
    rows = [line.split("|") for line in REFERENCE.read_text(encoding="utf-8").splitlines()]
    letters = {row[1].strip(" `"): row[6].strip()[-1] for row in rows if len(row) > 6 and row[6].strip()}
    found = {"proved": "P", "undecided": "U"}[finding.verdict]
    assert letters.get(name, found) == found  # a new encoding has no row yet, which another test requires
