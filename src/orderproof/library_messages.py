"""Warnings and log messages of the libraries that a model uses."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any


@contextmanager
def silent_messages() -> Iterator[None]:
    """Write no warnings and log messages, in a block whose code finds their settings and functions as they are."""
    show = vars(warnings)["_showwarnmsg_impl"]
    emit: Any = logging.StreamHandler.emit
    recorded = not isinstance(show, FunctionType)  # by `warnings.catch_warnings(record=True)`: a method of a list
    with ExitStack() as stack:
        if recorded:
            stack.callback(vars(warnings).__setitem__, "_showwarnmsg_impl", show)
            vars(warnings)["_showwarnmsg_impl"] = _write_nothing
        for function in (emit,) if recorded else (show, emit):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _write_nothing.__code__
        yield


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Suppress warnings and log messages."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(before)


def _write_nothing(*_message: object) -> None:
    pass
