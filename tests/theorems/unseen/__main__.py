"""Decide the claims about the modules of this folder, and count.

    python -m tests.theorems.unseen                          a line for each claim that is no theorem or not refuted
    python -m tests.theorems.unseen --only masks             those of modules whose name contains a text
    python -m tests.theorems.unseen --markdown docs/evidence/faults/unseen_modules.md     write the page
    python -m tests.theorems.unseen --open ...               decide only what was open at first, and take over the rest

All of them take some five minutes of processor time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.theorems.unseen.page import open_at_first, page, row
from tests.theorems.unseen.verdicts import verdicts


def main() -> int:
    """Run the command; 1 if a claim is decided against the truth."""
    parser = argparse.ArgumentParser(prog="python -m tests.theorems.unseen")
    parser.add_argument("--only", default="", help="part of the names of the modules")
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    parser.add_argument("--open", action="store_true", help="decide only the claims that were open at first")
    options = parser.parse_args()
    found = []
    for one in verdicts(options.only, open_at_first() if options.open else None):
        found.append(one)
        if not one.best:
            sys.stdout.write(row(one) + "\n")
            sys.stdout.flush()
    if options.markdown:
        options.markdown.write_text(page(found, again=not options.open), encoding="utf-8")
    return int(any(one.wrong for one in found))


if __name__ == "__main__":
    sys.exit(main())
