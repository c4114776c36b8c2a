"""The sources of Python's standard library as a text."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from orderproof.errors import UsageError
from orderproof.lab.questions.python_source import PythonSource, read_corpus


def test_the_targets_are_the_next_bytes_and_the_rows_are_in_the_text():
    question = PythonSource()
    for draw, stream in ((question.sample, question.corpus.trained), (question.test_batch, question.corpus.held_out)):
        batch = draw(60, 8, torch.Generator().manual_seed(0))
        text = stream.numpy().tobytes()
        assert torch.equal(batch.tokens[:, 1:], batch.targets[:, :-1])
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            assert bytes([*tokens, targets[-1]]) in text


def test_every_tenth_file_by_name_is_held_out(tmp_path: Path):
    for number in range(25):
        (tmp_path / f"m{number:02}.py").write_text(f"{number:02}")
    for left_out in ("site-packages/installed.py", "test/tried.py", "config-3.x/how.py", "_sysconfigdata_here.py"):
        (tmp_path / left_out).parent.mkdir(exist_ok=True)
        (tmp_path / left_out).write_text("left out")
    corpus = read_corpus(tmp_path)
    assert corpus.files == 25
    assert corpus.held_out.numpy().tobytes() == b"0919"
    assert corpus.trained.numpy().tobytes() == b"".join(b"%02d" % n for n in range(25) if n not in (9, 19))


def test_a_library_without_sources_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="found 0"):
        read_corpus(tmp_path)


def test_a_row_longer_than_the_text_is_refused():
    with pytest.raises(UsageError, match="expected a length below"):
        PythonSource().test_batch(10**9, 1, torch.Generator())


def test_the_ceiling_is_unknown_and_the_unigram_entropy_below_eight_bits():
    question = PythonSource()
    assert question.ceiling(64) is None
    assert 1 < question.unigram_entropy < math.log(256)


def test_the_dataset_version_identifies_the_text():
    assert PythonSource().dataset_version == PythonSource().dataset_version
    assert f"{PythonSource().corpus.files} files" in PythonSource().dataset_version


def test_test_rows_start_at_the_same_positions_at_every_length():
    question = PythonSource()
    short, long = (question.test_batch(length, 8, torch.Generator().manual_seed(1)) for length in (20, 60))
    assert torch.equal(short.tokens, long.tokens[:, :20])
    assert len({tuple(row) for row in short.tokens.tolist()}) == 8
