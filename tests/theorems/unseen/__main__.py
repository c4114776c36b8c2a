"""Decide the claims about the modules of this folder, and count.

    python -m tests.theorems.unseen                          a line for each claim that is no theorem or not refuted
    python -m tests.theorems.unseen --only masks             those of modules whose name contains a text
    python -m tests.theorems.unseen --markdown docs/evidence/faults/unseen_modules.md     write the page

All of them take some six minutes of processor time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.theorems.unseen.page import page, row
from tests.theorems.unseen.verdicts import verdicts


def main() -> int:
    """Run the command; 1 if a claim is decided against the truth."""
    parser = argparse.ArgumentParser(prog="python -m tests.theorems.unseen")
    parser.add_argument("--only", default="", help="part of the names of the modules")
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    options = parser.parse_args()
    found = []
    for one in verdicts(options.only):
        found.append(one)
        if not one.best:
            sys.stdout.write(row(one) + "\n")
            sys.stdout.flush()
    if options.markdown:
        options.markdown.write_text(page(found), encoding="utf-8")
    return int(any(one.wrong for one in found))


if __name__ == "__main__":
    sys.exit(main())
