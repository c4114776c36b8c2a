"""The speed of rotary encoding on a GPU, compared with memory bandwidth and torch.compile.

    python benchmarks/rotary_on_gpu.py

The limit is a device-to-device copy of queries and keys: rotation reads and writes the same bytes. The target is 85 %
of its speed with precomputed angles, which all layers of a model share; a whole call also computes them. Each number
is a median over rounds in which all candidates run in turn, timed with device events. Nothing is written to a file.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from orderproof import positions
from orderproof.encodings import Rotary, kernels
from orderproof.encodings._rotary_pairs import apply_rotary

Run = Callable[[], object]
SHAPES = {"train": ((8, 32, 4096, 128), 8), "prefill": ((1, 32, 32768, 128), 8), "decode": ((64, 32, 1, 128), 8)}
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
ROUNDS = 30
TARGET = 0.85


def milliseconds(candidates: dict[str, Run]) -> dict[str, float]:
    """The median time of each candidate."""
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(ROUNDS + 3):  # the first rounds compile and warm up
        for name, run in candidates.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            stop.record()
            stop.synchronize()
            if number >= 3:
                taken[name].append(start.elapsed_time(stop))
    return {name: statistics.median(times) for name, times in taken.items()}


def candidates(layout: str, q: Tensor, k: Tensor) -> dict[str, Run]:
    """The candidates for one shape."""
    rotary = Rotary(q.shape[-1], layout=layout)  # type: ignore[arg-type]
    p = positions.offset(1000, q.shape[2]).cuda()
    into = (torch.empty_like(q), torch.empty_like(k))
    angles = rotary.cos_sin(p, dtype=torch.float32)

    def plain(q: Tensor, k: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        return rotary.rotate(q, k, p)

    def ready(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        return tuple(apply_rotary(x, cos, sin, layout=layout) for x in (q, k))  # type: ignore[arg-type]

    compiled, compiled_ready = (torch.compile(f, fullgraph=True, dynamic=False) for f in (plain, ready))
    return {
        "copy": lambda: (into[0].copy_(q), into[1].copy_(k)),
        "angles ready": lambda: kernels.rotate_on_gpu(q, k, (angles, angles), into, layout=layout),
        "compiled, angles ready": lambda: compiled_ready(q, k, *angles),
        "whole call": lambda: rotary.rotate(q, k, p, out=into),
        "compiled, whole call": lambda: compiled(q, k, p),
    }


def main() -> int:
    """Print the speeds; return 1 without a usable GPU."""
    if not torch.cuda.is_available():
        print("rotary_on_gpu: expected a GPU, torch sees none", file=sys.stderr)
        return 1
    probe = torch.ones(1, 1, 1, 2, device="cuda")
    if not kernels.can_rotate_on_gpu(probe, probe):
        print("rotary_on_gpu: expected Triton, which is missing, fails here or is disabled", file=sys.stderr)
        return 1
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; target: {TARGET:.0%} of copying, angles ready")
    for name, (shape, key_heads) in SHAPES.items():
        for dtype in DTYPES:
            for layout in ("half", "interleaved"):
                torch.compiler.reset()
                q = torch.randn(shape, device="cuda").to(dtype)
                k = torch.randn(shape[0], key_heads, *shape[2:], device="cuda").to(dtype)
                with torch.no_grad():
                    found = milliseconds(candidates(layout, q, k))
                moved = 2 * (q.numel() + k.numel()) * q.element_size()
                speed = moved / found["copy"] / 1e6
                words = ", ".join(f"{n} {t:.3f} ms ({found['copy'] / t:.0%})" for n, t in found.items())
                reached = "reached" if found["copy"] / found["angles ready"] >= TARGET else "missed"
                print(f"{name} {shape} {str(dtype)[6:]} {layout}: copy at {speed:.0f} GB/s; {words}; target {reached}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
