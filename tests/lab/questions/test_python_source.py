"""The text of Python's own library."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from orderproof.errors import UsageError
from orderproof.lab.questions.python_source import PythonSource, read


def test_the_targets_are_the_bytes_one_on_and_the_rows_stand_in_the_text():
    asked = PythonSource()
    for make, stream in ((asked.draw, asked.text.trained), (asked.test, asked.text.held_out)):
        made = make(60, 8, torch.Generator().manual_seed(0))
        text = stream.numpy().tobytes()
        assert torch.equal(made.tokens[:, 1:], made.targets[:, :-1])
        for tokens, targets in zip(made.tokens.tolist(), made.targets.tolist(), strict=True):
            assert bytes([*tokens, targets[-1]]) in text


def test_what_is_held_out_is_every_tenth_file_in_the_order_of_names(tmp_path: Path):
    for number in range(25):
        (tmp_path / f"m{number:02}.py").write_text(f"{number:02}")
    for left_out in ("site-packages/installed.py", "test/tried.py", "config-3.x/how.py", "_sysconfigdata_here.py"):
        (tmp_path / left_out).parent.mkdir(exist_ok=True)
        (tmp_path / left_out).write_text("left out")
    text = read(tmp_path)
    assert text.files == 25
    assert text.held_out.numpy().tobytes() == b"0919"
    assert text.trained.numpy().tobytes() == b"".join(b"%02d" % n for n in range(25) if n not in (9, 19))


def test_a_library_without_sources_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="found 0 files"):
        read(tmp_path)


def test_a_row_longer_than_the_text_is_refused():
    with pytest.raises(UsageError, match="expected a length below"):
        PythonSource().test(10**9, 1, torch.Generator())


def test_no_ceiling_is_claimed_and_the_unigram_is_less_than_eight_bits():
    asked = PythonSource()
    assert asked.ceiling(64) is None
    assert 1 < asked.unigram < math.log(256)


def test_the_edition_names_the_text():
    assert PythonSource().edition == PythonSource().edition
    assert f"{PythonSource().text.files} files" in PythonSource().edition


def test_rows_to_test_on_begin_at_the_same_places_at_every_length():
    asked = PythonSource()
    short, long = (asked.test(length, 8, torch.Generator().manual_seed(length)) for length in (20, 60))
    assert torch.equal(short.tokens, long.tokens[:, :20])
    assert len({tuple(row) for row in short.tokens.tolist()}) == 8
