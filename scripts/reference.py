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

from orderproof.blocks.driving import decoder, encoder
from orderproof.laws import Law, laws
from orderproof.laws.measured import MeasuredLaw, measured_laws

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "laws.md"
HEAD = """# The laws

Written by `python scripts/reference.py` from the files of `src/orderproof/laws/`; not edited by hand.

A law is a relation between two runs of one model: if the inputs are related in this way, the outputs are related in
that way. "Should hold" and "should fail" are what is expected of a kind of subject unless `--expect` says otherwise;
of any other kind nothing is expected. Each law carries an honest example and a planted fault.

Some laws are proved on the recorded graph. Those marked *measured* compare numbers of several calls of the real model,
and can be held but never proved: [what a measurement says](../how_to/read_a_report.md#measured-laws)."""
NEEDS = {"cache": "a cache", "mask": "an attention mask", "positions": "position ids"}


def page() -> str:
    """The page, in Markdown."""
    every: list[Law | MeasuredLaw] = [*laws(), *measured_laws()]
    return "\n\n".join([HEAD, *map(section, sorted(every, key=lambda law: law.code))]) + "\n"


def section(law: Law | MeasuredLaw) -> str:
    """One law."""
    where = type(law) if isinstance(law, MeasuredLaw) else law.honest
    text = inspect.cleandoc(importlib.import_module(where.__module__).__doc__ or "")
    first, _, rest = text.partition("\n")
    summary = first.partition(": ")[2]
    summary = summary[:1].upper() + summary[1:]
    told = [law.statement] if summary == law.statement else [law.statement, summary]
    lines = [f"## {law.code} {law.name}", f"**{told[0]}**", *told[1:], rest.strip("\n"), facts(law)]
    return "\n\n".join(line for line in lines if line)


def facts(law: Law | MeasuredLaw) -> str:
    """What is expected of whom, and the two examples; of a measured law what it needs and what to do too."""
    kinds = {want: ", ".join(k for k, e in law.expectation.items() if e == want) for want in ("holds", "fails")}
    lines = [f"- Should hold for: {kinds['holds'] or 'no kind'}. Should fail for: {kinds['fails'] or 'no kind'}."]
    if isinstance(law, MeasuredLaw):
        needs = " and ".join(NEEDS.get(each, each) for each in sorted(law.needs))
        lines.insert(0, f"- Measured{f', of models that take {needs}' if needs else ''}.")
        lines.append(f"- Where it is broken: {law.fix}")
        honest, faulty = _honest(law), law.faulty.__doc__ or type(law.faulty()).__doc__
    else:
        honest, faulty = law.honest.__doc__, law.faulty.__doc__
    examples = (("Honest example", honest), ("Planted fault", faulty))
    return "\n".join([*lines, *(f"- {title}: {_one_line(text)}" for title, text in examples)])


def _honest(law: MeasuredLaw) -> str | None:
    """What its honest example is: what the function that makes it says, or the one of our own that it calls."""
    return law.honest.__doc__ or (decoder if law.honest().causal else encoder).__doc__


def _one_line(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())


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
