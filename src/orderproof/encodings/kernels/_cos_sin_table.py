"""The CPU kernel for cosines and sines of many positions, in float32."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from orderproof.encodings.kernels._library import advise_huge_pages
from orderproof.encodings.kernels._rotary_cpu import rotary_plan

# Work per thread that is worth the cost of starting one.
_THREAD_VALUES = 1 << 20


def cos_sin_table(frequencies: tuple[float, ...], gain: float, positions: Tensor) -> tuple[Tensor, Tensor] | None:
    """Cosines and sines [token, pair] of contiguous, non-negative int64 positions on the CPU.

    None if there is no compiled kernel.
    """
    plan = rotary_plan(frequencies, 2 * len(frequencies), "half", gain, None)
    if plan is None:
        return None
    tokens, pairs = len(positions), len(frequencies)
    cosine, sine = (torch.empty(tokens, pairs, dtype=torch.float32, device=positions.device) for _ in range(2))
    advise_huge_pages(plan.library, cosine, sine)

    def fill(start: int, stop: int) -> None:
        out = (x.data_ptr() + 4 * pairs * start for x in (cosine, sine))
        plan.library.cos_sin_table(plan.address, positions.data_ptr() + 8 * start, stop - start, *out)

    threads = max(1, min(torch.get_num_threads(), tokens * pairs // _THREAD_VALUES))
    ends = [tokens * n // threads for n in range(threads + 1)]
    if threads == 1:
        fill(0, tokens)
    else:
        with ThreadPoolExecutor(threads) as pool:  # ctypes releases the GIL while C runs
            list(pool.map(fill, ends[:-1], ends[1:]))
    return cosine, sine
