"""The functions that torch.compile has compiled."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from orderproof.recording.flex_attention import uncompiled_flex_attention


@contextmanager
def without_compilation() -> Iterator[None]:
    """A block in which functions compiled by torch.compile run as the Python code that it was given."""
    with uncompiled_flex_attention():
        if "torch._dynamo" not in sys.modules:  # nothing was compiled, and importing the compiler takes a second
            yield
            return
        with torch.compiler.set_stance("force_eager"):
            yield


def forget_compiled_code() -> None:
    """Let torch compile again: code that it compiled, or failed to compile, under a mode refers to that mode."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
