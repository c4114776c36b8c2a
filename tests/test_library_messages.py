"""Messages of libraries are silenced, and their functions are as before afterwards."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from orderproof.library_messages import show_each_warning_once, silent_messages


def coloured(emit: Callable[..., Any]) -> Callable[..., Any]:
    """The function within another one, as packages that colour messages leave it."""

    def outer(self: Any, record: Any) -> None:
        emit(self, record)

    return outer


@pytest.mark.parametrize("wrapped", [False, True])
def test_messages_are_written_after_the_block_only(wrapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrapped:
        monkeypatch.setattr(logging.StreamHandler, "emit", coloured(logging.StreamHandler.emit))
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    before = logging.StreamHandler.emit
    record = logging.LogRecord("model", logging.WARNING, "model.py", 1, "careful", None, None)
    with silent_messages():
        assert (logging.StreamHandler.emit is before) is not wrapped
        handler.emit(record)
    assert stream.getvalue() == ""
    assert logging.StreamHandler.emit is before
    handler.emit(record)
    assert stream.getvalue() == "careful\n"


def test_warnings_that_are_recorded_are_not_recorded_in_the_block() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with silent_messages():
            warnings.warn("within", stacklevel=1)
        warnings.warn("after", stacklevel=1)
    assert [str(x.message) for x in found] == ["after"]


def test_a_warning_of_a_line_is_written_once() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        show_each_warning_once()
        for text in ("first", "first", "second"):
            warnings.warn(text, stacklevel=1)
        with silent_messages():
            warnings.warn("third", stacklevel=1)
    assert [str(x.message) for x in found] == ["first", "second"]
