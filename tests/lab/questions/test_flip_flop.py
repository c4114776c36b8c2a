"""Bits that are written, read and ignored."""

from __future__ import annotations

import pytest
import torch

from orderproof.lab.questions.flip_flop import IGNORE, READ, READ_QUERY, WRITE, FlipFlop


def test_every_read_repeats_the_last_write_and_so_does_the_answer():
    batch = FlipFlop(ignored=0.3).sample(12, 100, torch.Generator().manual_seed(0))
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        assert tokens[-1] == READ_QUERY
        last = None
        for does, bit in (divmod(token, 2) for token in tokens[:-1]):
            assert last is not None or does == WRITE
            assert does != READ or bit == last
            last = bit if does == WRITE else last
        assert targets[-1] == last


def test_pairs_are_ignored_with_the_configured_probability():
    tokens = FlipFlop(ignored=0.6).sample(102, 400, torch.Generator().manual_seed(0)).tokens[:, 1:-1] // 2
    for does, share in ((IGNORE, 0.6), (READ, 0.2), (WRITE, 0.2)):
        assert float((tokens == does).double().mean()) == pytest.approx(share, abs=0.01)


def test_the_ceiling_rises_with_the_probability_of_ignoring():
    found = [FlipFlop(ignored=share).ceiling(40).value for share in (0.0, 0.1, 0.5, 0.8, 0.98)]
    assert found == sorted(found)
    assert found[0] < 0.6 < 0.9 < found[-1]
