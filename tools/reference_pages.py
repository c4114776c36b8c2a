"""Write the reference pages of laws, lemmas, encodings, questions, claims and the Python interface.

python tools/reference_pages.py                  write docs/reference/
python tools/reference_pages.py --check          exit 1 if a page differs from what would be written
python tools/reference_pages.py --folder PATH    write or check another folder
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path

import reference_api
import reference_docstrings

from orderproof.lab.ceilings import MODEL_KINDS, LengthCeiling, compute_ceilings
from orderproof.lab.question import Question
from orderproof.lab.registry import questions
from orderproof.laws import ProvedLaw, measured_laws, port_laws, proved_laws, training_laws
from orderproof.laws.measured import MeasuredLaw
from orderproof.laws.ports import PortLaw
from orderproof.laws.ports.port_law import ABILITIES
from orderproof.laws.registry import AnyLaw
from orderproof.laws.training import TrainingLaw

FOLDER = Path(__file__).parents[1] / "docs/reference"
LAWS_HEAD = """# The laws

Written by `python tools/reference_pages.py` from the files of `src/orderproof/laws/`; not edited by hand.

A law relates two runs of one model: if the inputs are related in a certain way, the outputs must be related in a
certain way. Each law speaks of a trait. A *check* should hold for a kind of model, and passes or fails. A *property*
describes the model: it has the trait, or not. The expected result depends on the kind of model. `--expect` overrides
it, and turns a property into a check.

Some laws are proved on the recorded graph. Laws marked *measured* compare several calls of the model, and are held or
refuted but never proved: [what a measurement means](../how_to/read_a_report.md#measured-laws). The laws OP6xx compare
the model with another implementation: [how to audit a port](../how_to/audit_a_port.md). The laws OP7xx are of a
training step, a model with a batch and a loss: [how to audit training](../how_to/audit_training.md)."""
QUESTIONS_HEAD = """# The questions

Written by `python tools/reference_pages.py` from the files of `src/orderproof/lab/questions/`; not edited by hand.

A question is a task with a known best score without token order: its *ceiling*. The ceiling is that of a bag-of-tokens
predictor. At each position, this predictor knows the token there and the multiset of the other visible tokens: the
whole row in an encoder, the earlier tokens in a decoder. It also knows the length, so each ceiling is for rows of one
length. An encoder without positions knows exactly this, at any depth, and so does a decoder without positions that has
*one* layer; a second layer can recover positions. A question whose ceiling is 1 is a control: order is not needed.
Ceilings are fractions unless stated otherwise, and each closed form is tested against a sum over all rows at small
sizes.

    orderproof ceiling QUESTION [KEY=VALUE ...] [--length N]        any length and settings, also as JSON

`exact_match` is the fraction of rows that are correct at every position; `nats` is the cross-entropy per position
(lower is better). [How to add one](../how_to/add_a_question.md)."""
NEEDS = {"cache": "a cache", "mask": "an attention mask", "positions": "position ids"}


def laws_page() -> str:
    """The page of the laws, in Markdown."""
    every: list[AnyLaw] = [*proved_laws(), *measured_laws(), *port_laws(), *training_laws()]
    return "\n\n".join([LAWS_HEAD, *map(law_section, sorted(every, key=lambda law: law.code))]) + "\n"


def law_section(law: AnyLaw) -> str:
    """One law: statement, docstring of its module, facts."""
    kinds = {MeasuredLaw: "measured", PortLaw: "ports", TrainingLaw: "training", ProvedLaw: "proved"}
    package = next(package for kind, package in kinds.items() if isinstance(law, kind))
    text = inspect.cleandoc(importlib.import_module(f"orderproof.laws.{package}.{law.name}").__doc__ or "")
    first, _, rest = text.partition("\n")
    summary = first.partition(": ")[2]
    summary = summary[:1].upper() + summary[1:]
    title = [f"**{law.statement}**"] if summary == law.statement else [f"**{law.statement}**", summary]
    lines = [f"## {law.code} {law.name}", *title, rest.strip("\n"), law_facts(law)]
    return "\n\n".join(line for line in lines if line)


def law_facts(law: AnyLaw) -> str:
    """Kind, trait, expectations and fixtures; of a measured law also the required inputs and the remedy."""
    answer = "" if law.trait_if == "holds" else " This is so if the law is refuted."
    lines = [f"- {law.kind.capitalize()}. Trait: the model {law.trait}.{answer}"]
    if isinstance(law, MeasuredLaw):
        needs = " and ".join(NEEDS.get(each, each) for each in sorted(law.required_inputs))
        lines.append(f"- Measured{f', for models that take {needs}' if needs else ''}.")
    lines += [f"- {text}: {', '.join(kinds)}." for text, kinds in _expectations(law) if kinds]
    if isinstance(law, TrainingLaw):
        lines.append(f"- What to do about a violation: {law.remedy}")
        return "\n".join([*lines, "- Training steps that break and keep it: `tests/training/`."])
    if isinstance(law, PortLaw):
        if law.ability is not None:
            lines.append(f"- Not applicable to an engine if {ABILITIES[law.ability]}.")
        lines.append(f"- What to do about a violation: {law.remedy}")
        return "\n".join([*lines, "- Planted differences: `tests/ports/test_planted_differences.py`."])
    if isinstance(law, MeasuredLaw):
        lines.append(f"- What to do about a violation: {law.remedy}")
        lines.append("- Faults that it detects: [planted faults](../evidence/faults/planted_faults.md).")
    lines.append(f"- A conforming and a violating model: `tests/laws/fixtures/{law.name}.py`.")
    return "\n".join(lines)


def _expectations(law: AnyLaw) -> list[tuple[str, list[str]]]:
    """The kinds of model with an expectation, in words: of a property as the trait, of a check as the law."""
    found = {want: [kind for kind, each in law.expectation.items() if each == want] for want in ("holds", "fails")}
    if law.kind == "check":
        return [("Should hold for", found["holds"]), ("Should not hold for", found["fails"])]
    other = "fails" if law.trait_if == "holds" else "holds"
    if law.expected_of_documents:
        found["holds"].append("encoders and decoders that take packed documents")
    return [("Trait expected of", found[law.trait_if]), ("Trait not expected of", found[other])]


def questions_page() -> str:
    """The page of the questions, in Markdown."""
    every = [question() for question in questions().values()]
    overview = ["| question | score | model | order | task |", "| --- | --- | --- | --- | --- |"]
    for each in every:
        order = "needed" if each.needs_order else "control"
        link = f"[`{each.name}`](#{each.name})"
        models = MODEL_KINDS[each.requires_causal]
        overview.append(f"| {link} | {each.measure} | {models} | {order} | {each.statement} |")
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
    """The ceilings at the test lengths of the question, and how each was computed."""
    found = compute_ceilings(question).lengths
    if all(at.derivation is None for at in found):
        return "No ceiling is known."
    floors = any(at.floor is not None for at in found)
    columns = ["length", "tokens", "ceiling", *(["least"] if floors else ["exactly"])]
    rows = [columns, ["---"] * len(columns)]
    for at in found:
        last = f"{at.floor:.6g}" if floors else _format_fraction(at)
        rows.append([str(at.length), str(at.tokens), f"{at.ceiling:.6g}", last])
    methods = "; ".join(dict.fromkeys(at.derivation or "" for at in found))
    return "\n".join([f"Ceiling: {methods}.", "", *(f"| {' | '.join(row)} |" for row in rows)])


def _format_fraction(at: LengthCeiling) -> str:
    """The fraction, unless it is too long for a column."""
    return at.fraction if at.fraction and len(at.fraction) <= 40 else "(long)"


PAGES = {
    "laws.md": laws_page,
    "lemmas.md": reference_docstrings.lemmas_page,
    "each_encoding.md": reference_docstrings.encodings_page,
    "questions.md": questions_page,
    "claims.md": reference_docstrings.claims_page,
    "python_api.md": reference_api.python_api_page,
}


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a page differs from what would be written")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="docs/reference by default")
    arguments = parser.parse_args()
    stale = 0
    for name, make in PAGES.items():
        path, text = arguments.folder / name, make()
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            sys.stderr.write(f"{path.name} is stale; run python tools/reference_pages.py\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
