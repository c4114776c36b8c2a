"""Every error this package raises on purpose.

    OrderproofError
    ├── UsageError            an option, law, name or argument that does not exist or does not fit
    ├── SubjectError          the thing to audit cannot be found, loaded, built or called
    │   └── CheckpointError   a checkpoint that is missing, cut short, a pickle, or not what it claims to be
    ├── CaptureError          the model runs but its graph cannot be recorded
    ├── CertificateError      a certificate that cannot be read, or a step of it that does not follow
    ├── Unsupported           a model cannot be called in the way a measured law asks for
    ├── StoreError            a folder of results that cannot be read, written, or put together
    ├── PositionError         positions of the wrong type, shape or range
    └── EncodingError         an encoding given arguments it cannot honour

A message says what was expected, what came, where, and what to do: in one line.
"""

from __future__ import annotations


class OrderproofError(Exception):
    """The root: catching it catches everything this package raises on purpose."""


class UsageError(OrderproofError):
    """An option, law, name or argument that does not exist or does not fit."""


class SubjectError(OrderproofError):
    """The thing to audit cannot be found, loaded, built or called."""


class CheckpointError(SubjectError):
    """A checkpoint that is missing, cut short, a pickle, or not what it claims to be."""


class CaptureError(OrderproofError):
    """The model runs, but its graph cannot be recorded."""


class CertificateError(OrderproofError):
    """A certificate that cannot be read, or a step of it that does not follow."""


class Unsupported(OrderproofError):
    """A model cannot be called in the way a measured law asks for; the text says what is missing, in a few words."""


class StoreError(OrderproofError):
    """A folder of results that cannot be read or written, or whose results cannot be put together."""


class PositionError(OrderproofError):
    """Positions of the wrong type, shape or range."""


class EncodingError(OrderproofError):
    """An encoding given arguments it cannot honour."""


def first_line(error: BaseException) -> str:
    """An error of another library, in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
