"""How a recording ends early.

The exception derives from `BaseException`, so that no `except Exception` of the model swallows it. The recorder also
remembers it: a model that swallows it all the same is not recorded either.
"""

from __future__ import annotations

from orderproof.errors import CaptureError, first_line

NOT_RECORDED = "the graph cannot be recorded: "  # how the message of a `CaptureError` begins


_IN_PLAIN_WORDS = {  # a part of an error of torch, and what it means here
    "'lengths' argument should be a 1D CPU int64 tensor": "pack_padded_sequence reads the lengths as numbers, which a "
    "recording does not have; the laws that call the model decide without one",
}


def refusal_of(error: Exception) -> str:
    """Why an error of a call ends its recording, in one line."""
    text = first_line(error)
    return NOT_RECORDED + next((plain for part, plain in _IN_PLAIN_WORDS.items() if part in text), text)


def reason_of(error: Exception) -> str:
    """Why a call cannot be recorded, as a part of a sentence."""
    return str(error).removeprefix(NOT_RECORDED) if isinstance(error, CaptureError) else first_line(error)


class RecordingRefused(BaseException):
    """The call does what cannot be recorded: it asks for a value. The message says what, with the model's line."""
