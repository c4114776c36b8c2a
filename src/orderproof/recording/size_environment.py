"""The symbols of open sizes, and what a recording asks about them, as torch keeps them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import sympy
from torch._guards import SLoc
from torch._logging._internal import trace_structured
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from orderproof.recording.refusal import RecordingRefused
from orderproof.recording.source import innermost_line

_VALIDATOR = "torch.fx.experimental.validator"


@contextmanager
def _without_validator() -> Iterator[None]:
    """Let torch see that its validator of symbols is off, without importing it: its compiler would come with it.

    That takes 0.7 s, a fifth of an audit of a small module.
    """
    off = ModuleType(_VALIDATOR)
    off.translation_validation_enabled = lambda: False  # type: ignore[attr-defined]
    stands_in = sys.modules.setdefault(_VALIDATOR, off) is off
    try:
        yield
    finally:
        if stands_in:
            del sys.modules[_VALIDATOR]


class SizeEnvironment(ShapeEnv):
    """The questions about symbols, without the lines of code that asked them.

    Torch looks for these lines for its messages, and imports its exporter for that, which takes half a second.

    Attributes:
        kept: Symbols that stay in the sizes if they equal a number.
        open: The symbolic integer of each symbol.
        fixed_at: The line of the model that made a symbol a number.
        why_unreadable: The text of a condition that cannot be read, and nothing for another one.
        unreadable: The first such condition, at which a recording with `kept` symbols ends.

    """

    kept: frozenset[sympy.Symbol] = frozenset()

    def __init__(self, **options: Any) -> None:
        self.open: dict[sympy.Symbol, Any] = {}
        self.fixed_at: dict[sympy.Symbol, str] = {}
        self.why_unreadable: Callable[[Any], str] = lambda _: ""
        self.unreadable = ""
        # Without a folder torch's trace ends at its first record: that of a symbol would import the compiler.
        trace_structured("orderproof", metadata_fn=dict, suppress_context=True, expect_trace_id=False)
        with _without_validator():
            super().__init__(**options)

    def fix(self, expression: Any) -> None:
        """Fix the sizes of which an expression is computed to their examples."""
        for symbol in expression.free_symbols & self.open.keys():
            int(self.open[symbol])

    def _set_replacement(self, a: sympy.Symbol, tgt: sympy.Expr, msg: str) -> None:
        if a not in self.kept or not tgt.is_number:
            self.fixed_at.setdefault(a, innermost_line())
            super()._set_replacement(a, tgt, msg)

    def _log_guard(self, prefix: str, g: Any, forcing_spec: bool) -> None:  # noqa: FBT001 - as torch calls it
        """Note a new condition. Torch prepares a message for its logs here, which takes longer than the question."""
        if self.kept and (text := self.why_unreadable(g)):
            self.unreadable = text
            raise RecordingRefused(text)

    def _get_user_frame(self) -> None:
        return None

    def _get_stack_summary(self, *_args: Any, **_kwargs: Any) -> tuple[SLoc, str]:
        return SLoc(None, None), ""
