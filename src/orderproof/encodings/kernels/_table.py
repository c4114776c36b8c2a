"""The table kernel, as tensors see it: the cosines and sines of many positions, in float32."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from orderproof.encodings.kernels._library import on_large_pages
from orderproof.encodings.kernels._turn import plan_of

# From here on each thread has enough to do to be worth its start.
_THREAD_VALUES = 1 << 20


def table(frequencies: tuple[float, ...], gain: float, positions: Tensor) -> tuple[Tensor, Tensor] | None:
    """The cosines and sines [token, pair] of contiguous int64 positions on the CPU, none of them negative.

    None where there is no kernel.
    """
    plan = plan_of(frequencies, 2 * len(frequencies), "half", gain, None)
    if plan is None:
        return None
    tokens, pairs = len(positions), len(frequencies)
    cosine, sine = (torch.empty(tokens, pairs, dtype=torch.float32, device=positions.device) for _ in range(2))
    on_large_pages(plan.found, cosine, sine)

    def fill(start: int, stop: int) -> None:
        out = (x.data_ptr() + 4 * pairs * start for x in (cosine, sine))
        plan.found.table(plan.address, positions.data_ptr() + 8 * start, stop - start, *out)

    threads = max(1, min(torch.get_num_threads(), tokens * pairs // _THREAD_VALUES))
    ends = [tokens * n // threads for n in range(threads + 1)]
    if threads == 1:
        fill(0, tokens)
    else:
        with ThreadPoolExecutor(threads) as pool:  # ctypes lets go of the interpreter while C runs
            list(pool.map(fill, ends[:-1], ends[1:]))
    return cosine, sine
