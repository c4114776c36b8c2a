"""The role of an input in a report: tokens, a padding mask, position ids, and how it is known."""

from __future__ import annotations

from orderproof.records.document import Record


class InputRole(Record):
    """One input of the model as the audit calls it."""

    name: str
    role: str  # "tokens", "padding mask, 1 at real tokens", "document ids"
    known_by: str = ""  # "its name", "calls: hides a token", "stated"
