"""The two pictures of the README: two sentences through one layer, and the first screen of a report.

    python tools/readme_pictures.py            write docs/images/order_swap.svg and docs/images/report.png
    python tools/readme_pictures.py --check    exit 1 if order_swap.svg is not current

order_swap.svg   the mean output of a one-layer transformer of this package, with seeded random weights, for two
                 sentences with the same words: without positions, and with rotary positions. Numbers are computed.
report.png       the audit page of a decoder with an off-by-one mask, in chromium at 1280 px; needs playwright
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from orderproof import audit, positions
from orderproof.blocks import Transformer
from orderproof.report import write_html
from orderproof.report.file_output import write_file

IMAGES = Path(__file__).parents[1] / "docs/images"
SENTENCES = (("the", "cat", "chased", "the", "dog"), ("the", "dog", "chased", "the", "cat"))
WIDTH, HEADS, LAYERS = 32, 4, 1
SHOWN = 24  # numbers of each output that are drawn
MAGNIFIED = 50  # the factor with which differences are drawn
SAME = 1e-12  # differences in float64 below this are rounding
INKS = {"cat": "#b3470f", "dog": "#0c4a94"}
DECODER = """import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(100, 16)
        self.places = nn.Embedding(32, 16)
        self.qkv = nn.Linear(16, 48)

    def forward(self, tokens):
        n = tokens.shape[1]
        x = self.words(tokens) + self.places(torch.arange(n))
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        mask = torch.ones(n, n, dtype=torch.bool).tril(1)
        return x + scaled_dot_product_attention(q, k, v, attn_mask=mask)


def decoder():
    return Decoder(), torch.randint(100, (2, 7))
"""


@torch.no_grad()
def mean_outputs(encoding: str) -> list[Tensor]:
    """The mean output for each sentence [width], in float64."""
    torch.manual_seed(0)
    model = Transformer(WIDTH, HEADS, LAYERS, encoding=encoding, causal=False).double().eval()
    words = {word: torch.randn(WIDTH, dtype=torch.float64) for word in sorted({w for s in SENTENCES for w in s})}
    p = positions.arange(len(SENTENCES[0]))
    return [model(torch.stack([words[w] for w in sentence])[None], p)[0].mean(0) for sentence in SENTENCES]


def swap_svg() -> str:
    """The picture as text."""
    label = "Two sentences with the same words: one output without positions, two with them"
    attributes = f'viewBox="0 0 880 410" font-family="system-ui, sans-serif" role="img" aria-label="{label}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>',
        '<rect width="880" height="410" rx="8" fill="#fdfdfb"/>',
        _text(
            24, 36, "Who chased whom? The same five words, in two orders, through one attention layer", 17, bold=True
        ),
    ]
    for k, (title, encoding) in enumerate((("Without positions", "none"), ("With positions (RoPE)", "rotary"))):
        top = 58 + 162 * k
        first, second = mean_outputs(encoding)
        difference = float((first - second).abs().max() / first.abs().max())
        verdict = "the same vector" if difference < SAME else "two different vectors"
        parts.append(_text(24, top + 14, title, 16, bold=True))
        scale = max(float(x.abs().max()) for x in (first, second))
        for j, (sentence, output) in enumerate(zip(SENTENCES, (first, second), strict=True)):
            parts += _row(sentence, output / scale, top + 26 + 36 * j)
        parts.append(_text(24, top + 118, verdict, 15))
        parts.append(_text(370, top + 118, f"× {MAGNIFIED}", 14, ink="#55585d", anchor="end"))
        parts += _cells((first - second) / scale * MAGNIFIED, top + 98)
    closing = "Colour: the mean output, blue positive, orange negative. The last row of each is the difference."
    parts.append(_text(24, 394, closing, 14, ink="#55585d"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _row(sentence: Sequence[str], output: Tensor, top: int) -> list[str]:
    """The words of a sentence, an arrow, and its output as coloured cells."""
    parts, left = [], 24
    for word in sentence:
        width = 18 + 9 * len(word)
        fill = INKS.get(word, "#e7e7e1")
        ink = "#ffffff" if word in INKS else "#1b1c1e"
        parts.append(f'<rect x="{left}" y="{top}" width="{width}" height="28" rx="4" fill="{fill}"/>')
        parts.append(_text(left + width / 2, top + 19, word, 15, ink=ink, anchor="middle"))
        left += width + 6
    parts.append(_text(356, top + 20, "→", 18, anchor="middle"))
    return [*parts, *_cells(output, top)]


def _cells(output: Tensor, top: int) -> list[str]:
    """The first numbers of an output from -1 to 1 as coloured cells."""
    parts = []
    for i, value in enumerate(output[:SHOWN].tolist()):
        level = min(round(abs(value) * 20) / 20, 1.0)
        # The sign of a number that is shown as 0 differs between processors.
        colour = "179,71,15" if value < 0 < level else "12,74,148"
        place = f'x="{380 + 20 * i}" y="{top}" width="19" height="28"'
        parts.append(f'<rect {place} fill="rgb({colour})" fill-opacity="{level:.2f}" stroke="#d6d6cf"/>')
    return parts


def _text(
    x: float, y: float, text: str, size: int, *, bold: bool = False, ink: str = "#1b1c1e", anchor: str = "start"
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{ink}" text-anchor="{anchor}"{weight}>{text}</text>'


def write_report_picture(file: Path) -> None:
    """The first screen of the audit page of the decoder."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        source, page_file = Path(folder, "model.py"), Path(folder, "report.html")
        source.write_text(DECODER, encoding="utf-8")
        write_html(audit(f"{source}:decoder", kind="decoder"), page_file)
        browser = play.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(page_file.as_uri())
        page.screenshot(path=file)
        browser.close()


def _chromium() -> str | None:
    import shutil

    return shutil.which("chromium")


def main(arguments: list[str] | None = None) -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if order_swap.svg is not current")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    swap = IMAGES / "order_swap.svg"
    if options.check:
        current = swap.is_file() and swap.read_text(encoding="utf-8") == swap_svg()
        if not current:
            sys.stderr.write("docs/images/order_swap.svg is not current; run python tools/readme_pictures.py\n")
        return int(not current)
    write_file(swap_svg(), swap)
    write_report_picture(IMAGES / "report.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
