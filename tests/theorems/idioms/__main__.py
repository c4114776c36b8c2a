"""Print what is proved of the modules of this folder: `python -m tests.theorems.idioms [part of a name]`."""

from __future__ import annotations

import sys

from tests.theorems.idioms.levels import all_idioms, decided, subjects

if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, idiom in all_idioms().items():
        for role, kind in subjects(idiom):
            if wanted in f"{name} {role}":
                level, reason = decided(kind, idiom)
                sys.stdout.write(f"{name:40} {role:4} {idiom.law:11} {level:9} {reason[:150]}\n")
