"""The table of planted faults, `docs/planted_faults.md`: every measured law on every fault and every honest example.

python -m scripts.planted_faults            write the page; some two minutes
python -m scripts.planted_faults --check    exit 1 if the page is not what comes
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch

from orderproof.auditing.measure import measure_law
from orderproof.driver import Driver
from orderproof.laws.measured import Bench, MeasuredLaw, measured_laws
from orderproof.record import Verdict
from tests.laws.more_faults.every import planted_faults
from tests.laws.more_faults.explained import BY_DESIGN, EXPLAINED
from tests.laws.more_faults.planted import Planted

PAGE = Path(__file__).parents[1] / "docs/planted_faults.md"
MARKS: Mapping[Verdict, str] = {"held": "H", "refuted": "R", "undecided": "U", "not_applicable": "-"}
HEAD = """# Planted faults

Written by `python -m scripts.planted_faults`; not edited by hand.

Every measured law is asked of a small model with each of these faults in it, and of the same without one. R refuted,
H held, U undecided (a call was refused, or the control moved too little to tell), - not asked. **R** stands where the
fault was planted for the law. A fault that another law rightly sees too is told of below the table.
"""

Row = Mapping[str, Verdict]


def verdicts(make: Callable[[], Driver]) -> Row:
    """What each law says of a model, made anew for each: some remember."""
    return {law.name: verdict(law, make()) for law in measured_laws()}


def verdict(law: MeasuredLaw, driver: Driver) -> Verdict:
    """What one law says of one model."""
    return measure_law(driver, law, Bench(driver), kind="causal_lm" if driver.causal else "encoder").verdict


def page(faults: Mapping[str, Row], honest: Mapping[str, Row]) -> str:
    """The page, from the verdicts of each fault and of the honest example of each law."""
    planted = planted_faults()
    refuted = sum(verdict == "refuted" for row in faults.values() for verdict in row.values())
    caught = sum(faults[f.name][law] == "refuted" for f in planted for law in f.laws)
    counts = [
        f"- faults: {len(planted)}, planted for {sum(len(f.laws) for f in planted)} laws; refuted by them: {caught}",
        f"- refuted by a law they were not planted for: {refuted - caught}, each explained below",
        f"- honest examples: {len(honest)}; refuted: none but by `shift`, which absolute positions break by design",
    ]
    head = ["| | fault | " + " | ".join(law.name for law in measured_laws()) + " |"]
    head.append("| --- " * (len(measured_laws()) + 2) + "|")
    lines = [HEAD, *counts, "", *head, *(_line(f, faults[f.name]) for f in planted)]
    lines += ["", "## Seen by other laws too", "", *_explained(planted)]
    lines += ["", "## Honest examples", "", "The example that each law carries.", ""]
    lines += [head[0].replace("| | fault |", "| example of |"), head[1].removeprefix("| --- ")]
    lines += [f"| {name} | " + " | ".join(MARKS[v] for v in row.values()) + " |" for name, row in honest.items()]
    lines += ["", *(f"- `{law}` on the example of `{of}`: {why}" for (of, law), why in BY_DESIGN.items())]
    return "\n".join(lines) + "\n"


def _line(fault: Planted, row: Row) -> str:
    marks = [f"**{MARKS[v]}**" if law in fault.laws else MARKS[v] for law, v in row.items()]
    return f"| {fault.name} | {fault.what} | " + " | ".join(marks) + " |"


def _explained(planted: tuple[Planted, ...]) -> Iterator[str]:
    for fault in planted:
        for law, why in EXPLAINED.get(fault.name, {}).items():
            yield f"- {fault.name}, `{law}`: {why}"


def main(arguments: list[str] | None = None) -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the page is not what comes")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # the tensors are so small that a second thread only waits
    made = page(
        {fault.name: verdicts(fault.make) for fault in planted_faults()},
        {law.name: verdicts(law.honest) for law in measured_laws()},
    )
    if chosen.check:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made
        if not current:
            sys.stderr.write(f"docs/{PAGE.name} is stale; run python -m scripts.planted_faults\n")
        return int(not current)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
