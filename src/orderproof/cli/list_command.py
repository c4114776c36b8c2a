"""`orderproof list`: the laws, the encodings, the rules, the questions, the studies and the engines."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from orderproof.cli.console import new_console
from orderproof.optional_packages import require_packages


def list_command(
    what: Annotated[
        Literal["laws", "encodings", "rules", "questions", "studies", "engines"],
        typer.Argument(help="The list to print."),
    ],
) -> None:
    """List the laws, positional encodings, rules of the prover, questions, studies or inference engines.

    \b
    Examples:
      orderproof list laws
      orderproof list rules
      orderproof list studies
      orderproof list engines
    """
    tables = {
        "laws": _laws, "encodings": _encodings, "rules": _rules, "questions": _questions, "studies": _studies,
        "engines": _engines,
    }  # fmt: skip
    table = tables[what]()
    new_console().print(table)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _add_entry(table: Table, name: str, *lines: str) -> None:
    """Add a row of a name and lines of text: a column for each fact would wrap in a terminal of 80 characters."""
    table.add_row(Text(name, no_wrap=True), Text("\n".join(line for line in lines if line)))


def _laws() -> Table:
    from orderproof.catalogue.laws import laws

    table = _table("law", "statement")
    for law in laws():
        kinds = ", ".join(kind for kind, e in law.expectation.items() if e == "holds") if law.kind == "check" else ""
        about = f"{law.kind}: {law.trait}" + (f" (of {kinds})" if kinds else "")
        _add_entry(table, f"{law.code} {law.name}", law.statement, about)
    return table


def _encodings() -> Table:
    from orderproof.catalogue.encodings import encodings

    table = _table("name", "class", "description")
    for encoding in encodings():
        table.add_row(*encoding)
    return table


def _questions() -> Table:
    from orderproof.catalogue.questions import model_kinds, questions

    table = _table("name", "task")
    for name, question in questions().items():
        order = "order is needed" if question.needs_order else "order is not needed (control)"
        about = f"{question.measure}; {model_kinds()[question.requires_causal]}; {order}"
        _add_entry(table, name, question.statement, about)
    return table


def _studies() -> Table:
    require_packages("orderproof list studies", "yaml", extra="lab")
    from orderproof.lab.study_config import built_in_studies, read_study

    table = _table("study", "question", "runs", "description")
    for name in built_in_studies():
        study = read_study(name)
        table.add_row(name, ", ".join(study.question_names()), str(len(study.combinations())), study.about)
    return table


def _engines() -> Table:
    from orderproof.ports.engines.registry import engines

    table = _table("engine", "library")
    for engine in engines().values():
        installed = f", installed: {engine.version}" if engine.is_installed else ", not installed"
        title = engine.title + (installed if engine.how_to_install else "")
        _add_entry(
            table, engine.name, title, f"compares {', '.join(sorted(engine.abilities))}",
            f"compares of encoders {', '.join(sorted(engine.encoder_abilities))}" if engine.encoder_abilities else "",
            engine.how_to_install, engine.note,
        )  # fmt: skip
    return table


def _rules() -> Table:
    from orderproof.atlas.operator_usage import operator_usage
    from orderproof.catalogue.rules import POINTWISE, rule_of, rules, summaries

    used = operator_usage()
    title = (
        f"The number after an operator: how many of the {used.architectures} architectures of transformers "
        f"{used.transformers} use it"
    )
    table = _table("lemma", "statement and operators")
    table.caption, table.caption_justify = title, "left"
    counts: dict[str, dict[str, int]] = {
        rule.lemma: {} for rule in rules()
    }  # of each lemma: the count of each operator
    for rule in rules():
        counts[rule.lemma] |= {name: used.of(name) for name in rule.operators if name != POINTWISE}
    without = {}
    for operator, count in used.operators.items():
        found = rule_of(operator, pointwise=operator in used.pointwise)
        if found is None:
            without[operator] = count
        elif POINTWISE in found.operators:  # the operator may be covered by its tag, and not by name
            packet = operator.split(".")[1]
            counts[found.lemma][packet] = max(count, counts[found.lemma].get(packet, 0))
    for lemma, by_operator in counts.items():
        _add_entry(table, lemma, summaries()[lemma], _usage_text(by_operator))
    if without:
        text = "Applied only where no input depends on order, or where the result is constant."
        _add_entry(table, "no lemma", text, _usage_text(without))
    return table


def _usage_text(counts: dict[str, int]) -> str:
    """Operators with their number of uses, the most used first."""
    shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" if count else name for name, count in shown)
