"""`python -m tests.fault_injection`: inject every kind of fault into every suitable architecture, and write the page.

Takes about five minutes on two cores. Each row is stored when it is finished, and a run that was stopped resumes.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

from tests.fault_injection.faults import KINDS
from tests.fault_injection.runner import CAUSAL, ENCODERS, Outcome, applies, try_fault, untouched

HEAD = """# Injected faults

Written by `python -m tests.fault_injection --markdown docs/evidence/faults/injected_faults.md`; not edited by hand.

Each kind of fault is injected into the last layer of a tiny model of each suitable architecture, or into the
computation of its positions. *Refuted* means that the violated law has a witness. *Located* means that the report
names the module with the fault and a line of its code. *Untouched* is the result for the model without the fault,
which is refuted only where that model violates the law: position ids alone do not separate the documents of an encoder,
and RoBERTa counts positions from its token ids.
"""


def page(rows: list[Outcome], clean: dict[str, dict[str, str]]) -> str:
    """The page, in Markdown."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for row in rows:
        by_kind[row.kind].append(row)
    lines = [
        f"- date: {dt.datetime.now(dt.UTC).date().isoformat()}",
        f"- faults: {len(rows)} of {len(by_kind)} kinds in {len({r.architecture for r in rows})} architectures",
        f"- refuted: {sum(r.verdict == 'refuted' for r in rows)}; located: {sum(r.located for r in rows)}",
        "",
        "| kind | description | law | faults | refuted | located |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for kind, found in by_kind.items():
        what = (KINDS[kind].__doc__ or "").splitlines()[0]
        refuted, located = sum(r.verdict == "refuted" for r in found), sum(r.located for r in found)
        lines.append(
            f"| {kind.replace('_', ' ')} | {what} | {KINDS[kind].law} | {len(found)} | {refuted} | {located} |"
        )
    missed = [r for r in rows if r.verdict != "refuted" or not r.located]
    lines += ["", "## Missed", ""] + ([f"- {r.kind} in {r.architecture}: {r.verdict}" for r in missed] or ["None."])
    laws = sorted({law for found in clean.values() for law in found})
    lines += ["", "## Untouched", "", "| architecture | " + " | ".join(laws) + " |", "| --- " * (len(laws) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(found.get(law, "-") for law in laws) + " |" for name, found in clean.items()]
    return HEAD + "\n" + "\n".join(lines) + "\n"


def main() -> None:
    """Run the missing cases and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("faults.jsonl"), help="the file of finished rows")
    parser.add_argument("--markdown", type=Path, help="write the page here")
    given = parser.parse_args()
    done = [json.loads(line) for line in given.store.read_text().splitlines()] if given.store.exists() else []
    faults = {(r["kind"], r["architecture"]): r for r in done if "kind" in r}
    clean = {r["untouched"]: r["verdicts"] for r in done if "untouched" in r}
    with given.store.open("a") as store:

        def keep(row: dict[str, object]) -> None:
            store.write(json.dumps(row) + "\n")
            store.flush()
            print(*row.values(), flush=True)  # noqa: T201 - a command line

        for architecture in (*CAUSAL, *ENCODERS):
            if architecture not in clean:
                clean[architecture] = untouched(architecture)
                keep({"untouched": architecture, "verdicts": clean[architecture]})
            for kind in KINDS:
                if (kind, architecture) not in faults and applies(kind, architecture):
                    outcome = try_fault(kind, architecture)
                    faults[kind, architecture] = (
                        asdict(outcome) if outcome else {"kind": kind, "architecture": architecture}
                    )
                    keep(faults[kind, architecture])
    rows = [Outcome(**r) for r in faults.values() if "verdict" in r]
    if given.markdown:
        given.markdown.write_text(page(rows, clean))


if __name__ == "__main__":
    main()
