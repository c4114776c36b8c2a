"""Warnings and log messages of the libraries that a model uses."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import TextIO


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


def show_each_warning_once() -> None:
    """Write a warning of a line once in this process: a model is called often, and Python forgets what was written."""
    shown: set[tuple[str, type[Warning], str, int]] = set()

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int,
        file: TextIO | None = None, line: str | None = None,
    ) -> None:  # fmt: skip
        key = (str(message), category, filename, lineno)
        if key not in shown:
            shown.add(key)
            _write(warnings.WarningMessage(message, category, filename, lineno, file, line))

    warnings.showwarning = show


def _write(message: warnings.WarningMessage) -> None:
    """Write a warning by the function of the library that `silent_messages` exchanges."""
    warnings._showwarnmsg_impl(message)  # type: ignore[attr-defined]


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
