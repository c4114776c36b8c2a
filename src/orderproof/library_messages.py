"""Warnings and log messages of the libraries that a model uses."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType


@contextmanager
def silent_messages() -> Iterator[None]:
    """Write no warnings and log messages, in a block whose code finds their settings and functions as they are."""
    with ExitStack() as stack:
        for owner, name in ((warnings, "_showwarnmsg_impl"), (logging.StreamHandler, "emit")):
            function = getattr(owner, name)
            # Code with variables of another function cannot be exchanged, nor the method of a list that
            # `warnings.catch_warnings(record=True)` puts here.
            if isinstance(function, FunctionType) and not function.__code__.co_freevars:
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = _write_nothing.__code__
            else:
                stack.callback(setattr, owner, name, function)
                setattr(owner, name, _write_nothing)
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
