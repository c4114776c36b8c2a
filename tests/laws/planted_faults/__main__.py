"""The page of planted faults, `docs/evidence/faults/planted_faults.md`: each measured law for each fault.

python -m tests.laws.planted_faults.__main__            write the page; some two minutes
python -m tests.laws.planted_faults.__main__ --check    exit 1 if the page is stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch

from orderproof.adapter import ModelAdapter
from orderproof.auditing.decide.measurement import measure_law
from orderproof.laws import measured_laws
from orderproof.laws.measured import CachedCalls, MeasuredLaw
from orderproof.records.audit import Verdict
from tests.laws.faults.all_faults import planted_faults
from tests.laws.faults.expected_overlaps import BY_DESIGN, EXPLAINED
from tests.laws.faults.fault import Planted
from tests.laws.law_fixture import law_fixtures

PAGE = Path(__file__).parents[3] / "docs/evidence/faults/planted_faults.md"
VERDICT_LETTERS: Mapping[Verdict, str] = {"held": "H", "refuted": "R", "undecided": "U", "not_applicable": "-"}
HEAD = """# Planted faults

Does a measured law fail for your model? Find the law: each mistake below was put into a small model, and the law
failed for it. *Fails as well* names the other laws that failed for that mistake. If your report has the same ones, look
for that mistake first, at the line that the report names. [The laws](../../reference/laws.md) say what each of them
requires.
"""
HOW = """## How it is known

Every measured law is decided for each mistake, and for models without one. R refuted, H held, U undecided (a call was
refused, or the positive control moved the output too little), - not applicable. **R** marks the laws for which the
mistake was made. Written by `python -m tests.laws.planted_faults.__main__`; not edited by hand.
"""

LawVerdicts = Mapping[str, Verdict]


def law_verdicts(make: Callable[[], ModelAdapter]) -> LawVerdicts:
    """The verdict of each law for a model, which is built for each law: some keep state."""
    return {law.name: verdict(law, make()) for law in measured_laws()}


def verdict(law: MeasuredLaw, adapter: ModelAdapter) -> Verdict:
    """The verdict of one law for one model."""
    return measure_law(adapter, law, CachedCalls(adapter), kind="causal_lm" if adapter.causal else "encoder").verdict


def page(faults: Mapping[str, LawVerdicts], correct: Mapping[str, LawVerdicts]) -> str:
    """The page, from the verdicts for each fault and for the conforming model of each law."""
    planted = planted_faults()
    refuted = sum(verdict == "refuted" for row in faults.values() for verdict in row.values())
    caught = sum(faults[f.name][law] == "refuted" for f in planted for law in f.laws)
    by_design = sorted({f"`{law}`" for row in correct.values() for law, found in row.items() if found == "refuted"})
    counts = [
        f"- mistakes: {len(planted)}, made for {sum(len(f.laws) for f in planted)} laws; refuted by them: {caught}",
        f"- refuted by another law as well: {refuted - caught} times; if that law is a check, the reason is below",
        f"- models without a mistake: {len(correct)}; refuted by {', '.join(by_design) or 'no law'}, by design",
    ]
    head = ["| | mistake | " + " | ".join(law.name for law in measured_laws()) + " |"]
    head.append("| --- " * (len(measured_laws()) + 2) + "|")
    lines = [HEAD, *_by_law(planted, faults), "", HOW, *counts, "", *head, *(_line(f, faults[f.name]) for f in planted)]
    lines += ["", "### Refuted by another check as well", "", *_explained(planted)]
    lines += ["", "### Models without a mistake", "", "The conforming model in the tests of each law.", ""]
    lines += [head[0].replace("| | mistake |", "| model of |"), head[1].removeprefix("| --- ")]
    lines += [
        f"| {name} | " + " | ".join(VERDICT_LETTERS[v] for v in row.values()) + " |" for name, row in correct.items()
    ]
    lines += ["", *(f"- `{law}` for the model of `{of}`: {why}" for (of, law), why in BY_DESIGN.items())]
    return "\n".join(lines) + "\n"


def _by_law(planted: tuple[Planted, ...], faults: Mapping[str, LawVerdicts]) -> Iterator[str]:
    """The table of mistakes, by the law that they violate."""
    yield "| law that fails | mistake | fails as well |"
    yield "| --- | --- | --- |"
    for law in measured_laws():
        for fault in (each for each in planted if law.name in each.laws):
            others = [name for name, found in faults[fault.name].items() if found == "refuted" and name != law.name]
            yield f"| {law.code} {law.name} | {fault.what} | {', '.join(others)} |"


def _line(fault: Planted, row: LawVerdicts) -> str:
    marks = [f"**{VERDICT_LETTERS[v]}**" if law in fault.laws else VERDICT_LETTERS[v] for law, v in row.items()]
    return f"| {fault.name} | {fault.what} | " + " | ".join(marks) + " |"


def _explained(planted: tuple[Planted, ...]) -> Iterator[str]:
    """Each reason once, with the laws and mistakes that it explains."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for fault in planted:
        for law, why in EXPLAINED.get(fault.name, {}).items():
            reasons.setdefault(why, {}).setdefault(law, []).append(fault.name)
    for why, laws in reasons.items():
        yield f"- {why}: " + "; ".join(f"`{law}` of {', '.join(names)}" for law, names in laws.items())


def main(arguments: list[str] | None = None) -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the page is stale")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # the tensors are so small that a second thread only waits
    made = page(
        {fault.name: law_verdicts(fault.make) for fault in planted_faults()},
        {law.name: law_verdicts(law_fixtures()[law.name].conforming) for law in measured_laws()},
    )
    if chosen.check:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made
        if not current:
            sys.stderr.write(f"{PAGE.name} is stale; run python -m tests.laws.planted_faults.__main__\n")
        return int(not current)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
