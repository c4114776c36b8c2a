"""The errors that this package raises on purpose, and how an error of another library is reported.

    OrderproofError
    ├── UsageError            an option, law, name or argument that does not exist or does not fit
    ├── SubjectError          the thing to audit cannot be found, loaded, built or called
    │   └── CheckpointError   a checkpoint that is missing, truncated, a pickle, or not what it claims to be
    ├── CaptureError          the model runs, but its graph cannot be recorded
    ├── CertificateError      a file of certificates that cannot be read
    ├── UnsupportedCallError  a model cannot be called in the way a measured law needs
    ├── OutputShapeError      an output of the model has another shape than a law needs
    ├── StoreError            a folder of results that cannot be read, written or combined
    ├── PositionError         positions of the wrong type, shape or range
    ├── FailedStepError       the first step of a training run violates a law, and the run was asked to end then
    ├── ReproductionError     no script of a violation can be written
    └── EncodingError         an encoding with arguments it cannot honour

A message states on one line what was expected, what came, where, and what to do.
"""

from __future__ import annotations

import traceback


class OrderproofError(Exception):
    """The base class of all errors that this package raises on purpose."""


class UsageError(OrderproofError):
    """An option, law, name or argument that does not exist or does not fit."""


class SubjectError(OrderproofError):
    """The thing to audit cannot be found, loaded, built or called."""


class CheckpointError(SubjectError):
    """A checkpoint that is missing, truncated, a pickle, or not what it claims to be."""


class CaptureError(OrderproofError):
    """The model runs, but its graph cannot be recorded."""


class CertificateError(OrderproofError):
    """A file of certificates that cannot be read; a step that does not follow is an error of `orderproof_recheck`."""


class UnsupportedCallError(OrderproofError):
    """A model cannot be called in the way a measured law needs; the text names what is missing, in a few words."""


class OutputShapeError(OrderproofError):
    """An output of the model has another shape than a law needs."""


class StoreError(OrderproofError):
    """A folder of results that cannot be read or written, or whose results cannot be combined."""


class FailedStepError(OrderproofError):
    """The first step of a training run violates a law, and the run was asked to end then."""


class ReproductionError(OrderproofError):
    """A violation that a script without this package cannot show, or that cannot be found again."""


class PositionError(OrderproofError):
    """Positions of the wrong type, shape or range."""


class EncodingError(OrderproofError):
    """An encoding was given arguments that it cannot honour."""


def first_line(error: BaseException) -> str:
    """The type and the message of an error of any library, on one line of at most some 300 characters.

    A longer message loses its middle: it may start with a printed module, and say what is wrong at its end.
    """
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the code of a model: an error may have no text
        text = ""
    if len(text) > 300:
        text = f"{text[:145]} ... {text[-150:]}"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


INTERNAL_ERROR = "internal error, please report it: "
_ENGINE = (
    "auditing",
    "diagnosis",
    "laws",
    "logic",
    "recording",
    "records",
    "theorems",
)  # the packages in which the innermost frame makes an error ours


def is_internal(error: BaseException) -> bool:
    """True if the engine raised an error that it did not mean to raise: a defect of this package, not of the model."""
    if isinstance(error, OrderproofError) or error.__traceback__ is None:
        return False
    module = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
    engine = module.startswith((*(f"orderproof.{package}." for package in _ENGINE), "orderproof_recheck."))
    return engine and not module.endswith(".execution")  # which runs operators of the model


def failure_reason(error: BaseException) -> str:
    """The reason that a finding gives for an error: the text of ours, the type and text of others', defects marked."""
    if isinstance(error, OrderproofError):
        return str(error)
    return f"{INTERNAL_ERROR * is_internal(error)}{first_line(error)}"
