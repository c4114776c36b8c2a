"""The speed of the encodings, compared with other libraries and with the limits of the machine.

    python benchmarks/encodings.py                                  every table, a few minutes
    python benchmarks/encodings.py --only rotate                    one of them; --help lists them
    python benchmarks/encodings.py --markdown docs/evidence/benchmarks/encodings.md    also write the page

Single-threaded. All candidates of a row run in turn in one process, in several rounds; the tables show the median of
the ratios of processor time within a round. Below each table, the page says where a limit is missed. The extra `bench`
installs the other libraries; the compiled stacks need a C++ compiler.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))

import compiled_stack
from processor import processor
from timing import Candidate, ratios

from orderproof import encodings, positions
from orderproof.encodings import attention

Table = tuple[str, list[list[str]], list[str]]
"""Title, lines of cells, and where a limit is missed."""
PEERS = ("transformers", "rotary_embedding_torch", "x_transformers", "matplotlib")
SHAPES = {"A": (8, 12, 512, 64), "B": (1, 32, 2048, 128), "C": (1, 32, 8192, 128)}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
HEAD = """# Benchmarks of the encodings

Written by `python benchmarks/encodings.py --markdown docs/evidence/benchmarks/encodings.md`; do not edit. (The speed of
the prover has [its own page](prover.md).)
"""


def hugging_face(q: Tensor, k: Tensor, length: int) -> Candidate:
    """apply_rotary_pos_emb of Llama, with precomputed tables."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    cos, sin = transformers_cos_sin(q.shape[-1], length, q.dtype)
    return lambda: apply_rotary_pos_emb(q, k, cos, sin)


def transformers_cos_sin(width: int, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The tables of transformers: both halves of the features, in the dtype of q."""
    rotary = encodings.Rotary(width)
    cos, sin = rotary.cos_sin(positions.arange(length), dtype=torch.float32)
    return tuple(torch.cat([x, x], -1).unsqueeze(0).to(dtype) for x in (cos, sin))  # type: ignore[return-value]


def rotary_embedding_torch(q: Tensor, k: Tensor, length: int) -> Candidate:
    """rotary-embedding-torch, with precomputed angles."""
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    angles = RotaryEmbedding(q.shape[-1])(torch.arange(length).float())
    return lambda: (apply_rotary_emb(angles, q), apply_rotary_emb(angles, k))


def x_transformers(q: Tensor, k: Tensor, length: int) -> Candidate:
    """x-transformers, with precomputed angles."""
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    angles, _ = RotaryEmbedding(q.shape[-1])(torch.arange(length))
    return lambda: (apply_rotary_pos_emb(q, angles), apply_rotary_pos_emb(k, angles))


def benchmark_rotate(rounds: int) -> Iterator[Table]:
    """Rotation of queries and keys, relative to copying them into existing buffers."""
    missed = []
    lines = [["shape", "dtype", "copy_ [ms]", "in place", "into buffers", "fresh", "transformers", "rotary-emb.-torch",
              "x-transformers", "fresh over transformers"]]  # fmt: skip
    for name, shape in SHAPES.items():
        for dtype_name, dtype in DTYPES.items():
            q, k = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
            into, rotated = (torch.empty_like(q), torch.empty_like(k)), (q.clone(), k.clone())
            rotary, p = encodings.Rotary(shape[-1]), positions.arange(shape[2])
            candidates: dict[str, Candidate] = {
                "copy": lambda into=into, q=q, k=k: (into[0].copy_(q), into[1].copy_(k)),
                "in place": lambda r=rotary, t=rotated, p=p: r.rotate(*t, p, out=t),
                "buffers": lambda r=rotary, q=q, k=k, p=p, into=into: r.rotate(q, k, p, out=into),
                "fresh": lambda r=rotary, q=q, k=k, p=p: r.rotate(q, k, p),
                "hf": hugging_face(q, k, shape[2]),
                "lucid": rotary_embedding_torch(q, k, shape[2]),
                "x": x_transformers(q, k, shape[2]),
            }
            base, found = ratios(candidates, base="copy", rounds=rounds)
            words = [f"{found[n]:.2f}" for n in ("in place", "buffers", "fresh", "hf", "lucid", "x")]
            text = f"{name} {shape}", dtype_name, f"{base * 1e3:.2f}"
            faster = found["hf"] / found["fresh"]
            lines.append([*text, *words, f"{faster:.1f}x faster"])
            if q.numel() * q.element_size() >= 1 << 24 and found["buffers"] > 1.10:
                missed.append(f"{name} {dtype_name} into buffers: {found['buffers']:.2f}")
            if faster < 4:
                missed.append(f"{name} {dtype_name} fresh: {faster:.1f}x")
    title = "Rotation of q and k, in multiples of `copy_` (limit: into buffers 1.10 from 16 MiB on; fresh 4x)"
    yield title, lines, missed


def decode(rounds: int) -> Iterator[Table]:
    """One new token: (1, 32, 1, 128) at position 32768."""
    missed = []
    lines = [["dtype", "2 x copy_ [us]", "ours, fresh [us]", "ours, in place [us]", "transformers apply only [us]",
              "rotary-emb.-torch apply only [us]"]]  # fmt: skip
    for dtype_name, dtype in DTYPES.items():
        q, k = (torch.randn(1, 32, 1, 128).to(dtype) for _ in range(2))
        into, rotary, p = (torch.empty_like(q), torch.empty_like(k)), encodings.Rotary(128), torch.tensor([32768])
        candidates: dict[str, Candidate] = {
            "copy": lambda into=into, q=q, k=k: (into[0].copy_(q), into[1].copy_(k)),
            "fresh": lambda r=rotary, q=q, k=k, p=p: r.rotate(q, k, p),
            "in place": lambda r=rotary, p=p, into=into: r.rotate(*into, p, out=into),
            "hf": hugging_face(q, k, 1),
            "lucid": rotary_embedding_torch(q, k, 1),
        }
        base, found = ratios(candidates, base="copy", rounds=4 * rounds, calls=300)
        lines.append([dtype_name, *(f"{found[n] * base * 1e6:.1f}" for n in candidates)])
        taken = {name: found[name] * base * 1e6 for name in ("fresh", "in place")}
        missed += [f"{dtype_name} {name}: {us:.1f} us" for name, us in taken.items() if us > 4]
    yield "One decode step, module call included (limit: 4 us)", lines, missed


def bias(rounds: int) -> Iterator[Table]:
    """Attention (1, 8, L, 64) with a bias, relative to attention without."""
    lines = [["L", "no bias [ms]", "dense matrix, ready", "ALiBi", "T5", "bias memory, dense [MiB]", "ours [MiB]",
              "bit-identical"]]  # fmt: skip
    missed, causal_missed = [], []
    causal_lines = [["L", "is_causal [ms]", "dense matrix, ready", "ALiBi", "T5", "largest difference"]]
    for length in (1024, 2048, 4096):
        q, k, v = (torch.randn(1, 8, length, 64) for _ in range(3))
        p = positions.arange(length)
        alibi = encodings.ALiBi(8)
        dense = alibi.bias(p, p)

        def ours(encoding: Any, *, causal: bool, q: Tensor = q, k: Tensor = k, v: Tensor = v, p: Tensor = p) -> Tensor:
            return attention(q, k, v, encoding=encoding, q_positions=p, causal=causal)

        def plain(q: Tensor = q, k: Tensor = k, v: Tensor = v, **options: Any) -> Tensor:
            return functional.scaled_dot_product_attention(q, k, v, **options)

        both, back = encodings.T5Bias(8, bidirectional=True), encodings.T5Bias(8, bidirectional=False)
        base, found = ratios(
            {
                "none": plain,
                "dense": lambda plain=plain, d=dense: plain(attn_mask=d),
                "alibi": lambda ours=ours, e=alibi: ours(e, causal=False),
                "t5": lambda ours=ours, e=both: ours(e, causal=False),
            },
            base="none",
            rounds=rounds,
        )
        same = torch.equal(ours(alibi, causal=False), plain(attn_mask=dense))
        small = 8 * (2 * length - 1) * 4 / 2**20
        lines.append([str(length), f"{base * 1e3:.0f}", *(f"{found[n]:.2f}" for n in ("dense", "alibi", "t5")),
                      f"{dense.numel() * 4 / 2**20:.0f}", f"{small:.2f}", "yes" if same else "no"])  # fmt: skip
        missed += _above(1.08, found, ("alibi", "t5"), f"L = {length}") if length >= 2048 else []
        hidden = dense.masked_fill(p > p.unsqueeze(-1), float("-inf"))
        base, found = ratios(
            {
                "none": lambda plain=plain: plain(is_causal=True),
                "dense": lambda plain=plain, d=hidden: plain(attn_mask=d),
                "alibi": lambda ours=ours, e=alibi: ours(e, causal=True),
                "t5": lambda ours=ours, e=back: ours(e, causal=True),
            },
            base="none",
            rounds=rounds,
        )
        apart = (ours(alibi, causal=True) - plain(attn_mask=hidden)).abs().max()
        words = (f"{found[n]:.2f}" for n in ("dense", "alibi", "t5"))
        causal_lines.append([str(length), f"{base * 1e3:.0f}", *words, f"{float(apart):.0e}"])
        causal_missed += _above(1.15, found, ("alibi", "t5"), f"L = {length}")
    yield "A bias of n - m, in multiples of attention without one (limit: 1.08 from 2048 on)", lines, missed
    yield "The same, causal, in multiples of `is_causal` (limit: 1.15)", causal_lines, causal_missed


def _above(limit: float, found: dict[str, float], names: tuple[str, ...], case: str) -> list[str]:
    return [f"{name} at {case}: {found[name]:.2f}" for name in names if found[name] > limit]


def train(rounds: int) -> Iterator[Table]:
    """Forward and backward of attention (1, 8, L, 64) with a learned bias."""
    missed = []
    lines = [["L", "no bias [ms]", "ours, T5", "dense matrix that learns"]]
    for length in (1024, 2048):
        q, k, v = (torch.randn(1, 8, length, 64, requires_grad=True) for _ in range(3))
        above, p = torch.randn(1, 8, length, 64), positions.arange(length)
        t5 = encodings.T5Bias(8, bidirectional=True)

        def backward(out: Tensor, *wanted: Tensor, above: Tensor = above) -> object:
            return torch.autograd.grad(out, wanted, above)

        base, found = ratios(
            {
                "none": lambda q=q, k=k, v=v, b=backward: b(functional.scaled_dot_product_attention(q, k, v), q, k, v),
                "ours": lambda q=q, k=k, v=v, p=p, t5=t5, b=backward: b(
                    attention(q, k, v, encoding=t5, q_positions=p, causal=False), q, k, v, t5.weight
                ),
                "dense": lambda q=q, k=k, v=v, p=p, t5=t5, b=backward: b(
                    functional.scaled_dot_product_attention(q, k, v, attn_mask=t5.bias(p, p)), q, k, v, t5.weight
                ),
            },
            base="none",
            rounds=rounds,
        )
        lines.append([str(length), f"{base * 1e3:.0f}", f"{found['ours']:.2f}", f"{found['dense']:.2f}"])
        missed += _above(1.4, found, ("ours",), f"L = {length}")
    yield "A learned bias, forward and backward, in multiples of no bias (limit: 1.4)", lines, missed


def table(rounds: int) -> Iterator[Table]:
    """The cosines and sines of 1,048,576 positions, 64 each."""
    length, width = 1 << 20, 128
    spectrum = encodings.Rotary(width).spectrum
    frequencies = torch.tensor(spectrum.frequencies, dtype=torch.float64)
    single = frequencies.float()
    p = torch.arange(length)

    def plain() -> tuple[Tensor, Tensor]:
        angles = torch.outer(p.float(), single)
        return angles.cos(), angles.sin()

    candidates: dict[str, Candidate] = {
        "fill": lambda: (torch.empty(length, 64).fill_(1.0), torch.empty(length, 64).fill_(1.0)),
        "ours": lambda: encodings.cos_sin_table(spectrum, length),
        "hf": hugging_face_table(width, length),
        "plain": plain,
    }
    base, found = ratios(candidates, base="fill", rounds=max(3, rounds // 3))
    lines = [["who", "seconds", "times fill_", "largest error"]]
    titles = {
        "fill": "fill_ (the limit: page faults)",
        "ours": "orderproof",
        "hf": "transformers, LlamaRotaryEmbedding",
        "plain": "float32 angles, cos and sin",
    }
    errors = {name: largest_error(candidates[name](), frequencies) for name in titles if name != "fill"}
    for name, title in titles.items():
        error = f"{errors[name]:.1e}" if name in errors else "-"
        lines.append([title, f"{found[name] * base:.2f}", f"{found[name]:.1f}", error])
    missed = [f"error {errors['ours']:.1e}"] if errors["ours"] > 3.05e-8 else []
    if (faster := found["hf"] / found["ours"]) < 5:
        missed.append(f"{faster:.1f}x faster than transformers")
    yield "A table of 1,048,576 positions x 128 (limit: 5x faster than transformers, 3e-8)", lines, missed


def hugging_face_table(width: int, length: int) -> Candidate:
    """LlamaRotaryEmbedding over all positions; it returns every number twice, as it is used."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    made = LlamaRotaryEmbedding(LlamaConfig(hidden_size=width, num_attention_heads=1))
    x, p = torch.empty(1, 1, dtype=torch.float32), torch.arange(length).unsqueeze(0)
    return lambda: made(x, p)


def largest_error(made: Any, frequencies: Tensor) -> float:
    """The largest error of the cosines in the whole table, relative to float64."""
    cos = made[0].view(-1, made[0].shape[-1])[:, : len(frequencies)]
    worst = 0.0
    for start in range(0, len(cos), 1 << 16):
        angles = torch.arange(start, min(start + (1 << 16), len(cos)), dtype=torch.float64).unsqueeze(-1) * frequencies
        worst = max(worst, float((angles.cos() - cos[start : start + (1 << 16)]).abs().max()))
    return worst


def plot(lines: list[list[str]], file: Path) -> None:
    """A bar chart of the time of each rotation relative to copy_, by shape and dtype."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "orderproof"
    from matplotlib import pyplot as plt

    head, *rest = lines
    names = head[3:9]
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    for n, line in enumerate(rest):
        numbers = [float(x) for x in line[3:9]]
        axes.bar([k + (n - len(rest) / 2) * 0.13 for k in range(len(names))], numbers, 0.12, label=" ".join(line[:2]))
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("multiples of copy_")
    axes.set_title("Rotation of q and k: less is better, copying into a buffer is 1")
    axes.legend(fontsize="small")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


TABLES = {
    "rotate": benchmark_rotate,
    "decode": decode,
    "positions": compiled_stack.benchmark_positions,
    "stack": compiled_stack.benchmark_whole,
    "errors": compiled_stack.benchmark_errors,
    "bias": bias,
    "train": train,
    "table": table,
}


def markdown_table(lines: list[list[str]]) -> str:
    head, *rest = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rest))


def verdict(missed: list[str]) -> str:
    """The sentence below a table."""
    return f"Limits missed: {'; '.join(missed)}." if missed else "No limit is missed."


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=TABLES, action="append", help="only this table; repeatable")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--markdown", type=Path, help="write the page here and the plot next to it")
    chosen = parser.parse_args(arguments)
    lacking = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if lacking:
        parser.error(f"the peers {', '.join(lacking)} are not installed; pip install -c constraints.txt -e '.[bench]'")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rounds = f"Medians of {chosen.rounds} rounds of processor time; new outputs are allocated by malloc's defaults."
    page = [HEAD, *processor(), rounds, ""]
    for name in chosen.only or TABLES:
        with torch.set_grad_enabled(name == "train"):
            for title, lines, missed in TABLES[name](chosen.rounds):
                page += [f"## {title}", "", markdown_table(lines), "", verdict(missed), ""]
                print(f"{title}\n\n{markdown_table(lines)}\n\n{verdict(missed)}\n", flush=True)
                if name == "rotate" and chosen.markdown:
                    plot(lines, chosen.markdown.with_name("turning.svg"))
                    page += ["![Multiples of copy_, by shape and library](turning.svg)", ""]
    if chosen.markdown:
        chosen.markdown.write_text("\n".join(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
