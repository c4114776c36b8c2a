"""The reference page of the laws, from their files.

python scripts/reference.py            write docs/reference/laws.md
python scripts/reference.py --check    exit 1 if the page is not what the files say
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path

from orderproof.laws import Law, laws

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "laws.md"
HEAD = """# The laws

Written by `python scripts/reference.py` from the files of `src/orderproof/laws/`; not edited by hand.

A law is a relation between two runs of one model: if the inputs are related in this way, the outputs are related in
that way. "Should hold" and "should fail" are what is expected of a kind of subject unless `--expect` says otherwise;
of any other kind nothing is expected. Each law carries an honest example and a planted fault."""


def page() -> str:
    """The page, in Markdown."""
    return "\n\n".join([HEAD, *map(section, laws())]) + "\n"


def section(law: Law) -> str:
    """One law."""
    text = inspect.cleandoc(importlib.import_module(law.honest.__module__).__doc__ or "")
    first, _, rest = text.partition("\n")
    summary = first.partition(": ")[2]
    summary = summary[:1].upper() + summary[1:]
    lines = [f"## {law.code} {law.name}", f"**{law.statement}**", summary, rest.strip("\n")]
    return "\n\n".join([*(line for line in lines if line), facts(law)])


def facts(law: Law) -> str:
    """What is expected of whom, and the two examples."""
    kinds = {want: ", ".join(k for k, e in law.expectation.items() if e == want) for want in ("holds", "fails")}
    return "\n".join(
        [
            f"- Should hold for: {kinds['holds'] or 'no kind'}. Should fail for: {kinds['fails'] or 'no kind'}.",
            f"- Honest example: {inspect.getdoc(law.honest)}",
            f"- Planted fault: {inspect.getdoc(law.faulty)}",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the page is not what the files say")
    chosen = parser.parse_args(arguments)
    made = page()
    if chosen.check:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made
        if not current:
            sys.stderr.write(f"docs/reference/{PAGE.name} is stale; run python scripts/reference.py\n")
        return int(not current)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
