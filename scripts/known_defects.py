"""The page of known defects, `docs/known_defects.md`: public reports of wrong order, reproduced or shown fixed.

python -m scripts.known_defects            write the page; some three minutes
python -m scripts.known_defects --print    print it only
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch
from scripts.known_defects_rows import INSTALLED, NOT_RUN, Installed

from orderproof import prove
from orderproof.auditing.measure import measure_law
from orderproof.driver import Driver
from orderproof.laws.measured import Bench, MeasuredLaw, find
from orderproof.laws.packing import Faulty
from orderproof.record import Finding
from orderproof.subjects import Subject, load
from tests.laws.more_faults.every import planted_faults
from tests.laws.more_faults.planted import Planted

PAGE = Path(__file__).parents[1] / "docs/known_defects.md"
LIBRARIES = ("transformers", "torch", "x-transformers", "rotary-embedding-torch")
PACKED = ("huggingface/nanoVLM#201", "huggingface/trl#1230", "pytorch/torchtitan#2559")
HEAD = """# Known defects

Written by `python -m scripts.known_defects`; not edited by hand.

Defects of order and position that were reported in public, and what the laws say: of the installed library itself,
where it is installed, and else of a small reconstruction of what the report describes ([planted
faults](planted_faults.md)). Numbers are differences relative to the largest output, in float64 where it runs in that.
A law that holds here says that the defect is not in this version, in the small random model that was asked.
"""


@cache
def architecture(spec: str) -> Subject:
    """An architecture, made tiny."""
    return load(f"arch:{spec}", tiny=True)


def finding(row: Installed) -> Finding:
    """What the law says of an installed library."""
    law = find(row.law)
    if isinstance(row.subject, str):
        subject = architecture(row.subject)
        if not isinstance(law, MeasuredLaw):
            return prove(subject, row.law)
        assert subject.driver is not None
        driver: Driver = subject.driver()
        return measure_law(driver, law, Bench(driver), kind=subject.kind)
    assert isinstance(law, MeasuredLaw)
    driver = row.subject()
    return measure_law(driver, law, Bench(driver), kind="causal_lm" if driver.causal else "encoder")


def reconstructed(fault: Planted, name: str) -> Finding:
    """What a law says of a reconstruction."""
    law, driver = find(name), fault.make()
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, Bench(driver), kind="causal_lm" if driver.causal else "encoder")


def told(found: Finding) -> str:
    """What a finding says of a defect."""
    if found.verdict in ("held", "proved"):
        return "fixed"
    if found.verdict != "refuted":
        return f"not told: {found.reason}"
    return f"still there: {seen(found)}"


def seen(found: Finding) -> str:
    """How a law was broken: what was done, and by how much."""
    trials = found.measurement.trials if found.measurement else ()
    trial = next((t for t in trials if found.witness and t.what == found.witness.change), None)
    if trial is None:
        return f"{found.witness.difference:.2g}" if found.witness else "refuted"
    size = trial.float64 if trial.float64 is not None else trial.float32
    return f"{size:.2g}, {trial.reason}" if size else f"no difference, {trial.reason}"


def installed_lines() -> Iterator[tuple[str, str, str]]:
    """Each row of the installed libraries: its line, its law, and what came."""
    for row in INSTALLED:
        came = told(finding(row))
        subject = row.subject if isinstance(row.subject, str) else row.words
        said = subject.replace("|", "/")
        yield f"| {row.report} | {row.symptom} | {said} | {row.law} | {came} |", row.law, came.partition(":")[0]


def reconstructed_lines() -> Iterator[tuple[str, str, str]]:
    """Each report that is reconstructed: its line, its law, and what came."""
    for fault in planted_faults():
        found = reconstructed(fault, fault.laws[0])
        for report in fault.reports:
            what = fault.what.removeprefix("The same, ")
            came = f"{found.verdict}: {seen(found)}" if found.verdict == "refuted" else found.verdict
            line = f"| {report} | {fault.name} | {what} | {fault.laws[0]} | {came} |"
            yield line, fault.laws[0], found.verdict
    yield from reconstructed_packed()


def reconstructed_packed() -> Iterator[tuple[str, str, str]]:
    """The reports of packed documents that run together: the planted fault of the law that is proved."""
    found = prove(Faulty().eval(), "packing", inputs=(torch.zeros(2, 7, 8),))
    what = "Positions start anew at each document, and nothing else keeps documents apart."
    for report in PACKED:
        line = f"| {report} | Faulty | {what} | packing | {found.verdict}: {seen(found)} |"
        yield line, "packing", found.verdict


def page() -> str:
    """The page, in Markdown."""
    installed, elsewhere = list(installed_lines()), list(reconstructed_lines())
    fates = Counter(fate for _, _, fate in installed)
    laws = Counter(law for _, law, _ in [*installed, *elsewhere])
    lines = [HEAD, "- installed: " + ", ".join(f"{name} {version(name)}" for name in LIBRARIES)]
    lines += [f"- installed libraries: {len(installed)} rows; " + ", ".join(f"{n} {f}" for f, n in fates.items())]
    lines += [f"- reconstructed: {len(elsewhere)} reports, {sum(f == 'refuted' for *_, f in elsewhere)} refuted"]
    lines += ["- by law: " + ", ".join(f"{law} {laws[law]}" for law in sorted(laws))]
    lines += ["", "## In the installed versions", "", "| report | symptom | asked of | law | in this version |"]
    lines += ["| --- | --- | --- | --- | --- |", *(line for line, *_ in installed)]
    lines += ["", "## Reconstructed", "", "| report | as | what is wrong | law | verdict |"]
    lines += ["| --- | --- | --- | --- | --- |", *(line for line, *_ in elsewhere)]
    lines += ["", "## Not run here", "", "| report | why |", "| --- | --- |"]
    lines += [f"| {report} | {why} |" for report, why in NOT_RUN]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write or print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--print", action="store_true", help="print the page only")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # the tensors are so small that a second thread only waits
    made = page()
    if chosen.print:
        sys.stdout.write(made)
    else:
        PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
