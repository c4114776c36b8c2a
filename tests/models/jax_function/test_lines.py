"""Frames with the lines of a program are found by a recording as those of a model are."""

from __future__ import annotations

from pathlib import Path

from orderproof.models.jax_function.lines import Lines
from orderproof.recording.source import model_lines

FILE = str(Path(__file__).with_name("subjects.py"))


def test_a_call_is_at_the_lines_of_the_program() -> None:
    frames = [(FILE, "Model.__call__", 34), (FILE, "step", 7)]
    assert Lines().call(frames, model_lines)[-2:] == ((FILE, "__call__", 34), (FILE, "step", 7))


def test_a_call_without_lines_is_a_plain_call() -> None:
    assert Lines().call((), lambda: 5) == 5


def test_calls_within_a_call_have_lines_of_their_own() -> None:
    lines = Lines()

    def within() -> object:
        return lines.call([(FILE, "body", 3)], model_lines)

    found = lines.call([(FILE, "outer", 90)], within)
    assert [line for _, name, line in found if name in ("outer", "body")] == [90, 3]


def test_equal_lines_share_one_function() -> None:
    lines = Lines()
    assert lines.at(((FILE, "f", 1),)) is lines.at(((FILE, "f", 1),))
