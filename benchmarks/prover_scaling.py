"""How the prover's cost grows with depth and with length, and the exponents that fit.

    python benchmarks/prover_scaling.py                              depth 2..128 at 7 tokens, length 8..512 at 2 layers
    python benchmarks/prover_scaling.py --markdown docs/evidence/benchmarks/scaling.md   and write the tables there

A Llama of small width without weights, law `causal`, with SDPA (its mask is a flag) and eager attention (its mask is a
tensor). An exponent is the slope of a line through log(seconds) against log(size), from the third size on, where what
costs the same at every size no longer rules. Each number is one run, in one process, after one that is not counted.

The last table is of the theorem for every length: `export` is torch.export at 7 tokens, `record open` the recording
with an open number of tokens, `theorem` the derivation and its solver. theorem / export should be at most 0.5 at 2
layers and 0.1 at 32, whose layers are one code.
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

from prover import analyse, capture_graph, export_graph, peak_memory, prove_every_length, timed

from orderproof.laws import find_proved_law
from orderproof.models import load

SPEC = (
    "arch:llama?num_hidden_layers={layers}&hidden_size=64&num_attention_heads=4&num_key_value_heads=4"
    "&intermediate_size=128&vocab_size=99"
)
DEPTHS = (2, 4, 8, 16, 32, 64, 128)
MAX_THEOREM_RATIOS = {2: 0.5, 32: 0.1}  # theorem / export, by layers
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
UNCOUNTED = 2  # sizes at which what costs the same at every size rules
LEAST_ROWS = UNCOUNTED + 2
COLUMNS = ("layers", "tokens", "nodes", "repeated", "capture", "interpret")


@dataclass(frozen=True)
class Row:
    """One depth at one length."""

    layers: int
    tokens: int
    nodes: int
    repeated: int  # steps that repeat an earlier one
    capture: float  # [s], and the next
    interpret: float


def measure(layers: int, tokens: int, attention: str) -> Row:
    """Capture and interpret one model."""
    subject = load(SPEC.format(layers=layers), attention=attention)
    law = find_proved_law("causal")
    capture, captured = timed(lambda: capture_graph(subject, tokens))
    interpret, done = timed(lambda: analyse(subject, captured, law))
    return Row(
        layers,
        tokens,
        len(captured.graph.nodes),
        len(done.first_occurrence),
        capture,
        interpret,
    )


@dataclass(frozen=True)
class TheoremRow:
    """The theorem for every length at one depth."""

    layers: int
    attention: str
    export: float  # [s], and the next two
    record_open: float
    theorem: float

    @property
    def ratio(self) -> float:
        return self.theorem / self.export


def measure_theorem(layers: int, attention: str) -> TheoremRow:
    """Export one model at 7 tokens, and prove the law for every length."""
    subject = load(SPEC.format(layers=layers), attention=attention)
    exporting, _ = timed(lambda: export_graph(subject, 7))
    recording, proving = prove_every_length(subject, find_proved_law("causal"))
    return TheoremRow(layers, attention, exporting, recording, proving)


def theorem_table(rows: list[TheoremRow]) -> str:
    """The rows, and their ratios against the limits."""
    names = ("layers", "attention", "export", "record open", "theorem", "theorem / export")
    lines = ["## Theorem for every length", "", "| " + " | ".join(names) + " |", "| ---: " * len(names) + "|"]
    for row in rows:
        numbers = (row.export, row.record_open, row.theorem, row.ratio)
        lines.append(f"| {row.layers} | {row.attention} | " + " | ".join(f"{x:.3f}" for x in numbers) + " |")
    limited = [(row, MAX_THEOREM_RATIOS[row.layers]) for row in rows if row.layers in MAX_THEOREM_RATIOS]
    verdicts = [
        f"{row.ratio:.3f} at {row.layers} layers with {row.attention} attention, "
        f"{'within' if row.ratio <= limit else 'ABOVE'} the limit of {limit}"
        for row, limit in limited
    ]
    return "\n".join([*lines, "", f"theorem / export: {'; '.join(verdicts)}.", ""])


def exponent(rows: list[Row], size: str, what: str) -> float:
    """The slope of log(what) against log(size)."""
    kept = rows[UNCOUNTED:]
    x, y = (np.log([getattr(r, name) for r in kept]) for name in (size, what))
    return float(np.polyfit(x, y, 1)[0])


def table(title: str, rows: list[Row], size: str) -> str:
    """The rows, and the exponents under them."""
    lines = [f"## {title}", "", "| " + " | ".join(COLUMNS) + " |", "| ---: " * len(COLUMNS) + "|"]
    for row in rows:
        cells = [getattr(row, name) for name in COLUMNS]
        lines.append("| " + " | ".join(f"{c:,}" if isinstance(c, int) else f"{c:.3f}" for c in cells) + " |")
    fitted = ", ".join(f"{name} {exponent(rows, size, name):.2f}" for name in ("capture", "interpret"))
    return "\n".join([*lines, "", f"Exponents in {size}: {fitted}.", ""])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the tables here")
    parser.add_argument("--most", type=int, default=512, help="no depth and no length beyond this, at least 64")
    options = parser.parse_args()
    least = max(DEPTHS[LEAST_ROWS - 1], LENGTHS[LEAST_ROWS - 1])
    if options.most < least:
        parser.error(f"an exponent needs {LEAST_ROWS} sizes, so --most must be at least {least}")
    measure(2, 8, "sdpa")
    parts = []
    for attention in ("sdpa", "eager"):
        depths = [measure(d, 7, attention) for d in DEPTHS if d <= options.most]
        parts.append(table(f"Depth, {attention}", depths, "layers"))
        print(parts[-1], flush=True)
        lengths = [measure(2, n, attention) for n in LENGTHS if n <= options.most]
        parts.append(table(f"Length, {attention}", lengths, "tokens"))
        print(parts[-1], flush=True)
    measure_theorem(2, "sdpa")
    theorems = [measure_theorem(d, a) for a in ("sdpa", "eager") for d in DEPTHS if d <= options.most]
    parts.append(theorem_table(theorems))
    print(parts[-1], flush=True)
    facts = [
        f"date: {dt.datetime.now(dt.UTC).date().isoformat()}",
        f"machine: {platform.machine()}, {torch.get_num_threads()} threads, other work on it not excluded",
        f"versions: Python {platform.python_version()}, torch {torch.__version__}",
        f"peak memory of the whole run: {peak_memory():.2f} GB",
    ]
    print("\n".join(facts))
    if options.markdown:
        head = "# How the cost grows\n\n"
        head += "Written by `python benchmarks/prover_scaling.py --markdown docs/evidence/benchmarks/scaling.md`; "
        head += "not edited by hand.\n\n"
        note = "Processor seconds in the columns capture and interpret. Certificates of proofs at one length, whose "
        note += "time and size were in these tables, were removed on 2026-11-29.\n\n"
        options.markdown.write_text(head + note + "\n".join(f"- {f}" for f in facts) + "\n\n" + "\n".join(parts))


if __name__ == "__main__":
    main()
