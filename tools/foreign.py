"""Audit modules of other packages, and compare each verdict with the truth that runs establish.

    python tools/foreign.py --environment PATH             install the packages there, audit, write the page
    python tools/foreign.py --environment PATH --only lin  judge modules again whose name contains "lin"
    python tools/foreign.py --environment PATH --resume    judge the modules that no earlier run has judged

The packages of `foreign_requirements.txt` are installed into an environment of their own, which uses the torch of this
one. Judgements are stored in `PATH/judgements.json`, and the page has all that are stored. Those of an earlier build,
if `PATH/judgements_before.json` has them, stand next to the slowest ones. The truth is computed by
`foreign_truth.py`, which does not import orderproof. It is no part of `make test`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGE = ROOT / "docs/evidence/faults/foreign.md"
REQUIREMENTS = HERE / "foreign_requirements.txt"
LAWS = ("causal", "permutation", "batch")
TIMEOUT = 240.0  # [s] for each law, on a machine that may be busy
INTRODUCTION = """# Modules of other packages

Written by `python tools/foreign.py`; not edited by hand. Each law is decided by `audit` and compared with the truth,
which runs in float64 establish without orderproof: a law that a run contradicts is false, any other counts as true. The
first output of a module is judged."""
NOT_APPLICABLE = "does not apply"  # a law that is named and applies to no output is undecided, for that reason
RIGHT, UNDECIDED, WRONG, FALSE_PROOF, FAILED = "right", "undecided", "wrong", "false proof", "failed"


@dataclass(frozen=True)
class Judgement:
    """One law of one module."""

    module: str
    law: str
    truth: bool | None
    verdict: str
    reason: str
    seconds: float  # of processor time for all laws of the module, after imports
    parts: dict[str, float] = field(default_factory=dict)  # of these seconds, by the part of the audit

    @property
    def result(self) -> str:
        """The verdict compared with the truth."""
        if self.verdict == "error":
            return FAILED
        if self.verdict == "not_applicable" or self.reason.startswith(NOT_APPLICABLE):
            return RIGHT if self.truth is None else WRONG
        if self.verdict == "undecided":
            return UNDECIDED
        if self.verdict == "proved":
            return RIGHT if self.truth else FALSE_PROOF
        return RIGHT if self.truth is False else WRONG


def install(environment: Path) -> Path:
    """The interpreter of an environment with the packages, made if it does not exist."""
    python = environment / "bin/python"
    if not python.exists():
        venv.create(environment, with_pip=True)
        own = next(Path(p) for p in sys.path if p.endswith("site-packages"))
        there = next((environment / "lib").glob("python*/site-packages"))
        (there / "torch_of_this_environment.pth").write_text(f"{own}\n", encoding="utf-8")
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "-r", REQUIREMENTS], check=True)
    return python


def judgements_of(python: Path, only: str, judged: Collection[str]) -> Iterator[Judgement]:
    """The judgements, module by module, of modules that are not judged."""
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT / "recheck/src", HERE)))
    command = [python, "-W", "ignore", HERE / "foreign.py", "--worker", "--only", only, "--judged", *judged]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield Judgement(**json.loads(line))


def work(only: str, judged: Collection[str]) -> None:
    """Write the judgements of each module as lines of JSON; each module is audited in a process of its own."""
    import foreign_truth
    from foreign_modules import CASES
    from foreign_parts import Parts

    import orderproof.auditing.api  # noqa: F401 - so that its time is not that of a module

    for case in CASES:
        if only not in case.key or case.key in judged:
            continue
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        truth = foreign_truth.truths(case)
        parts = Parts()
        parts.watch()
        before = sum(os.times()[:4])
        verdicts = _verdicts(case)
        seconds = round(sum(os.times()[:4]) - before, 2)
        for law in LAWS:
            verdict, reason = verdicts.get(law, ("error", "no finding"))
            own = Judgement(case.key, law, truth[law], verdict, reason, seconds, parts.seconds)
            print(json.dumps(asdict(own)), flush=True)
        os._exit(0)


def _verdicts(case: Any) -> dict[str, tuple[str, str]]:
    from orderproof import audit

    try:
        report = audit(case.module(), laws=LAWS, inputs=case.inputs(), token_axis=case.token_axis, timeout=TIMEOUT)
    except Exception as error:  # noqa: BLE001 - what a stranger would see is the result
        return dict.fromkeys(LAWS, ("error", f"{type(error).__name__}: {error}"[:300]))
    found: dict[str, tuple[str, str]] = {}
    for finding in report.findings:
        found.setdefault(finding.law, (finding.verdict, finding.reason))
    return found


def page(found: Sequence[Judgement], before: Sequence[Judgement] = ()) -> str:
    """The page about the judgements, with the time of an earlier build next to the slowest modules."""
    counts = Counter(one.result for one in found)
    modules = list(dict.fromkeys(one.module for one in found))
    packages = {line.partition("==")[0].lower() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()}
    seconds = median({one.module: one.seconds for one in found}.values())
    summary = (
        f"{len(modules)} modules, {len(packages)} installed packages and torch; {len(found)} judgements: "
        f"{counts[RIGHT]} right, {counts[UNDECIDED]} undecided, {counts[WRONG]} wrong, {counts[FALSE_PROOF]} false "
        f"proofs, {counts[FAILED]} that could not be made. Median processor time of a module after imports, all laws: "
        f"{seconds:.1f} s."
    )
    head = f"| module | {' | '.join(LAWS)} | seconds |"
    lines = [INTRODUCTION, "", summary, "", head, f"| --- | {'--- | ' * len(LAWS)}--- |"]
    for module in modules:
        own = {one.law: one for one in found if one.module == module}
        cells = [_cell(own[law]) if law in own else "" for law in LAWS]
        lines.append(f"| `{module}` | {' | '.join(cells)} | {next(iter(own.values())).seconds:.1f} |")
    lines += ["", *_slowest(found, before), "", "## Reasons of judgements that are not right", ""]
    lines += [
        f"- `{one.module}`, {one.law}, {one.result}: {' '.join(one.reason.split())[:300].replace('|', '/')}"
        for one in found if one.result != RIGHT
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _slowest(found: Sequence[Judgement], before: Sequence[Judgement], count: int = 12) -> list[str]:
    """A table of the slowest modules, with the parts of their time and that of an earlier build."""
    slowest = sorted({one.module: one for one in found}.values(), key=lambda one: -one.seconds)[:count]
    earlier = {one.module: f"{one.seconds:.1f}" for one in before}
    parts = list(dict.fromkeys(part for one in slowest for part in one.parts))
    columns = ["module", "seconds", *["an earlier build, on the same machine"] * bool(earlier), *parts]
    columns += ["the rest"] * bool(parts)
    lines = ["## The slowest modules", "", "Seconds of processor time for all laws of a module, and what takes them."]
    lines += ["", f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
    for one in slowest:
        own = [one.parts.get(part, 0.0) for part in parts]
        rest = [one.seconds - sum(own)] * bool(parts)
        cells = [f"{one.seconds:.1f}", *[earlier.get(one.module, "")] * bool(earlier)]
        lines.append(f"| `{one.module}` | {' | '.join([*cells, *(f'{x:.1f}' for x in (*own, *rest))])} |")
    return lines


def _cell(one: Judgement) -> str:
    truth = {True: "holds", False: "fails", None: "has no meaning"}[one.truth]
    verdict = "not applicable" if one.reason.startswith(NOT_APPLICABLE) else one.verdict.replace("_", " ")
    text = f"{verdict}, {truth}"
    return text if one.result == RIGHT else f"**{text}**"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=ROOT / ".foreign")
    parser.add_argument("--only", default="", help="modules whose name contains this text")
    parser.add_argument("--resume", action="store_true", help="modules without a stored judgement")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--judged", nargs="*", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(options.only, options.judged)
        return
    python, store = install(options.environment), options.environment / "judgements.json"
    found = _stored(store)
    judged = {module for module, _ in found} if options.resume else ()
    for one in judgements_of(python, options.only, judged):
        found[one.module, one.law] = one
        store.write_text(json.dumps([asdict(x) for x in found.values()]), encoding="utf-8")
        print(f"{one.result:12} {one.module} {one.law}: {one.verdict} {one.reason[:120]}", flush=True)
    before = _stored(options.environment / "judgements_before.json")
    PAGE.write_text(page(list(found.values()), list(before.values())), encoding="utf-8")
    print(f"written: {PAGE}")


def _stored(path: Path) -> dict[tuple[str, str], Judgement]:
    """The judgements of earlier runs, by module and law."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return {(one["module"], one["law"]): Judgement(**one) for one in stored}


if __name__ == "__main__":
    main()
