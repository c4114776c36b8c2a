"""`orderproof list`: the laws, the encodings, the rules, the questions and the studies."""

from __future__ import annotations

import inspect
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from orderproof.cli.extras import need


def list_(
    what: Annotated[
        Literal["laws", "encodings", "rules", "questions", "studies"], typer.Argument(help="What to list.")
    ],
) -> None:
    """List the laws, the encodings, the prover's rules, or the questions and studies of the lab.

    \b
    Examples:
      orderproof list laws
      orderproof list rules
      orderproof list studies
    """
    table = {"laws": _laws, "encodings": _encodings, "rules": _rules, "questions": _questions, "studies": _studies}[
        what
    ]()
    Console(highlight=False).print(table)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _laws() -> Table:
    from orderproof.laws import Law, laws
    from orderproof.laws.measured import MeasuredLaw, measured_laws

    table = _table("code", "law", "statement", "should hold for", "should fail for")
    every: list[Law | MeasuredLaw] = [*laws(), *measured_laws()]
    for law in every:
        kinds = {want: ", ".join(k for k, e in law.expectation.items() if e == want) for want in ("holds", "fails")}
        table.add_row(law.code, law.name, law.statement, kinds["holds"] or "-", kinds["fails"] or "-")
    return table


def _encodings() -> Table:
    from orderproof import encodings

    table = _table("name", "class", "what it is")
    for name in encodings.names():
        found = encodings.get(name)
        text = inspect.getdoc(inspect.getmodule(found)) or ""
        table.add_row(name, found.__name__, text.splitlines()[0] if text else "")
    return table


def _questions() -> Table:
    from orderproof.lab.asking import questions
    from orderproof.lab.ceilings import ASKED_OF

    table = _table("name", "measure", "asked of", "order", "what is asked")
    for name, question in questions().items():
        order = "needed" if question.needs_order else "control: not needed"
        table.add_row(name, question.measure, ASKED_OF[question.causal], order, question.statement)
    return table


def _studies() -> Table:
    need("orderproof list studies", "yaml", extra="lab")
    from orderproof.lab.study import built_in, load

    table = _table("study", "question", "runs", "about")
    for name in built_in():
        study = load(name)
        runs = study.runs()
        questions = dict.fromkeys(run.question.name for run in runs)
        table.add_row(name, ", ".join(questions), str(len(runs)), study.about)
    return table


def _rules() -> Table:
    from orderproof.prover.rule import rules, sentences
    from orderproof.prover.usage import usage

    used = usage()
    title = (
        f"Behind an operator: how many of {used.architectures} architectures of transformers {used.transformers} use it"
    )
    table = _table("lemma", "operators", "says")
    table.caption, table.caption_justify = title, "left"
    says = sentences()
    by_lemma: dict[str, set[str]] = {}
    for rule in rules():
        by_lemma.setdefault(rule.lemma, set()).update(rule.operators)
    for lemma, operators in by_lemma.items():
        counts = {name: used.of(name) for name in operators - {"<pointwise>"}} | used.by_tag(lemma)
        table.add_row(lemma, _counted(counts), says[lemma])
    if without := used.without_rule():
        table.add_row(
            "no lemma", _counted(without), "Followed only where nothing it reads moves, or where it is constant."
        )
    return table


def _counted(counts: dict[str, int]) -> str:
    """Operators with how many use them, the most used first."""
    shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" if count else name for name, count in shown)
