"""Bits written, read and ignored."""

from __future__ import annotations

import pytest
import torch

from orderproof.lab.questions.flip_flop import ASKED, IGNORE, READ, WRITE, FlipFlop


def test_every_read_repeats_the_last_write_and_so_does_the_answer():
    made = FlipFlop(ignored=0.3).draw(12, 100, torch.Generator().manual_seed(0))
    for tokens, targets in zip(made.tokens.tolist(), made.targets.tolist(), strict=True):
        assert tokens[-1] == ASKED
        last = None
        for does, bit in (divmod(token, 2) for token in tokens[:-1]):
            assert last is not None or does == WRITE
            assert does != READ or bit == last
            last = bit if does == WRITE else last
        assert targets[-1] == last


def test_pairs_are_ignored_as_often_as_said():
    tokens = FlipFlop(ignored=0.6).draw(102, 400, torch.Generator().manual_seed(0)).tokens[:, 1:-1] // 2
    for does, share in ((IGNORE, 0.6), (READ, 0.2), (WRITE, 0.2)):
        assert float((tokens == does).double().mean()) == pytest.approx(share, abs=0.01)


def test_a_bag_does_better_the_more_is_ignored():
    found = [FlipFlop(ignored=share).ceiling(40).value for share in (0.0, 0.1, 0.5, 0.8, 0.98)]
    assert found == sorted(found)
    assert found[0] < 0.6 < 0.9 < found[-1]
