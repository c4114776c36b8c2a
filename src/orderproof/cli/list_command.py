"""`orderproof list`: the laws, the encodings, the rules, the questions and the studies."""

from __future__ import annotations

import inspect
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from orderproof.optional_packages import require_packages


def list_command(
    what: Annotated[
        Literal["laws", "encodings", "rules", "questions", "studies"], typer.Argument(help="The list to print.")
    ],
) -> None:
    """List the laws, positional encodings, rules of the prover, questions or studies.

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
    from orderproof.laws import ProvedLaw, measured_laws, proved_laws
    from orderproof.laws.measured import MeasuredLaw

    table = _table("code", "law", "statement", "kind", "the model", "check for")
    laws: list[ProvedLaw | MeasuredLaw] = [*proved_laws(), *measured_laws()]
    for law in laws:
        checked = ", ".join(kind for kind, e in law.expectation.items() if e == "holds") if law.kind == "check" else ""
        table.add_row(law.code, law.name, law.statement, law.kind, law.trait, checked or "-")
    return table


def _encodings() -> Table:
    from orderproof import encodings

    table = _table("name", "class", "description")
    for name in encodings.names():
        encoding = encodings.get(name)
        text = inspect.getdoc(inspect.getmodule(encoding)) or ""
        table.add_row(name, encoding.__name__, text.splitlines()[0] if text else "")
    return table


def _questions() -> Table:
    from orderproof.lab.ceilings import MODEL_KINDS
    from orderproof.lab.registry import questions

    table = _table("name", "measure", "model kinds", "order", "task")
    for name, question in questions().items():
        order = "needed" if question.needs_order else "not needed (control)"
        table.add_row(name, question.measure, MODEL_KINDS[question.requires_causal], order, question.statement)
    return table


def _studies() -> Table:
    require_packages("orderproof list studies", "yaml", extra="lab")
    from orderproof.lab.study import built_in_studies, load_study

    table = _table("study", "question", "runs", "description")
    for name in built_in_studies():
        study = load_study(name)
        runs = study.runs()
        questions = dict.fromkeys(run.question.name for run in runs)
        table.add_row(name, ", ".join(questions), str(len(runs)), study.about)
    return table


def _rules() -> Table:
    from orderproof.atlas.operator_usage import operator_usage
    from orderproof.prover.rule import lemma_summaries, rules

    used = operator_usage()
    title = (
        f"The number after an operator: how many of the {used.architectures} architectures of transformers "
        f"{used.transformers} use it"
    )
    table = _table("lemma", "operators", "statement")
    table.caption, table.caption_justify = title, "left"
    statements = lemma_summaries()
    by_lemma: dict[str, set[str]] = {}
    for rule in rules():
        by_lemma.setdefault(rule.lemma, set()).update(rule.operators)
    for lemma, operators in by_lemma.items():
        counts = {name: used.of(name) for name in operators - {"<pointwise>"}} | used.by_tag(lemma)
        table.add_row(lemma, _usage_text(counts), statements[lemma])
    if without := used.without_rule():
        table.add_row(
            "no lemma",
            _usage_text(without),
            "Applied only where no input depends on order, or where the result is constant.",
        )
    return table


def _usage_text(counts: dict[str, int]) -> str:
    """Operators with their number of uses, the most used first."""
    shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" if count else name for name, count in shown)
