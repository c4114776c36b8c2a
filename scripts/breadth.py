"""The table of all encodings, `docs/reference/encodings.md`: what each claims, and what was found of it.

    python scripts/breadth.py             write the page
    python scripts/breadth.py --check     exit 1 if the page lacks an encoding, or says other claims than its class

laws       the audit of a block of two layers, bidirectional and causal: order_blind, prompt_blind, mirror_blind, causal
decode     the largest difference, in float64, between reading 9 tokens at once and one by one with a cache
float32    the largest error of what the encoding gives in float32, beside float64, as a part of the largest number
bfloat16   the share of what it gives in bfloat16 that is the float64 result, rounded
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from scripts.fingerprints import verdicts
from torch import Tensor

from orderproof import encodings, positions
from orderproof.blocks import fingerprint_block, row_by_row
from orderproof.encodings import Content, PositionalEncoding, Sizes

PAGE = Path(__file__).parents[1] / "docs/reference/encodings.md"
HEAD = """# Encodings

Written by `python scripts/breadth.py`; not edited by hand. An encoding is built by its class, or found by name with
`encodings.get(name)`; each file tells its mathematics and its source.

- *claims*: what the class says of itself, which the tests check on a real block.
- *laws*: the audit of a block of two layers with this encoding; P proved, R refuted, U undecided; in this order:
  order_blind, prompt_blind, mirror_blind, causal. Encodings for causal attention only have no bidirectional row.
- *decode*: reading 9 tokens at once or one by one with a cache; the largest difference in float64.
- *float32*: the largest error in float32, beside float64, as a part of the largest number.
- *bfloat16*: the share of results in bfloat16 that are the float64 result, rounded.
"""
LETTER = {"proved": "P", "refuted": "R", "undecided": "U", "not_applicable": "-"}
WIDTH, HEADS, TOKENS = 32, 4, 9


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def claims_in_words(encoding: PositionalEncoding) -> str:
    claims = encoding.claims
    words = [claims.site, "relative" if claims.relative else "absolute"]
    if claims.relative_within is not None:
        words[-1] += f" up to {claims.relative_within}"
    words += ["symmetric"] * claims.symmetric + ["causal only"] * claims.causal_only + ["content"] * claims.content
    words += ["mixes heads"] * claims.mixes_heads
    words += ["values"] * claims.values + ([f"state: {claims.state}"] if claims.state != "none" else [])
    words += [f"{claims.ndim} axes"] if claims.ndim > 1 else []
    return ", ".join(words)


def rows() -> Iterator[tuple[str, ...]]:
    for name in encodings.names():
        encoding = encodings.get(name).for_model(Sizes(width=WIDTH, heads=HEADS, causal=True, length=64))
        file = inspect.getmodule(type(encoding)).__doc__ or ""
        source = re.search(r"Source: (.*?\d{4})", file, re.DOTALL)
        title = file.splitlines()[0].split(":")[0]
        ways = [way for way in (False, True) if way or not causal_only(name)]
        laws = {
            way: "".join(LETTER[v.split()[0]] for v in verdicts(fingerprint_block(name, causal=way))) for way in ways
        }
        yield (
            f"`{name}`",
            f"{type(encoding).__name__}: {title}",
            " ".join(source[1].split()) if source else "",
            claims_in_words(encoding),
            laws.get(False, "-"),
            laws[True],
            decode(name),
            *exactness(name),
        )


def causal_only(name: str) -> bool:
    return encodings.get(name).for_model(Sizes(width=WIDTH, heads=HEADS, causal=False, length=64)).claims.causal_only


@torch.no_grad()
def decode(name: str) -> str:
    block = fingerprint_block(name, causal=True).double()
    x, count = normal(2, TOKENS, WIDTH, seed=1), positions.arange(TOKENS)
    axes = block.encoding.claims.ndim
    whole = block(x, row_by_row(count, axes=axes, side=8))
    caches = block.new_caches(2, TOKENS)
    steps = [
        block(x[:, t : t + 1], row_by_row(count[t : t + 1], axes=axes, side=8), caches=caches) for t in range(TOKENS)
    ]
    return f"{float((torch.cat(steps, dim=1) - whole).abs().max()):.0e}"


@torch.no_grad()
def exactness(name: str) -> tuple[str, str]:
    if name == "none":
        return "-", "-"
    torch.manual_seed(0)
    encoding = encodings.get(name).for_model(Sizes(width=WIDTH, heads=HEADS, causal=True, length=64))
    for parameter in encoding.parameters():
        if not parameter.any():  # one that starts at zero would say nothing
            torch.nn.init.normal_(parameter)
    exact = given(encoding, torch.float64, torch.float64)
    single = given(encoding, torch.float32, torch.float32)
    # What goes in is rounded first, so that only the encoding's own rounding is left.
    half, halved = given(encoding, torch.bfloat16, torch.bfloat16), given(encoding, torch.float64, torch.bfloat16)
    error = (single - given(encoding, torch.float64, torch.float32)).abs().max() / exact.abs().max()
    return f"{float(error):.0e}", f"{float((half == halved.bfloat16()).double().mean()):.2%}"


def given(encoding: PositionalEncoding, dtype: torch.dtype, rounded: torch.dtype) -> Tensor:
    """What the encoding gives in a dtype for inputs rounded to another, where a causal mask lets it be seen."""
    claims, count = encoding.claims, positions.offset(20, 40)
    p = row_by_row(count, axes=claims.ndim, side=8)
    x = normal(2, 40, WIDTH, seed=1).to(rounded).to(dtype)
    q, k = (normal(2, HEADS, 40, WIDTH // HEADS, seed=seed).to(rounded).to(dtype) for seed in (2, 3))
    if claims.site == "embed":
        return encoding.embed(x, p)
    if claims.site == "rotate":
        return torch.cat([y.flatten() for y in encoding.rotate(q, k, p)])
    visible = (count <= count.unsqueeze(-1)).view(1, 1, 40, 40)
    content = Content(q=q, k=k, scale=encoding.scale(q.shape[-1]), visible=visible, notes=encoding.notes(x))
    bias = encoding.bias(p, p, content=content if claims.content else None, dtype=dtype)
    return bias[..., visible[0, 0]] if claims.causal_only else bias


def page() -> str:
    header = (
        "name",
        "class",
        "source",
        "claims",
        "laws, bidirectional",
        "laws, causal",
        "decode",
        "float32",
        "bfloat16",
    )
    lines = [header, tuple("---" for _ in header), *rows()]
    return HEAD + "\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def stale() -> list[str]:
    """The encodings whose row is missing, or says other claims than their class."""
    there = PAGE.read_text(encoding="utf-8")
    found = {line.split("|")[1].strip(" `"): line for line in there.splitlines() if line.startswith("| `")}
    built = {n: encodings.get(n).for_model(Sizes(width=32, heads=4, causal=True, length=64)) for n in encodings.names()}
    return sorted(
        {n for n in built if n not in found or claims_in_words(built[n]) not in found[n]}
        | (found.keys() - built.keys())
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if chosen.check:
        wrong = stale()
        if wrong:
            sys.stderr.write(f"{PAGE.name} is not current for {', '.join(wrong)}; run python scripts/breadth.py\n")
        return int(bool(wrong))
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
