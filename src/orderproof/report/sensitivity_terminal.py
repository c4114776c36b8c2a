"""The report of `orderproof sensitivity` for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderproof.records.sensitivity import (
    OTHER_SENTENCE,
    SAME_SENTENCE,
    MedianInterval,
    PerturbationEffect,
    WordOrderSensitivity,
)
from orderproof.report import phrases
from orderproof.report.terminal_blocks import print_block

POOLINGS = {"mean": "mean over the tokens", "first": "first token", "last": "last token"}
HEADLINES = {
    "role swap": "swapping the two roles", "word swap": "swapping two words", "reversal": "reversing the words"
}  # fmt: skip
SMALLEST_PERCENT = 5e-4


def format_share(value: float) -> str:
    """A share in percent; below `SMALLEST_PERCENT` in scientific notation."""
    return "0" if value == 0 else f"{value:.0e}" if abs(value) < SMALLEST_PERCENT else f"{100 * value:.1f}%"


def format_interval(found: MedianInterval) -> str:
    """A share with its interval; without it below `SMALLEST_PERCENT`."""
    if max(abs(found.median), abs(found.high)) < SMALLEST_PERCENT:
        return format_share(found.median)
    return f"{format_share(found.median)} [{format_share(found.low)}, {format_share(found.high)}]"


def sensitivity_headline(found: WordOrderSensitivity) -> str:
    """The result in one sentence."""
    effects = [
        (HEADLINES[m.perturbation], format_interval(m.share_of_unrelated))
        for m in found.effects
        if m.perturbation in HEADLINES and m.share_of_unrelated is not None
    ]
    if not effects:
        return "All sentences have the same vector, so there is no distance to compare with."
    (change, share), *rest = effects
    more = "".join(f"; {each} {far}" for each, far in rest)
    return f"{change.capitalize()} moves a sentence {share} of the way to another sentence{more}."


def column_heading(kind: str) -> str:
    """The name of a kind of reordering as a column heading."""
    return kind.removesuffix(" swap").removesuffix(" shuffle")


def render_sensitivity(found: WordOrderSensitivity, console: Console) -> None:
    """Print the record on the console."""

    def block(content: Text | Table) -> None:
        print_block(console, content, indent=2)

    def heading(title: str) -> None:
        console.print()
        print_block(console, Text(title, style="bold"), indent=0)

    print_block(console, Text(phrases.escape_control_characters(found.subject.name), style="bold"), indent=0)
    print_block(console, Text(phrases.escape_control_characters(phrases.subject_line(found.subject))), indent=0)
    heading("Sensitivity to word order")
    block(Text(sensitivity_headline(found)))
    block(Text(phrases.escape_control_characters(_measurement_text(found))))
    block(_movement_table(found.effects))
    heading("By layer: share of the way to another sentence, in cosine distance")
    block(_layer_table(found))
    heading("Without positions")
    block(Text(phrases.escape_control_characters(_without_positions_text(found))))
    if found.without_positions.effects:
        block(_movement_table(found.without_positions.effects))
    heading("Examples")
    examples = Table.grid(padding=(0, 2, 0, 0))
    if found.examples:
        examples.add_row("original", Text(phrases.escape_control_characters(found.examples[0].before)))
    for example in found.examples:
        if example.before == found.examples[0].before:
            examples.add_row(example.kind, Text(phrases.escape_control_characters(example.after)))
    block(examples)


def _measurement_text(found: WordOrderSensitivity) -> str:
    excluded = "".join(f"; {count} excluded: {reason}" for reason, count in found.excluded.items())
    return (
        f"{phrases.pluralize(found.sentences, 'sentence')} from {found.source}{excluded}. Sentence vector: "
        f"{POOLINGS[found.pooling]}, {found.pooling_source}."
    )


def _without_positions_text(found: WordOrderSensitivity) -> str:
    without = found.without_positions
    if not without.effects:
        return f"Not measured: {without.reason}."
    return (
        f"The recorded graph with position {without.reference_position} for every token, on {without.sentences} "
        f"sentences of {without.tokens} tokens. For a bag of words, only rounding error is left."
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right", no_wrap=True)
    return table


def _movement_table(moved: tuple[PerturbationEffect, ...]) -> Table:
    table = _table("reordering", "sentences", "cosine", "relative", "share of the way", "nearer")
    for m in moved:
        shares = ("", "") if m.perturbation == OTHER_SENTENCE else ("-", "-")
        if m.share_of_unrelated is not None and m.still_nearest_fraction is not None:
            shares = (
                format_share(m.share_of_unrelated.median)
                if m.perturbation == SAME_SENTENCE
                else format_interval(m.share_of_unrelated),
                f"{100 * m.still_nearest_fraction:.0f}%",
            )
        table.add_row(
            m.perturbation,
            str(m.sentences),
            phrases.format_difference(m.cosine.median),
            phrases.format_difference(m.relative.median),
            *shares,
        )
    return table


def _layer_table(found: WordOrderSensitivity) -> Table:
    kinds = [m.perturbation for m in found.effects if m.perturbation not in (OTHER_SENTENCE, SAME_SENTENCE)]
    table = _table("layer", *map(column_heading, kinds))
    for layer in found.layers:
        shares = {m.perturbation: m.share_of_unrelated for m in layer.effects}
        cells = [format_share(s.median) if (s := shares[kind]) is not None else "-" for kind in kinds]
        table.add_row(str(layer.layer), *cells)
    return table
