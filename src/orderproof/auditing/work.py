"""The work of an audit as it is shown: what is done and what is planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str, int, int], None]  # a text, the work done, the work in all


@dataclass
class Work:
    """The work done and planned, in seconds on a small checkpoint, and how it is shown."""

    show: Progress
    planned: float
    done: float = 0.0
    _step: float = 0.0
    _text: str = ""

    def begin(self, text: str, amount: float) -> None:
        """Show a step that begins."""
        self._step, self._text = amount, text
        self._show(text, 0.0)

    def end(self, amount: float) -> None:
        """Count a step that has ended, or that there was no need for."""
        self.done, self._step = self.done + amount, 0.0

    def compared(self, done: int, planned: int) -> None:
        """Show how many comparisons of the step are done."""
        self._show(f"{self._text}, {done} of {planned} comparisons", done / planned)

    def _show(self, text: str, part: float) -> None:
        self.show(text, round(10 * min(self.done + part * self._step, self.planned)), round(10 * self.planned))
