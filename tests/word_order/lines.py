"""Sentences of the tests, their pairs of words marked."""

from __future__ import annotations

LINES = (
    "the *cat* chased the *dog*.",
    "the *wolf* watched the *sheep*.",
    "a *king* feared his *soldier* in the night.",
)
