"""The processor and the software of a benchmark, in words."""

from __future__ import annotations

import datetime as dt
import os
import platform
from pathlib import Path

import torch

from orderproof.encodings import kernels

# The instruction sets that decide which code torch, inductor and the kernels of this package run.
_FEATURES = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
             "amx_tile", "amx_bf16", "neon", "asimd", "sve", "bf16")  # fmt: skip
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def processor() -> list[str]:
    """The lines of a page that say on what it was measured."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    named = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in named.items()}
    model = fields.get("model name") or platform.machine()
    kernel = "compiled kernel" if kernels.kernels_available() else "no compiled kernel"
    today = dt.datetime.now(dt.UTC).date()
    has = (fields.get("flags") or fields.get("Features") or "").split()
    sets = ", ".join(name for name in _FEATURES if name in has) or "unknown"
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    lines = [
        f"{today}, {model}, one thread, torch {torch.__version__}, {kernel}; {load}.",
        f"Instruction sets: {sets} (torch uses {torch.backends.cpu.get_cpu_capability()}). Caches: {_caches()}.",
    ]
    if "avx512f" not in has:
        lines.append("Without AVX-512, the ratios differ from those of a machine with it.")
    return lines


def _caches() -> str:
    found = []
    for folder in sorted(_CACHES.glob("index*")):
        level, kind, size = ((folder / name).read_text(encoding="utf-8").strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found) or "unknown"
