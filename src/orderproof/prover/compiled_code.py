"""The functions that torch.compile has compiled."""

from __future__ import annotations

import sys

import torch


def forget_compiled_code() -> None:
    """Let torch compile again: code that it compiled, or failed to compile, under a mode refers to that mode."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
