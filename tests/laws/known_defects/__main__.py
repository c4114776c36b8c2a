"""The page of known defects, `docs/evidence/faults/known_defects.md`: public reports of wrong order, run again.

python -m tests.laws.known_defects.__main__            write the page; some three minutes
python -m tests.laws.known_defects.__main__ --print    print it only
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

from orderproof import prove
from orderproof.adapter import ModelAdapter
from orderproof.auditing.decide.measurement import measure_law
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls, MeasuredLaw
from orderproof.models import Subject, load
from orderproof.records.audit import Finding
from tests.laws.faults.all_faults import planted_faults
from tests.laws.faults.fault import Planted
from tests.laws.known_defects.cases import LIBRARY_CASES, NOT_RUN, LibraryCase
from tests.laws.law_fixture import law_fixtures

PAGE = Path(__file__).parents[3] / "docs/evidence/faults/known_defects.md"
LIBRARIES = ("transformers", "torch", "x-transformers", "rotary-embedding-torch")
PACKING_REPORTS = ("huggingface/nanoVLM#201", "huggingface/trl#1230", "pytorch/torchtitan#2559")
HEAD = """# Known defects

Written by `python -m tests.laws.known_defects.__main__`; not edited by hand.

Publicly reported defects of token order and positions, and the verdicts of the laws on them. A law is applied to the
library in which the defect was reported, if it is installed, and otherwise to a small reconstruction of the defect
([planted faults](planted_faults.md)). Numbers are differences relative to the largest output, in float64 if the model
runs in float64. *Fixed* means that the law holds for a small model with random weights in the installed version.
"""


@cache
def tiny_architecture(spec: str) -> Subject:
    """An architecture, made tiny."""
    return load(f"arch:{spec}", tiny=True)


def finding(row: LibraryCase) -> Finding:
    """What the law says of an installed library."""
    law = find_law(row.law)
    if isinstance(row.subject, str):
        subject = tiny_architecture(row.subject)
        if not isinstance(law, MeasuredLaw):
            return prove(subject, row.law)
        assert subject.build_adapter is not None
        driver: ModelAdapter = subject.build_adapter()
        return measure_law(driver, law, CachedCalls(driver), kind=subject.model_kind)
    assert isinstance(law, MeasuredLaw)
    driver = row.subject()
    return measure_law(driver, law, CachedCalls(driver), kind="causal_lm" if driver.causal else "encoder")


def audit_reconstruction(fault: Planted, name: str) -> Finding:
    """What a law says of a reconstruction."""
    law, driver = find_law(name), fault.make()
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, CachedCalls(driver), kind="causal_lm" if driver.causal else "encoder")


def status_text(found: Finding) -> str:
    """What a finding says of a defect."""
    if found.verdict in ("held", "proved"):
        return "fixed"
    if found.verdict != "refuted":
        return f"undecided: {found.reason}"
    return f"still there: {violation_text(found)}"


def violation_text(found: Finding) -> str:
    """How a law was broken: what was done, and by how much."""
    trials = found.measurement.comparisons if found.measurement else ()
    trial = next((t for t in trials if found.witness and t.description == found.witness.change), None)
    if trial is None:
        return f"{found.witness.relative_difference:.2g}" if found.witness else "refuted"
    size = trial.float64 if trial.float64 is not None else trial.float32
    return f"{size:.2g}, {trial.reason}" if size else f"no difference, {trial.reason}"


def library_rows() -> Iterator[tuple[str, str, str]]:
    """Each row of the installed libraries: its line, its law, and what came."""
    for row in LIBRARY_CASES:
        came = status_text(finding(row))
        subject = row.subject if isinstance(row.subject, str) else row.part_name
        said = subject.replace("|", "/")
        yield f"| {row.report} | {row.symptom} | {said} | {row.law} | {came} |", row.law, came.partition(":")[0]


def reconstruction_rows() -> Iterator[tuple[str, str, str]]:
    """Each report that is reconstructed: its line, its law, and what came."""
    for fault in planted_faults():
        found = audit_reconstruction(fault, fault.laws[0])
        for report in fault.reports:
            what = fault.what.removeprefix("The same, ")
            came = f"{found.verdict}: {violation_text(found)}" if found.verdict == "refuted" else found.verdict
            line = f"| {report} | {fault.name} | {what} | {fault.laws[0]} | {came} |"
            yield line, fault.laws[0], found.verdict
    yield from packing_rows()


def packing_rows() -> Iterator[tuple[str, str, str]]:
    """The reports of packed documents that run together: the planted fault of the law that is proved."""
    found = prove(law_fixtures()["packing"].violating().eval(), "packing", inputs=(torch.zeros(2, 7, 8),))
    what = "Positions restart at each document, and nothing else keeps documents apart."
    for report in PACKING_REPORTS:
        line = f"| {report} | Violating | {what} | packing | {found.verdict}: {violation_text(found)} |"
        yield line, "packing", found.verdict


def page() -> str:
    """The page, in Markdown."""
    installed, elsewhere = list(library_rows()), list(reconstruction_rows())
    fates = Counter(fate for _, _, fate in installed)
    laws = Counter(law for _, law, _ in [*installed, *elsewhere])
    lines = [HEAD, "- installed: " + ", ".join(f"{name} {version(name)}" for name in LIBRARIES)]
    lines += [f"- installed libraries: {len(installed)} rows; " + ", ".join(f"{n} {f}" for f, n in fates.items())]
    lines += [f"- reconstructed: {len(elsewhere)} reports, {sum(f == 'refuted' for *_, f in elsewhere)} refuted"]
    lines += ["- by law: " + ", ".join(f"{law} {laws[law]}" for law in sorted(laws))]
    lines += ["", "## In the installed versions", "", "| report | symptom | subject | law | in this version |"]
    lines += ["| --- | --- | --- | --- | --- |", *(line for line, *_ in installed)]
    lines += ["", "## Reconstructed", "", "| report | reconstruction | defect | law | verdict |"]
    lines += ["| --- | --- | --- | --- | --- |", *(line for line, *_ in elsewhere)]
    lines += ["", "## Not run here", "", "| report | reason |", "| --- | --- |"]
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
