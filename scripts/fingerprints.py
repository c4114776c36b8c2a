"""The fingerprint table of the README: the best-known encodings in a small block, audited.

    python scripts/fingerprints.py            write the table into README.md
    python scripts/fingerprints.py --check    exit 1 if the README holds another table
    python scripts/fingerprints.py --print    print it only

Each row is `orderproof.audit` of a block from features to features, with the encoding at its defaults; rotary in both
its layouts. One causal layer without positions stands beside two: blind to its prompt, and not. Every registered
encoding has its row in docs/reference/encodings.md, which `scripts/breadth.py` writes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from orderproof.blocks import Transformer, fingerprint_block
from orderproof.encodings import Rotary

README = Path(__file__).parents[1] / "README.md"
START = "<!-- fingerprints: written by scripts/fingerprints.py -->"
END = "<!-- end of fingerprints -->"
SHOWN = ("none", "alibi", "learned", "rotary", "sinusoidal", "t5")
LAWS = {"OP101": "order_blind", "OP102": "prompt_blind", "OP103": "mirror_blind", "OP201": "causal"}


def blocks() -> Iterator[tuple[str, str, nn.Module]]:
    """Every row: the block in words, the encoding, and the module to audit."""
    for causal in (False, True):
        what = f"{'causal' if causal else 'bidirectional'}, 2 layers"
        for name in SHOWN:
            block = fingerprint_block(name, causal=causal)
            yield what, _title(block), block
            if isinstance(block.encoding, Rotary):
                other = _interleaved(block, causal=causal)
                yield what, _title(other), other
    yield "causal, 1 layer", "none", fingerprint_block("none", causal=True, layers=1)


def _title(block: Transformer) -> str:
    encoding = block.encoding
    return f"{encoding.name}, {encoding.layout}" if isinstance(encoding, Rotary) else encoding.name


def _interleaved(block: Transformer, *, causal: bool) -> Transformer:
    """The same block with the other layout of rotary."""
    encoding = Rotary(block.width // block.heads, layout="interleaved")
    other = Transformer(block.width, block.heads, len(block.stack.layers), encoding=encoding, causal=causal)
    other.load_state_dict(block.state_dict())
    return other.eval()


def verdicts(module: nn.Module) -> tuple[str, ...]:
    """What the audit says of each law of the table."""
    from orderproof import audit

    found = {f.code: f for f in audit(module, laws=list(LAWS)).findings}
    return tuple(found[code].verdict + (" (vacuous)" if found[code].vacuous else "") for code in LAWS)


def table() -> str:
    """The table, in Markdown."""
    header = ("block", "encoding", *(f"{code} {name}" for code, name in LAWS.items()))
    lines = [header, tuple("---" for _ in header)]
    lines += [(what, encoding, *verdicts(module)) for what, encoding, module in blocks()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parts(text: str) -> tuple[str, str, str]:
    """The page before the table, the table, and the page after it."""
    before, start, rest = text.partition(START)
    middle, end, after = rest.partition(END)
    if not start or not end:
        raise SystemExit(f"{README.name}: expected the lines {START!r} and {END!r}; add them where the table belongs")
    return before + start, middle.strip(), end + after


def main(arguments: list[str] | None = None) -> int:
    """Write, check or print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the README holds another table")
    parser.add_argument("--print", action="store_true", help="print the table only")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # the tensors are so small that a second thread only waits
    made = table()
    if chosen.print:
        sys.stdout.write(made + "\n")
        return 0
    before, there, after = parts(README.read_text(encoding="utf-8"))
    if chosen.check:
        if there != made:
            sys.stderr.write(
                f"README.md holds another table; run python scripts/fingerprints.py. It should be\n{made}\n"
            )
        return int(there != made)
    README.write_text(f"{before}\n{made}\n{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
