"""The page of counts: the first run, before any repair, and the run of today."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.theorems.unseen.verdicts import Verdict

FIRST = Path(__file__).parent / "first_run.json"  # the levels of claims that were no theorem, or not refuted, at first
INTRODUCTION = """# Modules written before they were audited

Written by `python -m tests.theorems.unseen --markdown docs/evidence/faults/unseen_modules.md`; not edited by hand.

The modules of `tests/theorems/unseen` were written in one go, as engineers write attention, masks, pooling,
recurrences, selection, quantization and padding code, before any of them was audited and without a look at the rules.
Each has claims: a law, and if it holds. Runs in float64 check the claims (`truth.py`). The
first count was made before any rule was changed; what stayed open was then repaired by kinds, and counted again."""
ROWS = (
    ("theorem", "holds, proved for every length"),
    ("length", "holds, proved at one length"),
    ("undecided", "holds, undecided"),
    ("violated", "violated, refuted"),
    ("missed", "violated, undecided"),
    ("wrong", "decided against the truth"),
)


def _count(found: Iterable[Verdict]) -> Counter[str]:
    return Counter(
        "wrong" if one.wrong else one.level if one.holds else "violated" if one.level == "refuted" else "missed"
        for one in found
    )


def open_at_first() -> dict[str, str]:
    """The claims that were no theorem, or not refuted, at first, with their levels."""
    levels: dict[str, str] = json.loads(FIRST.read_text(encoding="utf-8"))
    return levels


def at_first(found: Sequence[Verdict]) -> list[Verdict]:
    """The same claims with the levels of the first run."""
    levels = open_at_first()
    return [
        Verdict(one.file, one.module, one.law, one.holds, levels.get(f"{one.name} {one.law}", one.best_level), "")
        for one in found
    ]


def row(one: Verdict) -> str:
    """One line about a claim."""
    truth = "holds" if one.holds else "violated"
    return f"{one.level:9} {truth:8} {one.law:11} {one.name}: {' '.join(one.reason.split())[:200]}"


def page(found: Sequence[Verdict], *, again: bool = True) -> str:
    """The page about the verdicts of today; without `again`, only the claims that were open at first were decided."""
    first, today = _count(at_first(found)), _count(found)
    modules = len({one.name for one in found})
    decided_again = (
        "All of them were decided again today."
        if again
        else (
            f"Today the {len(open_at_first())} that were open at first were decided again; the others are as they were."
        )
    )
    lines = [
        INTRODUCTION,
        "",
        f"{modules} modules, {len(found)} claims. {decided_again}",
        "",
        "| claims | at first | today |",
    ]
    lines += ["| --- | --- | --- |", *(f"| {words} | {first[key]} | {today[key]} |" for key, words in ROWS)]
    lines += [
        "",
        "At first one more claim was decided against what is written: `rows_as_bits`, which was said to be causal.",
        "The witness has 65 tokens, at which its shifts leave the 64 bits of an integer. The claim was wrong, and now",
        "says that the module is not causal.",
        "",
        "## Claims that hold and are not proved for every length",
        "",
        "| module | law | level | reason |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.name} | {one.law} | {one.level} | {' '.join(one.reason.split()).replace('|', '/')[:300]} |"
        for one in found
        if not one.best
    ]
    return "\n".join(lines) + "\n"
