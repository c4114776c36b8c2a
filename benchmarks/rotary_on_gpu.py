"""The speed of rotary encoding on a GPU, compared with memory bandwidth and torch.compile.

    python benchmarks/rotary_on_gpu.py                                      print the tables
    python benchmarks/rotary_on_gpu.py --markdown docs/evidence/benchmarks/gpu.md    and write them there

The limit is a device-to-device copy of queries and keys: rotation reads and writes the same bytes. The target is 85 %
of its speed with precomputed angles, which all layers of a model share; a whole call also computes them. Each time on
the GPU is a median over rounds in which all candidates run in turn, timed with device events. Before each one a large
buffer is written: the cache holds nothing of the operands, and the GPU is busy while Python launches the kernels, as in
a model. The time of Python until the kernels are launched is a table of its own; where it is larger, it decides.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from orderproof import positions
from orderproof.encodings import Rotary, kernels
from orderproof.encodings._rotary_pairs import apply_rotary

Run = Callable[[], object]
SHAPES = {"train": ((8, 32, 4096, 128), 8), "prefill": ((1, 32, 32768, 128), 8), "decode": ((64, 32, 1, 128), 8)}
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
ROUNDS = 30
BUSY = 4 * 2**30  # bytes that are written before each candidate: about 1 ms
TARGET = 0.85


def milliseconds(candidates: dict[str, Run], busy: Tensor) -> dict[str, tuple[float, float]]:
    """The median times of each candidate: on the GPU, and of Python until its kernels are launched."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for number in range(ROUNDS + 3):  # the first rounds compile and warm up
        for name, run in candidates.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            busy.zero_()
            start.record()
            began = time.perf_counter()
            run()
            launched = time.perf_counter() - began
            stop.record()
            stop.synchronize()
            if number >= 3:
                taken[name].append((start.elapsed_time(stop), 1e3 * launched))
    return {name: tuple(map(statistics.median, zip(*times, strict=True))) for name, times in taken.items()}  # type: ignore[misc]


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


def tables() -> list[str]:
    """The lines of the two tables."""
    busy = torch.empty(BUSY, dtype=torch.uint8, device="cuda")
    on_gpu, of_python, missed, names = [], [], [], []
    for name, (shape, key_heads) in SHAPES.items():
        for dtype in DTYPES:
            for layout in ("half", "interleaved"):
                torch.compiler.reset()
                q = torch.randn(shape, device="cuda").to(dtype)
                k = torch.randn(shape[0], key_heads, *shape[2:], device="cuda").to(dtype)
                with torch.no_grad():
                    found = milliseconds(candidates(layout, q, k), busy)
                names = [n for n in found if n != "copy"]
                limit = found["copy"][0]
                speed = 2 * (q.numel() + k.numel()) * q.element_size() / limit / 1e6
                case = f"| {name} {shape} | {str(dtype)[6:]}, {layout} | "
                on_gpu.append(
                    f"{case}{limit:.3f} | {speed:,.0f} | "
                    + " | ".join(f"{limit / found[n][0]:.0%}" for n in names)
                    + " |"
                )
                of_python.append(case + " | ".join(f"{1e3 * own:.0f}" for _, own in found.values()) + " |")
                if limit / found["angles ready"][0] < TARGET:
                    missed.append(f"{name}, {str(dtype)[6:]}, {layout}")
                print(on_gpu[-1], file=sys.stderr, flush=True)
    return [
        f"## Time on the GPU, as a share of the speed of `copy_` (target: {TARGET:.0%} with angles ready)", "",
        "| shape | dtype, layout | copy_ [ms] | copy_ [GB/s] | " + " | ".join(names) + " |",
        "| --- " * (4 + len(names)) + "|",
        *on_gpu, "", "Target missed: " + ("; ".join(missed) or "nowhere") + ".", "",
        "## Time of Python until all kernels are launched [us]", "",
        "| shape | dtype, layout | copy_ | " + " | ".join(names) + " |",
        "| --- " * (3 + len(names)) + "|", *of_python,
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; return 1 without a usable GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the tables here")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("rotary_on_gpu: expected a GPU, torch sees none", file=sys.stderr)
        return 1
    probe = torch.ones(1, 1, 1, 2, device="cuda")
    if not kernels.can_rotate_on_gpu(probe, probe):
        print("rotary_on_gpu: expected Triton, which is missing, fails here or is disabled", file=sys.stderr)
        return 1
    head = [
        "# Rotary encoding on a GPU", "",
        "Written by `python benchmarks/rotary_on_gpu.py --markdown docs/evidence/benchmarks/gpu.md`; do not edit.", "",
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}; medians of {ROUNDS} rounds. With *angles ready*,",
        "cosines and sines were computed before, as for all layers but the first. A *whole call* computes them.",
        "*Compiled* is the same function under torch.compile.", "",
    ]  # fmt: skip
    text = "\n".join([*head, *tables()]) + "\n"
    print(text)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
