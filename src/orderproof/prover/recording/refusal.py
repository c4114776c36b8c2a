"""The refusal of a recording.

It derives from `BaseException`, so that no `except Exception` of the model swallows it. A model that swallows it all the
same is not recorded either: the recorder keeps every refusal.
"""

from __future__ import annotations


class RecordingRefused(BaseException):
    """The forward call cannot be recorded; the message is the reason, with the line of the model."""
