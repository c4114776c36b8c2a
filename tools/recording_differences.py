"""Compare the recording of each architecture of transformers with the eager call.

    python tools/recording_differences.py results.jsonl [--worker 0/2] [NAME ...]
    python tools/recording_differences.py results.jsonl --summary

For each tiny architecture: how it was recorded (as it runs; with parts replaced; not at all, with the reason), and by
how much the recorded graph differs from the eager call on the same tokens. The operators of a recording and of the
eager call are compared by the recording itself. The file gets one line for each architecture; a run goes on where an
earlier one stopped. All of them take a quarter of an hour of processor time.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from orderproof.errors import CaptureError, OrderproofError, first_line
from orderproof.models import Subject, load
from orderproof.models.hf.architectures import known_architectures
from orderproof.recording.capture import capture
from orderproof.recording.captured_graph import CapturedGraph, leaves_by_name
from orderproof.recording.execution import execute, relative_difference
from orderproof.seeded_random import seeded_random

LAWS = ("causal", "permutation")
LIMIT = 240  # seconds for one architecture
CLOSE = 1e-4  # float32


class _OutOfTime(BaseException):
    pass


def _raise_out_of_time(*_: object) -> None:
    raise _OutOfTime


def _difference(captured: CapturedGraph, subject: Subject, inputs: tuple[Any, ...]) -> float:
    """The largest relative difference of an output of the graph from the eager call."""
    patches = subject.export_context if captured.patched_because else nullcontext
    with torch.no_grad(), patches(), seeded_random(0):  # some models draw random numbers in eval mode
        eager = leaves_by_name(subject.module(*(x.clone() for x in inputs)))  # some models write to their inputs
    with seeded_random(0):
        found = execute(captured, tuple(x.clone() for x in inputs))
    return max((relative_difference(value, eager[name]) for name, value in found.items() if name in eager), default=0.0)


def examine(name: str) -> dict[str, Any]:
    """One line of the results."""
    subject = load(f"arch:{name}", tiny=True)
    inputs = subject.sample(subject.default_length, 0).inputs
    options = {"values": subject.buffer_values, "quiet": subject.export_context}
    start = time.process_time()
    recorded = capture(subject.module, inputs, cut=subject.patch_embedding_path, **options)
    return {
        "seconds": round(time.process_time() - start, 2),
        "operators": len(recorded.graph.nodes),
        "replaced": recorded.patched_because,
        "difference": _difference(recorded, subject, inputs),
    }


def summarize(rows: list[dict[str, Any]]) -> str:
    """The counts, and every architecture that was not recorded as it runs."""
    kinds = Counter(map(_kind, rows))
    lines = [f"{count:5}  {kind}" for kind, count in kinds.most_common()]
    for row in rows:
        if _kind(row) not in ("recorded as it runs", "no model"):
            lines.append(f"{row['name']}: {_kind(row)}: {row.get('error') or row['replaced']}")
        if row.get("difference", 0) > CLOSE:
            lines.append(f"{row['name']}: difference {row['difference']:.2g}")
    return "\n".join(lines)


def _kind(row: dict[str, Any]) -> str:
    if "error" in row:
        return "no model" if row["no_model"] else "not recorded"
    return "recorded with parts replaced" if row["replaced"] else "recorded as it runs"


def main() -> None:
    """Run, or summarize."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--worker", default="0/1", help="which part of the names, of how many")
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_intermixed_args()
    rows = [json.loads(x) for x in arguments.results.read_text().splitlines()] if arguments.results.exists() else []
    if arguments.summary:
        print(summarize(rows))
        return
    done = {row["name"] for row in rows}
    part, parts = map(int, arguments.worker.split("/"))
    own = (arguments.names or sorted(known_architectures()))[part::parts]  # the same ones when a run goes on
    names = [x for x in own if x not in done]
    signal.signal(signal.SIGALRM, _raise_out_of_time)
    for place, name in enumerate(names):
        print(f"{place + 1} of {len(names)}: {name}", flush=True)
        row: dict[str, Any] = {"name": name}
        signal.alarm(LIMIT)
        try:
            row |= examine(name)
        except (OrderproofError, RuntimeError, ValueError, TypeError) as error:
            row |= {"error": first_line(error), "no_model": not isinstance(error, CaptureError)}
        except _OutOfTime:
            row |= {"error": f"more than {LIMIT} seconds", "no_model": False}
        finally:
            signal.alarm(0)
        with arguments.results.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
