"""Torch's random generators with a seed, for one block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded_random(seed: int) -> Iterator[None]:
    """Seed torch's random generators for a block, and restore the processor's afterwards."""
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed formats the stack for each accelerator that is not initialized, and keeps the text for the
        # initialization. That takes as long as several calls of a small model.
        if _accelerator_is_used():
            torch.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)
        yield


def _accelerator_is_used() -> bool:
    device = torch.accelerator.current_accelerator()
    if device is None:
        return False
    lazy = {"cuda": torch.cuda, "xpu": torch.xpu}
    return device.type not in lazy or lazy[device.type].is_initialized()
