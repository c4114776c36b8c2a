"""A switch for the compiled kernels of this package.

A kernel computes in one call what several operators of torch do, and is none of them: a recording cannot follow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True


@contextmanager
def without_compiled_kernels() -> Iterator[None]:
    """Let the operators of torch compute what the kernels would."""
    global enabled
    before, enabled = enabled, False
    try:
        yield
    finally:
        enabled = before
