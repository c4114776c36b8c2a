"""Compare three views of each architecture of transformers: the recording, torch.export, and the eager call.

    python tools/recording_differences.py results.jsonl [--export] [--worker 0/2] [NAME ...]
    python tools/recording_differences.py results.jsonl --summary

For each tiny architecture: how it was recorded (as it runs; with parts replaced; by torch.export; not at all, with the
reason), by how much the recorded graph and the exported graph differ from the eager call on the same tokens, and the
verdicts of the causal and permutation laws from each graph. The operators of a recording and of the eager call are
compared by the recording itself. The file gets one line for each architecture; a run goes on where an earlier one
stopped. All of them take a quarter of an hour of processor time, with --export an hour.
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

from orderproof.auditing.decide.verdict import prove_law
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.recorded_call import Recording
from orderproof.errors import CaptureError, OrderproofError, first_line
from orderproof.laws import find_proved_law
from orderproof.models import Subject, load
from orderproof.models.hf.architectures import known_architectures
from orderproof.recording.captured_graph import CapturedGraph, find_cut, leaves_by_name
from orderproof.recording.execution import execute, relative_difference
from orderproof.recording.export.capture import capture, export
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
    replaced = captured.patched_because or captured.exported_because
    patches = subject.export_context if replaced else nullcontext
    with torch.no_grad(), patches(), seeded_random(0):  # some models draw random numbers in eval mode
        eager = leaves_by_name(subject.module(*(x.clone() for x in inputs)))  # some models write to their inputs
    with seeded_random(0):
        found = execute(captured, tuple(x.clone() for x in inputs))
    return max((relative_difference(value, eager[name]) for name, value in found.items() if name in eager), default=0.0)


def examine(name: str, *, with_export: bool) -> dict[str, Any]:
    """One line of the results."""
    subject = load(f"arch:{name}", tiny=True)
    inputs = subject.sample(subject.default_length, 0).inputs
    options = {"values": subject.buffer_values, "quiet": subject.export_context}
    start = time.process_time()
    recorded = capture(subject.module, inputs, cut=subject.patch_embedding_path, **options)
    row: dict[str, Any] = {
        "seconds": round(time.process_time() - start, 2),
        "operators": len(recorded.graph.nodes),
        "replaced": recorded.patched_because,
        "exported": recorded.exported_because,
        "difference": _difference(recorded, subject, inputs),
    }
    if with_export and not recorded.exported_because:
        try:
            row |= _compared_with_export(subject, recorded, inputs, options)
        except CaptureError as error:
            row["export_failure"] = first_line(error)
    return row


def _compared_with_export(
    subject: Subject, recorded: CapturedGraph, inputs: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    start = time.process_time()
    exported = export(subject.module, inputs, **options)
    seconds = round(time.process_time() - start, 2)
    exported.exported_because = "asked for"
    if subject.patch_embedding_path is not None:
        exported.start = find_cut(exported.graph, subject.patch_embedding_path)
    return {
        "export_seconds": seconds,
        "export_difference": _difference(exported, subject, inputs),
        "verdicts": _verdicts(subject, recorded),
        "export_verdicts": _verdicts(subject, exported),
    }


def _verdicts(subject: Subject, captured: CapturedGraph) -> dict[str, str]:
    """The verdict of each law on the first output, from this graph."""
    context = AuditContext(subject, subject.default_length)
    context.recording = Recording(captured, mismatch=None)  # `_difference` compares it with the model
    return {law: prove_law(context, find_proved_law(law))[0].verdict for law in LAWS}


def summarize(rows: list[dict[str, Any]]) -> str:
    """The counts, and every architecture that was not recorded as it runs."""
    kinds = Counter(map(_kind, rows))
    lines = [f"{count:5}  {kind}" for kind, count in kinds.most_common()]
    lines.append(f"{sum('export_failure' in r for r in rows):5}  of these not exported by torch.export")
    for row in rows:
        if _kind(row) not in ("recorded as it runs", "no model"):
            lines.append(f"{row['name']}: {_kind(row)}: {row.get('error') or row['replaced'] or row['exported']}")
        far = [key for key in ("difference", "export_difference") if row.get(key, 0) > CLOSE]
        lines += [f"{row['name']}: {key} {row[key]:.2g}" for key in far]
        if row.get("verdicts") != row.get("export_verdicts"):
            lines.append(f"{row['name']}: verdicts {row['verdicts']}, from torch.export {row['export_verdicts']}")
    both = [r for r in rows if "export_seconds" in r]
    if both:
        ours, theirs = (sum(r[k] for r in both) for k in ("seconds", "export_seconds"))
        lines.append(f"{len(both)} by both: recorder {ours:.0f} s, torch.export {theirs:.0f} s of processor time")
    return "\n".join(lines)


def _kind(row: dict[str, Any]) -> str:
    if "error" in row:
        return "no model" if row["no_model"] else "not recorded"
    if row["exported"]:
        return "recorded by torch.export"
    return "recorded with parts replaced" if row["replaced"] else "recorded as it runs"


def main() -> None:
    """Run, or summarize."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--export", action="store_true", help="compare with torch.export too")
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
            row |= examine(name, with_export=arguments.export)
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
