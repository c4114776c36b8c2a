"""Processor seconds of the prover: to record a model's graph, and to interpret it for every law.

    python benchmarks/prover.py                                   every model, default sizes, without weights
    python benchmarks/prover.py --large                           and 405 billion parameters, and 512 tokens
    python benchmarks/prover.py --markdown docs/evidence/benchmarks/prover.md     and write the tables there
    python benchmarks/prover.py --model llama                     only models whose name contains this word

record      the recorder, as `orderproof prove` uses it
export      its peer: torch.export and its decomposition pass, one call of the model included
interpret   all laws together, the classification of constants included
nodes       of the recorded graph
ratio       interpret / export; the limit is 0.1
record/export  the limit is 0.25
Median of three, after one run that is not counted; single numbers for --large.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from orderproof.auditing.record.open_calls import OpenCalls
from orderproof.diagnosis.analysis import Analysis, analyze
from orderproof.diagnosis.domain.constants import Constants
from orderproof.laws import ProvedLaw, proved_laws
from orderproof.models import Subject, bundled, from_module, load
from orderproof.recording.capture import capture
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.kept_operators import is_kept

COMMAND = "python benchmarks/prover.py --large --markdown docs/evidence/benchmarks/prover.md"
MAX_RATIO = 0.1
MAX_RECORD_RATIO = 0.25
REPEATS = 3
ARCHITECTURES = (
    "bert", "roberta", "distilbert", "gpt2", "gpt_neox", "llama", "mistral", "qwen3", "gemma3_text", "t5", "vit"
)  # fmt: skip
BACKENDS = ("sdpa", "eager")
# A 405-billion-parameter Llama, by its published sizes.
LARGEST = (
    "arch:llama?num_hidden_layers=126&hidden_size=16384&num_attention_heads=128&num_key_value_heads=8"
    "&intermediate_size=53248&vocab_size=128256"
)
LONG = "arch:llama?num_hidden_layers=2"
LONG_LENGTH = 512


@dataclass(frozen=True)
class Row:
    """One model."""

    model: str
    backend: str
    parameters: int
    layers: int | None
    length: int
    nodes: int
    record: float
    export: float
    analysis: float

    @property
    def ratio(self) -> float:
        return self.analysis / self.export

    @property
    def record_ratio(self) -> float:
        return self.record / self.export


@dataclass(frozen=True)
class Large:
    """One large run, in a separate process."""

    model: str
    law: str
    parameters: int
    length: int
    nodes: int
    build: float
    capture: float
    interpret: float
    fixed_peak: float  # [GB] of the process until here
    record_open: float  # with an open number of tokens
    theorem: float
    peak: float  # [GB] of the whole process


def models() -> dict[tuple[str, str], Callable[[], Subject]]:
    """The models of the benchmark: (name, attention backend) -> a function that builds it."""
    found: dict[tuple[str, str], Callable[[], Subject]] = {}
    for backend in BACKENDS:
        found["all-MiniLM-L6-v2", backend] = lambda b=backend: bundled(attention=b)
    for name in ARCHITECTURES:
        for backend in BACKENDS:
            found[name, backend] = lambda n=name, b=backend: load(f"arch:{n}", attention=b)
    found["nn.TransformerEncoder", "torch"] = lambda: from_module(_encoder())
    found["nn.MultiheadAttention", "torch"] = lambda: from_module(nn.MultiheadAttention(64, 4, batch_first=True))
    return found


def _encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(64, 4, batch_first=True)
    return nn.TransformerEncoder(layer, num_layers=6, enable_nested_tensor=False).eval()


def capture_graph(subject: Subject, length: int) -> CapturedGraph:
    inputs = subject.sample(length).inputs
    return capture(
        subject.module,
        inputs,
        values=subject.buffer_values,
        quiet=subject.export_context,
        cut=subject.patch_embedding_path,
    )


def export_graph(subject: Subject, length: int) -> ExportedProgram:
    """The call once, its export, and operators without a rule decomposed."""
    inputs = subject.sample(length).inputs
    table = {target: one for target, one in torch.export.default_decompositions().items() if not is_kept(target)}
    with torch.no_grad(), subject.export_context():
        subject.module(*inputs)
        return torch.export.export(subject.module, inputs, strict=False).run_decompositions(table)


def analyse(subject: Subject, captured: CapturedGraph, law: ProvedLaw) -> Analysis:
    """Interpret one graph for one law."""
    constants = Constants(captured.graph, captured.state, captured.values, parameters=captured.parameters)
    axes = (
        {captured.start: 1}
        if captured.start is not None
        else dict(zip(captured.inputs, subject.token_axes, strict=True))
    )
    facts = {n: law.input_fact(tuple(int(s) for s in n.meta["val"].shape), axis) for n, axis in axes.items()}
    return analyze(captured.graph, constants, facts)


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    made = task()
    return time.process_time() - began, made


def measure(key: tuple[str, str], build: Callable[[], Subject], *, repeats: int = REPEATS) -> Row:
    """Capture and interpret one model, once to warm up and then `repeats` times."""
    subject = build()
    records, exports, walks = [], [], []
    nodes = 0
    for _ in range(repeats + 1):
        taken, captured = timed(lambda: capture_graph(subject, subject.default_length))
        nodes = len(captured.graph.nodes)
        records.append(taken)
        exports.append(timed(lambda: export_graph(subject, subject.default_length))[0])
        walks.append(
            timed(
                lambda c=captured: [analyse(subject, c, law) for law in proved_laws() if law.call_modes == ("plain",)]
            )[0]
        )
    return Row(
        *key, parameters=subject.parameter_count, layers=subject.layer_count, length=subject.default_length,
        nodes=nodes,
        record=statistics.median(records[1:]), export=statistics.median(exports[1:]),
        analysis=statistics.median(walks[1:]),
    )  # fmt: skip


def large(spec: str, law_name: str, length: int | None) -> Large:
    """Build, capture and interpret one large model, and prove a law of it; the process should do nothing else."""
    law = next(law for law in proved_laws() if law.name == law_name)
    build, subject = timed(lambda: load(spec))
    length = length or subject.default_length
    capturing, captured = timed(lambda: capture_graph(subject, length))
    walking, _ = timed(lambda: analyse(subject, captured, law))
    fixed_peak = peak_memory()
    recording_open, proving = prove_every_length(subject, law)
    return Large(
        model=spec, law=law.name, parameters=subject.parameter_count, length=length, nodes=len(captured.graph.nodes),
        build=build, capture=capturing, interpret=walking, fixed_peak=fixed_peak,
        record_open=recording_open, theorem=proving, peak=peak_memory(),
    )  # fmt: skip


def prove_every_length(subject: Subject, law: ProvedLaw) -> tuple[float, float]:
    """Seconds to record a model with an open number of tokens, and to prove a law for every length."""
    calls = OpenCalls(subject)
    recording, _ = timed(lambda: calls.recorded("plain"))
    proving, proofs = timed(lambda: calls.proofs(law, "plain"))
    missing = [proof.reason for _, by_output in proofs for proof in by_output.values() if not proof.proved]
    if missing:
        raise AssertionError(f"{subject.name}: no theorem: {missing[0]}")
    return recording, proving


def peak_memory() -> float:
    """The peak memory of this process [GB]; getrusage would count that of the parent it was forked from."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e9


def large_in_own_process(spec: str, law: str, length: int | None) -> Large:
    arguments = [spec, law, str(length or 0)]
    done = subprocess.run(
        [sys.executable, __file__, "--one-large", *arguments], check=True, capture_output=True, text=True
    )
    return Large(**json.loads(done.stdout.splitlines()[-1]))


# ---------------------------------------------------------------- the page

HEADER = (
    "model",
    "attention_backend",
    "parameters",
    "layers",
    "length",
    "nodes",
    "record [s]",
    "export [s]",
    "interpret [s]",
    "record/export",
    "ratio",
)
LARGE_TEXT = (
    "One run each in a separate process, with one law and without weights. The columns before `record open` are of a "
    "proof at one length, those from there on of the theorem for every length. Certificates of proofs at one length, "
    "whose time and size were in these tables, were removed on 2026-11-29."
)
LARGE_HEADER = ("law", "parameters", "length", "nodes", "build [s]", "record [s]", "interpret [s]",
                "peak memory [GB]", "record open [s]", "theorem [s]",
                "peak memory with theorem [GB]")  # fmt: skip


def cells(row: Row) -> tuple[str, ...]:
    return (
        row.model, row.backend, f"{row.parameters:,}", "-" if row.layers is None else str(row.layers),
        str(row.length), f"{row.nodes:,}", f"{row.record:.3f}",
        f"{row.export:.3f}", f"{row.analysis:.3f}", f"{row.record_ratio:.3f}", f"{row.ratio:.3f}",
    )  # fmt: skip


def large_cells(row: Large) -> tuple[str, ...]:
    return (
        row.law, f"{row.parameters:,}", str(row.length), f"{row.nodes:,}", f"{row.build:.1f}", f"{row.capture:.1f}",
        f"{row.interpret:.2f}", f"{row.fixed_peak:.2f}",
        f"{row.record_open:.1f}", f"{row.theorem:.1f}", f"{row.peak:.2f}",
    )  # fmt: skip


def markdown(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    """A Markdown table whose columns are padded, so that it is readable as text."""
    widths = [max(len(line[k]) for line in [header, *lines]) for k in range(len(header))]
    rows = [header, tuple("-" * w for w in widths), *lines]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows)


def machine() -> Iterator[str]:
    """The date, the processor and the versions; no name of a machine."""
    import transformers

    yield f"date: {dt.datetime.now(tz=dt.UTC).date().isoformat()}"
    yield f"machine: {platform.machine()}, {_processor()}, {os.cpu_count()} cores, other work on them not excluded"
    yield f"threads: {torch.get_num_threads()}"
    yield (
        f"versions: Python {platform.python_version()}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "processor not known"
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "processor not known")


def worst(rows: list[Row]) -> str:
    most = max(rows, key=lambda row: row.ratio)
    slowest = max(rows, key=lambda row: row.record_ratio)
    return "; ".join(
        (
            _against("largest ratio", most.ratio, most, MAX_RATIO),
            _against("largest record/export", slowest.record_ratio, slowest, MAX_RECORD_RATIO),
        )
    )


def _against(name: str, value: float, row: Row, limit: float) -> str:
    verdict = "within" if value <= limit else "ABOVE"
    return f"{name}: {value:.3f} ({row.model}, {row.backend}), {verdict} the limit of {limit}"


def page(about: list[str], rows: list[Row], larges: list[Large]) -> str:
    parts = [
        "# Benchmarks of the prover",
        f"Written by `{COMMAND}`; not edited by hand.",
        "\n".join(f"- {line}" for line in about),
        "## Models of default size",
        (
            "Processor seconds to record a model's graph, to export it with torch.export and its decomposition pass, "
            f"and to interpret it for all laws. Median of {REPEATS} runs after a warm-up run. Architectures "
            f"have their default sizes and no weights. Recording should take at most {MAX_RECORD_RATIO} of exporting, "
            f"and interpreting at most {MAX_RATIO}."
        ),
        markdown(HEADER, [cells(row) for row in rows]),
        worst(rows) + ".",
    ]
    if larges:
        parts += ["## Large models", LARGE_TEXT]
        for row in larges:
            parts += [f"`{row.model}`", markdown(LARGE_HEADER, [large_cells(row)])]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", metavar="WORD", help="only models whose name contains this word")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="counted runs of each model")
    parser.add_argument("--large", action="store_true", help="also 405 billion parameters, and 512 tokens")
    parser.add_argument("--markdown", metavar="PATH", help="write the tables to this file")
    parser.add_argument("--one-large", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if chosen.one_large:
        spec, law, length = chosen.one_large
        print(json.dumps(asdict(large(spec, law, int(length) or None))))
        return 0
    wanted = {k: build for k, build in models().items() if chosen.model is None or chosen.model in k[0]}
    if not wanted:
        parser.error(f"no model's name contains {chosen.model!r}; known: {', '.join(sorted({k[0] for k in models()}))}")
    about = list(machine())
    print("\n".join(about))
    print(f"limits: interpret / export at most {MAX_RATIO}, record / export at most {MAX_RECORD_RATIO}")
    print("\t".join(HEADER))
    rows = []
    for key, build in wanted.items():
        rows.append(measure(key, build, repeats=chosen.repeats))
        print("\t".join(cells(rows[-1])), flush=True)
    print(worst(rows))
    larges = []
    if chosen.large:
        for spec, law, length in ((LARGEST, "causal", None), (LONG, "causal", LONG_LENGTH)):
            larges.append(large_in_own_process(spec, law, length))
            print(f"{spec}\n" + "\t".join(LARGE_HEADER) + "\n" + "\t".join(large_cells(larges[-1])), flush=True)
    if chosen.markdown:
        Path(chosen.markdown).write_text(page(about, rows, larges), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
