"""Measured conventions as text: a table for each function, or for several functions one for each question."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from orderproof.records.conventions import AnswersRecord, ConventionsReport
from orderproof.report.markdown import escape_markdown
from orderproof.report.markdown_table import markdown_table
from orderproof.report.terminal_blocks import print_block
from orderproof.report.terminal_tables import plain_text


def render_conventions(report: ConventionsReport, console: Console) -> None:
    """Print the answers, and what they break where functions differ."""
    for question in report.questions:
        if not (asked := report.asked(question.name)):
            continue
        differ = question.name in report.differing or (not report.against and len(set(asked.values())) > 1)
        style = "bold red" if question.name in report.differing else "bold"
        print_block(console, plain_text(f"{question.name}  {question.text}", style), indent=0)
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for function, answer in asked.items():
            grid.add_row(plain_text(function), plain_text(answer))
        print_block(console, grid, indent=2)
        if differ:
            print_block(console, plain_text(question.breaks, "dim"), indent=2)
    versions = dict.fromkeys(f"{each.version}; queries and vectors {each.layout}" for each in report.functions)
    for version in versions:
        print_block(console, plain_text(version, "dim"), indent=0)
    for one, other in report.of_two_versions:
        print_block(console, plain_text(versions_text(one, other), "bold"), indent=0)
    if report.against:
        print_block(console, plain_text(difference_text(report), "bold"), indent=0)


def difference_text(report: ConventionsReport) -> str:
    """`f.py:attention differs from torch.sdpa in 2 conventions: boolean_mask, masked_row`."""
    first = report.functions[0].function
    if not report.differing:
        return f"{first} and {report.against} have the same conventions, of those that both take"
    count = len(report.differing)
    return (
        f"{first} differs from {report.against} in {count} convention{'s' * (count > 1)}: {', '.join(report.differing)}"
    )


def versions_text(one: AnswersRecord, other: AnswersRecord) -> str:
    """`onnx.attention_23: onnx 1.20.1 and onnx 1.23.2 differ in 2 conventions: masked_row, soft_cap`."""
    questions = one.differs_from(other)
    about = f"{one.plain_name}: {one.version} and {other.version}"
    if not questions:
        return f"{about} have the same conventions"
    return f"{about} differ in {len(questions)} convention{'s' * (len(questions) > 1)}: {', '.join(questions)}"


def _between_versions(report: ConventionsReport) -> list[str]:
    """A section with the answers that changed between two versions; empty without two versions."""
    if not report.of_two_versions:
        return []
    rows = [
        [f"`{one.plain_name}`", name, *(f"{escape_markdown(x.answers[name])} ({x.version})" for x in (one, other))]
        for one, other in report.of_two_versions
        for name in one.differs_from(other)
    ]
    title = "## Between two versions"
    if not rows:
        return [title, f"None of {len(report.of_two_versions)} functions answers a question differently."]
    return [title, markdown_table(["function", "question", "answer", "answer"], rows)]


def conventions_markdown(report: ConventionsReport, command: str) -> str:
    """A section for each question, with a table of the functions that take its arguments.

    An answer that is not the most common one is bold.
    """
    parts = []
    for question in report.questions:
        if not (asked := report.asked(question.name)):
            continue
        answers = list(asked.values())
        usual = max(answers, key=answers.count)
        rows = [
            [f"`{function}`", escape_markdown(text) if text == usual else f"**{escape_markdown(text)}**"]
            for function, text in asked.items()
        ]
        parts += [f"## {question.name}", question.text, question.breaks, markdown_table(["function", "answer"], rows)]
    versions = dict.fromkeys(each.version.partition(", opset")[0] for each in report.functions)
    about = f"{len(report.functions)} functions of {', '.join(versions)}. Written by `{command}`; not edited by hand."
    read = (
        "Each answer is read off the output of a call. An answer that is not the most common one is bold; a function "
        "that has no such argument is left out, and *refused* is an error of the call."
    )
    title = "# Conventions of attention, rotations and position tables"
    return "\n\n".join([title, about, read, *_between_versions(report), *parts]) + "\n"
