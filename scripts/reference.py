"""The reference pages of laws, lemmas, encodings, questions and claims, from their files.

python scripts/reference.py            write them into docs/reference/
python scripts/reference.py --check    exit 1 if a page is not what the files say
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path

from orderproof.blocks.driving import decoder, encoder
from orderproof.lab.asking import questions
from orderproof.lab.ceilings import ASKED_OF, CeilingAt, ceilings
from orderproof.lab.question import Question
from orderproof.laws import Law, laws
from orderproof.laws.measured import MeasuredLaw, measured_laws

ROOT = Path(__file__).parents[1]
if not __package__:  # run as a file: the folder it lies in is no package then
    sys.path.insert(0, str(ROOT))

from scripts import reference_more  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
HEAD = """# The laws

Written by `python scripts/reference.py` from the files of `src/orderproof/laws/`; not edited by hand.

A law is a relation between two runs of one model: if the inputs are related in this way, the outputs are related in
that way. "Should hold" and "should fail" are what is expected of a kind of subject unless `--expect` says otherwise;
of any other kind nothing is expected. Each law carries an honest example and a planted fault.

Some laws are proved on the recorded graph. Those marked *measured* compare numbers of several calls of the real model,
and can be held but never proved: [what a measurement says](../how_to/read_a_report.md#measured-laws)."""
QUESTIONS_HEAD = """# The questions

Written by `python scripts/reference.py` from the files of `src/orderproof/lab/questions/`; not edited by hand.

A question is a task with a known best score for a reader that is blind to order: its *ceiling*. That reader knows, at a
place, the token there and the bag of the other tokens it sees: of the whole row in an encoder, of those before in a
decoder; and it knows the length, so that a ceiling is one of rows of one length. That is what an encoder without
positions knows, however deep, and what *one* layer of a decoder without positions knows; a second one can find out
where tokens stand. A question whose ceiling is 1 is a control: a bag is enough. Ceilings are fractions where nothing
else is said, and each closed form is tested against a sum over every row at small sizes.

    orderproof ceiling QUESTION [KEY=VALUE ...] [--length N]        any length, any settings, as JSON too

`exact_match` is the share of the rows that are right at every place; `nats` is the cross-entropy a place, where less is
better. [How to add one](../how_to/add_a_question.md)."""
NEEDS = {"cache": "a cache", "mask": "an attention mask", "positions": "position ids"}


def page() -> str:
    """The page of the laws, in Markdown."""
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


def questions_page() -> str:
    """The page of the questions, in Markdown."""
    every = [question() for question in questions().values()]
    overview = ["| question | score | asked of | order | what is asked |", "| --- | --- | --- | --- | --- |"]
    for each in every:
        order = "needed" if each.needs_order else "control"
        link = f"[`{each.name}`](#{each.name})"
        overview.append(f"| {link} | {each.measure} | {ASKED_OF[each.causal]} | {order} | {each.statement} |")
    return "\n\n".join([QUESTIONS_HEAD, "\n".join(overview), *map(question_section, every)]) + "\n"


def question_section(question: Question) -> str:
    """One question."""
    text = inspect.cleandoc(importlib.import_module(type(question).__module__).__doc__ or "")
    _, _, rest = text.partition("\n")
    low, high = question.train_lengths
    settings = ", ".join(f"`{name}={value}`" for name, value in question.model_dump().items()) or "none"
    facts = f"- Trained at lengths {low} to {high}." if low < high else f"- Trained at length {low}."
    lines = [facts, f"- Settings: {settings}."]
    if "Source: " not in rest:
        lines.append(f"- Source: {question.source}.")
    return "\n\n".join(
        [
            f"## {question.name}",
            f"**{question.statement}**",
            rest.strip("\n"),
            "\n".join(lines),
            ceiling_table(question),
        ]
    )


def ceiling_table(question: Question) -> str:
    """The ceilings at the lengths the question is tested at, and how they were worked out."""
    found = ceilings(question).lengths
    if all(at.how is None for at in found):
        return "No ceiling is known."
    floors = any(at.floor is not None for at in found)
    columns = ["length", "tokens", "ceiling", *(["least"] if floors else ["exactly"])]
    rows = [columns, ["---"] * len(columns)]
    for at in found:
        last = f"{at.floor:.6g}" if floors else _short(at)
        rows.append([str(at.length), str(at.tokens), f"{at.ceiling:.6g}", last])
    worked = "; ".join(dict.fromkeys(at.how or "" for at in found))
    return "\n".join([f"Ceiling: {worked}.", "", *(f"| {' | '.join(row)} |" for row in rows)])


def _short(at: CeilingAt) -> str:
    """A fraction as long as a column may be."""
    return at.fraction if at.fraction and len(at.fraction) <= 40 else "(long)"


PAGES = {
    "laws.md": page,
    "lemmas.md": reference_more.lemmas_page,
    "each_encoding.md": reference_more.encodings_page,
    "questions.md": questions_page,
    "claims.md": reference_more.claims_page,
}


def main(arguments: list[str] | None = None) -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a page is not what the files say")
    chosen = parser.parse_args(arguments)
    stale = 0
    for name, make in PAGES.items():
        path, made = FOLDER / name, make()
        if not chosen.check:
            path.write_text(made, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != made:
            sys.stderr.write(f"docs/reference/{name} is stale; run python scripts/reference.py\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
