"""The table of docs/how_to/which_encoding.md: audits of small models with the best-known encodings.

    python tools/fingerprint_table.py            write the table into the page
    python tools/fingerprint_table.py --check    exit 1 if the page has another table
    python tools/fingerprint_table.py --print    print it only
    python tools/fingerprint_table.py --table FILE --page FILE     use this table instead of audits; another page

Each row is `orderproof.audit` of a small model from features to features, with an encoding at its defaults; rotary in
both layouts. Causal models without positions have one layer, which does not see the order of its prompt, and two,
which do. `tools/encoding_table.py` writes the rows of all registered encodings to docs/reference/encodings.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from orderproof.blocks import Transformer, fingerprint_model
from orderproof.encodings import Rotary

PAGE = Path(__file__).parents[1] / "docs/how_to/which_encoding.md"
START_MARKER = "<!-- fingerprints: written by tools/fingerprint_table.py -->"
END_MARKER = "<!-- end of fingerprints -->"
ENCODINGS_SHOWN = ("none", "alibi", "learned", "rotary", "sinusoidal", "t5")
LAW_COLUMNS = {"OP101": "permutation", "OP102": "prompt_permutation", "OP103": "reversal", "OP201": "causal"}


def models() -> Iterator[tuple[str, str, nn.Module]]:
    """Each row: a description of the model, the encoding, and the module to audit."""
    for causal in (False, True):
        description = f"{'causal' if causal else 'bidirectional'}, 2 layers"
        for name in ENCODINGS_SHOWN:
            model = fingerprint_model(name, causal=causal)
            yield description, _title(model), model
            if isinstance(model.encoding, Rotary):
                other = _interleaved(model, causal=causal)
                yield description, _title(other), other
    yield "causal, 1 layer", "none", fingerprint_model("none", causal=True, layers=1)


def _title(model: Transformer) -> str:
    encoding = model.encoding
    return f"{encoding.name}, {encoding.layout}" if isinstance(encoding, Rotary) else encoding.name


def _interleaved(model: Transformer, *, causal: bool) -> Transformer:
    """The same model with the other rotary layout."""
    encoding = Rotary(model.width // model.heads, layout="interleaved")
    other = Transformer(model.width, model.heads, len(model.stack.layers), encoding=encoding, causal=causal)
    other.load_state_dict(model.state_dict())
    return other.eval()


def law_verdicts(module: nn.Module) -> tuple[str, ...]:
    """The verdicts of the laws in the table."""
    from orderproof import audit

    found = {f.code: f for f in audit(module, laws=list(LAW_COLUMNS)).findings}
    return tuple(found[code].verdict + (" (vacuous)" if found[code].vacuous else "") for code in LAW_COLUMNS)


def markdown_table() -> str:
    """The table, in Markdown."""
    header = ("model", "encoding", *(f"{code} {name}" for code, name in LAW_COLUMNS.items()))
    lines = [header, tuple("---" for _ in header)]
    lines += [(description, encoding, *law_verdicts(module)) for description, encoding, module in models()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def split_page(text: str) -> tuple[str, str, str]:
    """The page before the table, the table, and the page after it."""
    before, start, rest = text.partition(START_MARKER)
    middle, end, after = rest.partition(END_MARKER)
    if not start or not end:
        raise SystemExit(
            f"{PAGE.name}: expected the lines {START_MARKER!r} and {END_MARKER!r}; add them where the table belongs"
        )
    return before + start, middle.strip(), end + after


def main(arguments: list[str] | None = None) -> int:
    """Write, check or print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the page has another table")
    parser.add_argument("--print", action="store_true", help="print the table only")
    parser.add_argument("--table", type=Path, help="a file with the table; audits are run by default")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page; docs/how_to/which_encoding.md by default")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # small tensors do not benefit from threads
    before, current, after = split_page(options.page.read_text(encoding="utf-8"))
    table = markdown_table() if options.table is None else options.table.read_text(encoding="utf-8").strip()
    if options.print:
        sys.stdout.write(table + "\n")
        return 0
    if options.check:
        if current != table:
            sys.stderr.write(
                f"which_encoding.md: expected this table; run python tools/fingerprint_table.py\n{table}\n"
            )
        return int(current != table)
    options.page.write_text(f"{before}\n{table}\n{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
