"""The table of all encodings, `docs/reference/encodings.md`: claims, verdicts and rounding errors.

    python tools/encoding_table.py                 measure every encoding and write the page: some minutes
    python tools/encoding_table.py --only NAME     measure this encoding and keep the other rows; can be repeated
    python tools/encoding_table.py --check         exit 1 if the page lacks an encoding or its claims are outdated

laws       the audit of a model of two layers, bidirectional and causal, for the laws in LAW_COLUMNS
decode     a bound of the difference, in float64, between processing 9 tokens at once and one by one with a KV cache
float32    a bound of the error of the encoding's output in float32, relative to the largest value in float64
bfloat16   the fraction of outputs in bfloat16 that equal the rounded float64 result

The page is written after each encoding, so that an interrupted run keeps the rows that it has measured.
"""

from __future__ import annotations

import argparse
import inspect
import math
import re
import sys
import time
from pathlib import Path

import torch
from fingerprint_table import law_verdicts
from torch import Tensor

from orderproof import encodings, positions
from orderproof.blocks import fingerprint_model, raster_positions
from orderproof.encodings import AttentionContent, ModelSizes, PositionalEncoding
from orderproof.report.file_output import write_file

PAGE = Path(__file__).parents[1] / "docs/reference/encodings.md"
HEAD = """# Encodings

Written by `python tools/encoding_table.py`; do not edit. Create an encoding from its class, or find the class by name
with `encodings.get(name)`; the file of each encoding documents its mathematics and source.

- *claims*: the declared properties, which the tests check on a real model.
- *laws*: the audit of a model of two layers with this encoding; P proved, R refuted, U undecided; in this order:
  permutation, prompt_permutation, reversal, causal. Encodings for causal attention only have no bidirectional row.
- *decode*: the largest difference, in float64, between processing 9 tokens at once and one by one with a KV cache.
- *float32*: the largest error in float32, relative to the largest value in float64.
- *bfloat16*: the fraction of results in bfloat16 that equal the rounded float64 result.

*decode* and *float32* are bounds: the measured error is at most twice this power of ten. Rounding errors depend on the
processor, and the exact numbers would change from one to the next.
"""
VERDICT_LETTERS = {"proved": "P", "refuted": "R", "undecided": "U", "not_applicable": "-"}
WIDTH, HEADS, TOKENS = 32, 4, 9


def seeded_normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def describe_claims(encoding: PositionalEncoding) -> str:
    claims = encoding.claims
    words = [claims.site, "relative" if claims.relative else "absolute"]
    if claims.relative_up_to is not None:
        words[-1] += f" up to {claims.relative_up_to}"
    words += (
        ["symmetric"] * claims.symmetric
        + ["causal only"] * claims.causal_only
        + ["content-dependent"] * claims.content_dependent
    )
    words += ["mixes heads"] * claims.mixes_heads
    words += ["adds to values"] * claims.adds_to_values + (
        [f"decode state: {claims.decode_state}"] if claims.decode_state != "none" else []
    )
    words += [f"{claims.ndim} axes"] if claims.ndim > 1 else []
    return ", ".join(words)


def power_of_ten(error: float) -> str:
    """The smallest power of ten of which the error is at most twice; 0 without an error.

    Rounding errors differ between processors. The factor keeps the usual ones, one unit in the last place (1.1e-7 in
    float32), away from the boundary of two powers.
    """
    return f"{10.0 ** math.ceil(math.log10(error / 2)):.0e}" if error else "0"


def row(name: str) -> tuple[str, ...]:
    """The cells of an encoding."""
    encoding = encodings.get(name).for_model(ModelSizes(width=WIDTH, heads=HEADS, causal=True, length=64))
    file = inspect.getmodule(type(encoding)).__doc__ or ""
    source = re.search(r"Source: (.*?\d{4})", file, re.DOTALL)
    title = file.splitlines()[0].split(":")[0]
    ways = [way for way in (False, True) if way or not causal_only(name)]
    laws = {
        way: "".join(VERDICT_LETTERS[v.split()[0]] for v in law_verdicts(fingerprint_model(name, causal=way)))
        for way in ways
    }
    return (
        f"`{name}`",
        f"{type(encoding).__name__}: {title}",
        " ".join(source[1].split()) if source else "",
        describe_claims(encoding),
        laws.get(False, "-"),
        laws[True],
        decoding_error(name),
        *rounding_columns(name),
    )


def causal_only(name: str) -> bool:
    return (
        encodings.get(name).for_model(ModelSizes(width=WIDTH, heads=HEADS, causal=False, length=64)).claims.causal_only
    )


@torch.no_grad()
def decoding_error(name: str) -> str:
    model = fingerprint_model(name, causal=True).double()
    x, count = seeded_normal(2, TOKENS, WIDTH, seed=1), positions.arange(TOKENS)
    axes = model.encoding.claims.ndim
    whole = model(x, raster_positions(count, axes=axes, side=8))
    caches = model.new_caches(2, TOKENS)
    steps = [
        model(x[:, t : t + 1], raster_positions(count[t : t + 1], axes=axes, side=8), caches=caches)
        for t in range(TOKENS)
    ]
    return power_of_ten(float((torch.cat(steps, dim=1) - whole).abs().max()))


@torch.no_grad()
def rounding_columns(name: str) -> tuple[str, str]:
    if name == "none":
        return "-", "-"
    torch.manual_seed(0)
    encoding = encodings.get(name).for_model(ModelSizes(width=WIDTH, heads=HEADS, causal=True, length=64))
    for parameter in encoding.parameters():
        if not parameter.any():  # parameters initialized to zero would hide errors
            torch.nn.init.normal_(parameter)
    exact = encoding_output(encoding, torch.float64, torch.float64)
    single = encoding_output(encoding, torch.float32, torch.float32)
    # Inputs are rounded first, so that only the encoding's own rounding is measured.
    half, halved = (
        encoding_output(encoding, torch.bfloat16, torch.bfloat16),
        encoding_output(encoding, torch.float64, torch.bfloat16),
    )
    error = (single - encoding_output(encoding, torch.float64, torch.float32)).abs().max() / exact.abs().max()
    return power_of_ten(float(error)), f"{float((half == halved.bfloat16()).double().mean()):.2%}"


def encoding_output(encoding: PositionalEncoding, dtype: torch.dtype, rounded: torch.dtype) -> Tensor:
    """The encoding's output in a dtype for inputs rounded to another, at causally visible entries."""
    claims, count = encoding.claims, positions.offset(20, 40)
    p = raster_positions(count, axes=claims.ndim, side=8)
    x = seeded_normal(2, 40, WIDTH, seed=1).to(rounded).to(dtype)
    q, k = (seeded_normal(2, HEADS, 40, WIDTH // HEADS, seed=seed).to(rounded).to(dtype) for seed in (2, 3))
    if claims.site == "embed":
        return encoding.embed(x, p)
    if claims.site == "rotate":
        return torch.cat([y.flatten() for y in encoding.rotate(q, k, p)])
    visible = (count <= count.unsqueeze(-1)).view(1, 1, 40, 40)
    content = AttentionContent(
        q=q, k=k, scale=encoding.default_scale(q.shape[-1]), visible=visible, token_state=encoding.token_state(x)
    )
    bias = encoding.bias(p, p, content=content if claims.content_dependent else None, dtype=dtype)
    return bias[..., visible[0, 0]] if claims.causal_only else bias


def page(rows: dict[str, str]) -> str:
    """The page with these rows, in the order of the names."""
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
    table = [markdown_row(header), markdown_row(tuple("---" for _ in header))]
    return "\n".join([HEAD, *table, *(rows[name] for name in encodings.names() if name in rows)]) + "\n"


def markdown_row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def written_rows(table: Path) -> dict[str, str]:
    """The rows of a page, by encoding; none if there is no page."""
    lines = table.read_text(encoding="utf-8").splitlines() if table.is_file() else []
    return {line.split("|")[1].strip(" `"): line for line in lines if line.startswith("| `")}


def outdated_encodings(table: Path) -> list[str]:
    """The encodings whose row is missing or has outdated claims."""
    found = written_rows(table)
    built = {
        n: encodings.get(n).for_model(ModelSizes(width=32, heads=4, causal=True, length=64)) for n in encodings.names()
    }
    return sorted(
        {n for n in built if n not in found or describe_claims(built[n]) not in found[n]}
        | (found.keys() - built.keys())
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if the page is not current")
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=encodings.names(), help="measure this encoding only"
    )
    parser.add_argument("--page", type=Path, default=PAGE, help="the page; docs/reference/encodings.md by default")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.check:
        outdated = outdated_encodings(options.page)
        if outdated:
            known = [name for name in outdated if name in encodings.names()]  # the others are left out by any run
            command = " --only ".join(["python tools/encoding_table.py", *known])
            sys.stderr.write(f"{options.page.name} is not current for {', '.join(outdated)}; run {command}\n")
        return int(bool(outdated))
    rows, chosen = written_rows(options.page), options.only or encodings.names()
    for count, name in enumerate(chosen, 1):
        start = time.perf_counter()
        rows[name] = markdown_row(row(name))
        write_file(page(rows), options.page)
        seconds = time.perf_counter() - start
        sys.stderr.write(f"{count} of {len(chosen)}: {name}, {seconds:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
