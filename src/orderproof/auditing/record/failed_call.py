"""The reason that a comparison gives where the model raised."""

from __future__ import annotations

from orderproof.errors import OrderproofError, failure_reason, first_line, is_internal
from orderproof.recording.source import source_of_error

CALL_RAISED = "a call that the law makes raised "


def failed_call(error: BaseException) -> str:
    """The reason for a comparison whose call of the model failed: what it raised, and where."""
    if isinstance(error, OrderproofError) or is_internal(error):
        return failure_reason(error)
    return f"{CALL_RAISED}{first_line(error)}{source_of_error(error)}"


def failed_law(error: BaseException) -> str:
    """The reason for a law that no call of the model decides, and what to do."""
    text = failed_call(error)
    return f"{text}: make it work, or name other laws with --law" if text.startswith(CALL_RAISED) else text
