"""Audits and certificates of some 50 subjects, recorded as JSON and compared between two versions of the code.

    python tools/golden.py record DIRECTORY            run every case and write its JSON (minutes)
    python tools/golden.py compare BEFORE AFTER        list every difference; exit 1 if there is one

A refactoring must not change a verdict. Record a directory before it and another after it, each from its own checkout.
Wording, timings and line numbers of this package's own files are not compared; verdicts, exit codes, entries,
witnesses, proofs, measurements and certificates are. `golden_renames.json` lists the fields and laws that were renamed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SUBJECTS = HERE / "golden_subjects.py"
RENAMES = HERE / "golden_renames.json"
TIMINGS = {"digest", "seconds", "versions", "orderproof_version", "orderproof", "schema"}
WORDING = {
    "assumptions", "change", "detail", "description", "fact", "lemma_statements", "notes", "origin", "origin_module",
    "reason", "remedy", "remedy_diff", "source_line", "statement", "text", "title", "tokens_after", "trait",
}  # fmt: skip
NOISE = 1e-5  # a smaller number is a rounding error of the model itself
CLOSE = 0.02  # relative; measured numbers vary with the order of a sum

TINY = (
    "llama",
    "gpt2",
    "bert",
    "mistral",
    "gemma2",
    "t5",
    "bloom",
    "qwen3",
    "gpt_neox",
    "roberta",
    "mamba",
    "vit",
    "opt",
    "falcon",
    "esm",
    "rwkv",
    "convbert",
    "whisper",
    "deberta",
    "xlm",
)
MODULES = (
    "encoder_layer",
    "decoder_stack",
    "attention",
    "lstm",
    "gru",
    "convolution",
    "deep_set",
    "pooled",
    "off_by_one",
    "padded",
    "unmasked_pads",
    "leaky_batch",
    "random_noise",
    "sinusoidal_encoder",
    "alibi_encoder",
    "rope_decoder",
    "alibi_decoder",
    "learned_decoder",
    "none_decoder",
    "t5_encoder",
    "stateful",
    "fails",
    "two_outputs",
)


def cases() -> dict[str, list[str]]:
    """The command line of each case, by name."""
    found = {
        "bundled": ["audit"],
        "bundled_eager": ["audit", "--attention", "eager", "--law", "OP101", "--law", "OP202"],
    }
    found |= {f"arch_{name}": ["audit", f"arch:{name}", "--tiny"] for name in TINY}
    found |= {f"module_{name}": ["audit", f"{SUBJECTS}:{name}"] for name in MODULES}
    found |= {
        "weightless_llama": ["audit", "arch:llama", "--law", "OP201", "--law", "OP204"],
        "weightless_gpt2": ["audit", "arch:gpt2", "--law", "OP201", "--law", "OP104"],
        "one_layer_gpt2": ["prove", "arch:gpt2?n_layer=1", "--tiny", "--law", "OP102", "--uniform", "wpe"],
        "these_weights": ["prove", f"{SUBJECTS}:zero_table", "--law", "OP101", "--weights", "these"],
        "checked_nodes": ["prove", f"{SUBJECTS}:decoder_stack", "--law", "OP201", "--check-nodes"],
        "expect_fails": ["audit", f"{SUBJECTS}:decoder_stack", "--law", "OP201", "--expect", "OP201=fails"],
        "expect_holds": ["audit", f"{SUBJECTS}:off_by_one", "--law", "OP201", "--expect", "OP201=holds"],
        "expect_undecided": ["audit", f"{SUBJECTS}:undecidable", "--law", "OP201", "--expect", "OP201=holds"],
        "longer": ["audit", f"{SUBJECTS}:rope_decoder", "--length", "12", "--law", "OP201", "--law", "OP402"],
        "missing_file": ["audit", "missing.py:model"],
        "unknown_law": ["audit", f"{SUBJECTS}:lstm", "--law", "nothing_like_it"],
        "unknown_architecture": ["audit", "arch:lama", "--tiny"],
    }
    return found


def run_case(name: str, command: list[str], directory: Path) -> None:
    """Run one command in this process and write what it found."""
    from orderproof.cli import main

    report, certificate = directory / f".{name}.json", directory / f".{name}.certificate"
    sys.argv = ["orderproof", *command, "--quiet", "--json", str(report), "--certificate", str(certificate)]
    errors, code = io.StringIO(), 0
    with contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:  # noqa: BLE001 - a defect is a result of the case, too
            errors.write(traceback.format_exc())
            code = -1
    found: dict[str, Any] = {"exit_code": code, "failed": code in (-1, 2)}
    for key, path in (("report", report), ("certificate", certificate)):
        if path.exists():
            found[key] = json.loads(path.read_text() or "null")
            path.unlink()
    found["text"] = errors.getvalue()
    (directory / f"{name}.json").write_text(json.dumps(found, indent=1))


def record(directory: Path, only: list[str], workers: int) -> int:
    """Run every case in a process of its own, forked from one that has imported torch and transformers."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers  # noqa: F401 - imported once, before the processes are forked

    directory.mkdir(parents=True, exist_ok=True)
    left = [(n, c) for n, c in cases().items() if not only or any(o in n for o in only)]
    context, running = multiprocessing.get_context("fork"), []
    total = len(left)
    while left or running:
        while left and len(running) < workers:
            name, command = left.pop(0)
            process = context.Process(target=run_case, args=(name, command, directory))
            process.start()
            running.append(process)
            print(f"{total - len(left)}/{total} {name}", file=sys.stderr, flush=True)
        running[0].join(0.2)
        running = [p for p in running if p.is_alive()]
    return 0


class Comparison:
    """Differences between two recorded directories, modulo what was renamed."""

    def __init__(self, renames: dict[str, Any]) -> None:
        self.laws: dict[str, str] = renames.get("laws", {})
        self.records: list[dict[str, Any]] = renames.get("records", [])
        self.values: dict[str, dict[str, str]] = renames.get("values", {})  # by field

    def normal(self, value: Any, key: str = "") -> Any:
        """A document without timings and wording, under the current names."""
        if key == "lemma_statements":
            return sorted(value)
        if isinstance(value, dict):
            fields = next((r["fields"] for r in self.records if all(name in value for name in r["has"])), {})
            kept = {fields.get(k, k): v for k, v in value.items() if k not in TIMINGS}
            return {k: self.normal(v, k) for k, v in kept.items() if k not in TIMINGS}
        if key in WORDING:
            return bool(value)
        if isinstance(value, list):
            return [self.normal(v, key) for v in value]
        if isinstance(value, str):
            if key in {"source", "origin_source"} and not value.startswith("modeling_"):
                return bool(value)  # a line of this package, which may move
            return self.values.get(key, self.laws).get(value, value)
        return value

    def differences(self, before: Any, after: Any, path: str = "") -> Iterator[str]:
        """Where two normal documents differ."""
        if isinstance(before, dict) and isinstance(after, dict):
            for key in before.keys() | after.keys():
                if key in before and key in after:
                    yield from self.differences(before[key], after[key], f"{path}.{key}")
                elif key in before and before[key] not in (None, "", [], False):
                    yield f"{path}.{key}: only before: {json.dumps(before[key])[:100]}"
        elif isinstance(before, list) and isinstance(after, list):
            if len(before) != len(after):
                yield f"{path}: {len(before)} items before, {len(after)} after"
            for i, (x, y) in enumerate(zip(before, after, strict=False)):
                name = x.get("law", i) if isinstance(x, dict) else i
                yield from self.differences(x, y, f"{path}[{name}]")
        elif isinstance(before, float) and isinstance(after, float):
            if abs(before - after) > max(NOISE, CLOSE * max(abs(before), abs(after))):
                yield f"{path}: {before} before, {after} after"
        elif before != after:
            yield f"{path}: {json.dumps(before)[:100]} before, {json.dumps(after)[:100]} after"


def _recorded(path: Path) -> dict[str, Any]:
    """A recorded case with certificates of theorems only: older versions also wrote those of proofs at one length."""
    found: dict[str, Any] = json.loads(path.read_text())
    written = found.get("certificate") or []
    listed = written if isinstance(written, list) else [written]
    return found | {"certificate": [each for each in listed if each.get("kind") == "theorem"]}


def compare(before: Path, after: Path) -> int:
    """Print every difference; the exit code."""
    comparison = Comparison(json.loads(RENAMES.read_text()) if RENAMES.exists() else {})
    count = 0
    names = sorted(p.name for p in before.glob("[!.]*.json"))
    for name in names:
        if not (after / name).exists():
            found = ["not recorded after"]
        else:
            first, second = (comparison.normal(_recorded(d / name)) for d in (before, after))
            found = list(comparison.differences(first, second))
        count += bool(found)
        for line in found[:12]:
            print(f"{name.removesuffix('.json')}{line}")
        if len(found) > 12:
            print(f"{name.removesuffix('.json')}: and {len(found) - 12} more")
    print(f"{len(names)} cases, {count} differ")
    return int(count > 0)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run every case")
    recording.add_argument("directory", type=Path)
    recording.add_argument("--only", action="append", default=[], help="part of a case's name; may be repeated")
    recording.add_argument("--workers", type=int, default=2)
    comparing = commands.add_parser("compare", help="compare two recorded directories")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        return record(given.directory, given.only, given.workers)
    return compare(given.before, given.after)


if __name__ == "__main__":
    raise SystemExit(main())
