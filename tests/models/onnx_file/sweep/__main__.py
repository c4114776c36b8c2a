"""`python -m tests.models.onnx_file.sweep`: compare each operator with ONNX Runtime, and write the page.

Every operator is run in a process of its own, which the runtime may end.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import torch

from tests.models.onnx_file.sweep.compare import OTHER, Outcome, outcomes
from tests.models.onnx_file.sweep.draw import drawers
from tests.models.onnx_file.sweep.page import page


def swept(domain: str, name: str, calls: int) -> list[Outcome]:
    """The outcomes of one operator."""
    torch.set_num_threads(1)
    return list(outcomes(drawers()[domain, name], range(calls)))


def main() -> int:
    """Compare, and write the page; 1 if an operator differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--markdown", metavar="PATH", type=Path, help="write the page")
    parser.add_argument("--calls", type=int, default=24, help="for each combination of types")
    parser.add_argument("--only", default="", help="the operator of this name")
    given = parser.parse_args()
    found: dict[tuple[str, str], list[Outcome]] = {}
    for domain, name in drawers():
        if given.only and given.only != name:
            continue
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            try:
                found[domain, name] = pool.submit(swept, domain, name, given.calls).result()
            except BrokenProcessPool:
                found[domain, name] = [Outcome(OTHER, {}, 0, frozenset(), "the process ends")]
        wrong = sorted({(str(dict(x.kinds)), x.version, x.reason) for x in found[domain, name] if x.result == OTHER})
        print(domain, name, len(found[domain, name]), "calls", *wrong[:6], sep="\n    " if wrong else " ", flush=True)  # noqa: T201
    if given.markdown:
        given.markdown.parent.mkdir(parents=True, exist_ok=True)
        given.markdown.write_text(page(found, given.calls), encoding="utf-8")
    return int(any(x.result == OTHER for each in found.values() for x in each))


if __name__ == "__main__":
    sys.exit(main())
