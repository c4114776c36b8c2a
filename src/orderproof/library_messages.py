"""Warnings and log messages of the libraries that a model uses."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_messages() -> Iterator[None]:
    """Write no warnings and log messages, in a block whose code finds their settings as they are."""
    show, emit = vars(warnings)["_showwarnmsg_impl"], logging.StreamHandler.emit
    vars(warnings)["_showwarnmsg_impl"] = _write_nothing
    logging.StreamHandler.emit = _write_nothing  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        vars(warnings)["_showwarnmsg_impl"] = show
        logging.StreamHandler.emit = emit  # type: ignore[method-assign]


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
