"""The gallery of encodings: `docs/reference/gallery.md` and a picture of each in `docs/evidence/encodings/`.

    python tools/encoding_gallery.py             write the page and the pictures
    python tools/encoding_gallery.py --check     exit 1 if the page or a picture is missing or outdated
    python tools/encoding_gallery.py --table FILE     take the fingerprints from this page

It exits with 2 and writes nothing if docs/reference/encodings.md lacks an encoding: run tools/encoding_table.py first.

A picture is computed from the encoding itself. An encoding that is added to the inputs is drawn as its table. Every
other one is drawn by the attention that it gives: the weights of one head for equal queries and keys, so that position
alone decides. The formula is that of the encoding's file, and the fingerprint its row in docs/reference/encodings.md.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path

import torch
from torch import Tensor

from orderproof import encodings, positions
from orderproof.blocks import raster_positions
from orderproof.encodings import ModelSizes, PositionalEncoding, attention
from orderproof.report.file_output import write_file
from orderproof.seeded_random import seeded_random

DOCS = Path(__file__).parents[1] / "docs"
PAGE, IMAGES = DOCS / "reference/gallery.md", DOCS / "evidence/encodings"
TABLE = DOCS / "reference/encodings.md"
HEADS, TOKENS, TABLE_WIDTH = 4, 32, 48
CELL = 6  # [pixels]
HEAD = """# Gallery of encodings

Written by `python tools/encoding_gallery.py`; do not edit.

Each picture is computed by the encoding. *Table*: a row is a position, a column a feature. *Attention*: a row is a
query, a column a key; darker is a larger weight, for equal queries and keys, so that position alone decides. Learned
parameters are drawn at random, so their pictures show a form and not a result of training. Encodings of images and
video have 8 patches in a row. The fingerprint is the audit of a model of two layers, bidirectional and causal
([table](encodings.md)): P proved, R refuted, U undecided for permutation, prompt_permutation, reversal, causal. The
line of code makes a transformer of width 64 with 8 heads and 2 layers (`from orderproof.blocks import Transformer`);
without a model: [use an encoding](../how_to/use_an_encoding.md). Which one to use:
[the evidence](../how_to/which_encoding.md).
"""


def picture(name: str) -> tuple[str, Tensor]:
    """The kind of picture, and the values to draw, from 0 to 1; the same on every call."""
    with seeded_random(0):
        return _kind_and_values(name)


def _kind_and_values(name: str) -> tuple[str, Tensor]:
    encoding = _built(name, HEADS * TOKENS)
    if encoding.claims.site == "embed":
        encoding = _built(name, TABLE_WIDTH)
    for parameter in encoding.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter)
    encoding = encoding.double()
    count, axes = positions.arange(TOKENS), encoding.claims.ndim
    p = count.expand(axes, -1) if axes > 2 else raster_positions(count, axes=axes, side=8)  # text: all axes are equal
    with torch.no_grad():
        if encoding.claims.site == "embed":
            table = encoding.embed(torch.zeros(1, TOKENS, TABLE_WIDTH, dtype=torch.float64), p)[0]
            return "Table", (table - table.min()) / (table.max() - table.min())
        return "Attention", _attention_weights(encoding, p)


def _built(name: str, width: int) -> PositionalEncoding:
    return encodings.get(name).for_model(ModelSizes(width=width, heads=HEADS, causal=True, length=64))


def _attention_weights(encoding: PositionalEncoding, p: Tensor) -> Tensor:
    """The weights [query, key] of the first head for equal queries and keys, as shares of the row's largest."""
    same = torch.randn(1, HEADS, 1, TOKENS, dtype=torch.float64).expand(1, HEADS, TOKENS, TOKENS)
    values = torch.eye(TOKENS, dtype=torch.float64).expand(1, HEADS, TOKENS, TOKENS)
    state = encoding.token_state(torch.randn(1, TOKENS, HEADS * TOKENS, dtype=torch.float64))
    extra = {} if state is None else {"token_state": state}
    outputs = [
        attention(same, same, v, encoding=encoding, q_positions=p, causal=True, **extra)[0, 0]
        for v in (values, torch.zeros_like(values))
    ]
    weights = outputs[0] - outputs[1]  # without what the encoding adds to the values
    return weights / weights.amax(dim=-1, keepdim=True)


def svg(name: str) -> str:
    """The picture as text; equal neighbours in a row are one rectangle."""
    kind, values = picture(name)
    rows, columns = values.shape
    size = f'viewBox="0 0 {columns * CELL} {rows * CELL}" width="{columns * CELL}" height="{rows * CELL}"'
    label = f'role="img" aria-label="{kind} of {name}" shape-rendering="crispEdges"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label}><rect width="100%" height="100%" fill="#fff"/>']
    for y, row in enumerate((values * 12).round().int().clamp(0, 12).tolist()):
        start = 0
        for x in range(1, columns + 1):
            if x == columns or row[x] != row[start]:
                if row[start]:
                    place = f'x="{start * CELL}" y="{y * CELL}" width="{(x - start) * CELL}" height="{CELL}"'
                    parts.append(f'<rect {place} fill="#0c3d82" fill-opacity="{row[start] / 12:.2f}"/>')
                start = x
    return "\n".join([*parts, "</svg>"]) + "\n"


def page(fingerprints: dict[str, tuple[str, str]]) -> str:
    """The page as text."""
    parts = [HEAD.rstrip()]
    for name in encodings.names():
        encoding = encodings.get(name)
        file = inspect.getmodule(encoding if inspect.isclass(encoding) else type(encoding)).__doc__ or ""
        title = file.splitlines()[0].rstrip(".")
        formula = re.search(r"(?:^    .*\n)+", file, re.MULTILINE)
        bidirectional, causal = fingerprints[name]
        fingerprint = f"Fingerprint: {bidirectional} bidirectional, {causal} causal."
        parts += [
            f"## {name}",
            title + ".",
            f"![{name}](../evidence/encodings/{name}.svg)",
            formula[0].rstrip() if formula else "",
            f'    Transformer(64, 8, 2, encoding="{name}", causal=True, length=64)',
            f"{fingerprint} [Symbols, claims and source](each_encoding.md#{name}).",
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _fingerprints(table: Path) -> dict[str, tuple[str, str]]:
    """The columns of laws of a page like docs/reference/encodings.md, by encoding."""
    lines = table.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {row[0].strip("`"): (row[4], row[5]) for row in cells}


def _outdated(text: str) -> bool:
    """True if the page is not this text, or a picture is not the one that its encoding gives.

    Pictures are compared exactly: no value is so near the boundary of two shades that rounding errors change it.
    """
    files = {PAGE: text} | {IMAGES / f"{name}.svg": svg(name) for name in encodings.names()}
    return any(not file.is_file() or file.read_text(encoding="utf-8") != new for file, new in files.items())


def main(arguments: list[str] | None = None) -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the page or a picture is missing or outdated")
    parser.add_argument("--table", type=Path, default=TABLE, help="a page like encodings.md")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    fingerprints = _fingerprints(options.table)
    if missing := [name for name in encodings.names() if name not in fingerprints]:
        command = " --only ".join(["python tools/encoding_table.py", *missing])
        sys.stderr.write(f"{options.table.name} has no row for {', '.join(missing)}; first run {command}\n")
        return 2
    text = page(fingerprints)
    if options.check:
        outdated = _outdated(text)
        if outdated:
            sys.stderr.write(f"{PAGE.name} or its pictures are not current; run python tools/encoding_gallery.py\n")
        return int(outdated)
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in encodings.names():
        write_file(svg(name), IMAGES / f"{name}.svg")
    write_file(text, PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
