"""The reason that a comparison gives where the model raised."""

from __future__ import annotations

from orderproof.errors import OrderproofError, failure_reason, first_line, is_internal
from orderproof.recording.source import source_of_error

CALL_RAISED = "a call that the law makes raised "


def failed_call(error: BaseException) -> str:
    """The reason for a law whose call of the model failed: what it raised and where, and what to do."""
    if isinstance(error, OrderproofError) or is_internal(error):
        return failure_reason(error)
    return f"{CALL_RAISED}{first_line(error)}{source_of_error(error)}: make it work, or name other laws with --law"
