"""How far outputs move when words change places, in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderproof.report import words
from orderproof.report.printing import print_block
from orderproof.sensitivity_record import OTHER, SAME, Moved, Sensitivity, Spread

POOLINGS = {"mean": "the mean over its tokens", "first": "its first token's", "last": "its last token's"}
HEADLINES = {
    "role swap": "exchanging the two roles", "word swap": "exchanging two words", "reversal": "reversing the words"
}  # fmt: skip
TINY = 5e-4


def share(value: float) -> str:
    """A share in percent; a tiny one as a number with its power of ten."""
    return "0" if value == 0 else f"{value:.0e}" if abs(value) < TINY else f"{100 * value:.1f}%"


def between(found: Spread) -> str:
    """A share with its interval; without, where it is tiny."""
    if max(abs(found.median), abs(found.high)) < TINY:
        return share(found.median)
    return f"{share(found.median)} [{share(found.low)}, {share(found.high)}]"


def headline(found: Sensitivity) -> str:
    """The answer in one sentence."""
    said = [(HEADLINES[m.kind], between(m.share)) for m in found.moved if m.kind in HEADLINES and m.share is not None]
    if not said:
        return "Other sentences have the same vector, so there is nothing to compare with."
    (what, how_far), *rest = said
    more = "".join(f"; {each} {far}" for each, far in rest)
    return f"{what.capitalize()} moves a sentence {how_far} of the way to another sentence{more}."


def short(kind: str) -> str:
    """A kind of change as a column's name."""
    return kind.removesuffix(" swap").removesuffix(" shuffle")


def render_sensitivity(found: Sensitivity, console: Console) -> None:
    """Print the record on the console."""

    def block(content: Text | Table) -> None:
        print_block(console, content, indent=2)

    def heading(title: str) -> None:
        console.print()
        print_block(console, Text(title, style="bold"), indent=0)

    print_block(console, Text(words.visible(found.subject.name), style="bold"), indent=0)
    print_block(console, Text(words.visible(words.subject_line(found.subject))), indent=0)
    heading("How much does it care about the order of words?")
    block(Text(headline(found)))
    block(Text(words.visible(_setting(found))))
    block(_moves(found.moved))
    heading("Layer by layer: share of the way to another sentence, in cosine distance")
    block(_layers(found))
    heading("Without positions")
    block(Text(words.visible(_without(found))))
    if found.without.moved:
        block(_moves(found.without.moved))
    heading("Examples")
    examples = Table.grid(padding=(0, 2, 0, 0))
    if found.examples:
        examples.add_row("as it stands", Text(words.visible(found.examples[0].before)))
    for example in found.examples:
        if example.before == found.examples[0].before:
            examples.add_row(example.kind, Text(words.visible(example.after)))
    block(examples)


def _setting(found: Sensitivity) -> str:
    left = "".join(f"; left out {count}, {why}" for why, count in found.left_out.items())
    return (
        f"{words.count(found.sentences, 'sentence')} from {found.source}{left}. The vector: "
        f"{POOLINGS[found.pooling]}, {found.pooling_from}."
    )


def _without(found: Sensitivity) -> str:
    without = found.without
    if not without.moved:
        return f"Not measured: {without.reason}."
    return (
        f"The recorded graph with its order-carrying constants as at place {without.place} for every token: "
        f"{without.sentences} sentences of {without.tokens} tokens. What is left is rounding where nothing moves."
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right", no_wrap=True)
    return table


def _moves(moved: tuple[Moved, ...]) -> Table:
    table = _table("change", "sentences", "cosine", "relative", "share of the way", "nearer")
    for m in moved:
        told = ("", "") if m.kind == OTHER else ("-", "-")
        if m.share is not None and m.nearer is not None:
            told = (share(m.share.median) if m.kind == SAME else between(m.share), f"{100 * m.nearer:.0f}%")
        table.add_row(m.kind, str(m.sentences), words.size(m.cosine.median), words.size(m.relative.median), *told)
    return table


def _layers(found: Sensitivity) -> Table:
    kinds = [m.kind for m in found.moved if m.kind not in (OTHER, SAME)]
    table = _table("layer", *map(short, kinds))
    for layer in found.layers:
        shares = {m.kind: m.share for m in layer.moved}
        cells = [share(s.median) if (s := shares[kind]) is not None else "-" for kind in kinds]
        table.add_row(str(layer.layer), *cells)
    return table
