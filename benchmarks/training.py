"""How fast the lab trains, beside the same model written with torch's own layers and in the manner of nanoGPT.

    python benchmarks/training.py                                        a minute or two
    python benchmarks/training.py --markdown docs/training_benchmarks.md and write the page

One thread, one process, the same batches, the same fused AdamW, clipping and schedule for all: one step is
`orderproof.lab.training.step` with another model in it. What is printed is the median over rounds of the ratio within a
round, of processor time. Above 1 the lab is faster.
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.lab import training
from orderproof.lab.configuration import RunConfig
from orderproof.lab.network import build

SIZES: dict[str, dict[str, Any]] = {
    "who_did_what": {"question": "who_did_what", "width": 32, "heads": 4, "layers": 2, "batch": 64},
    "copy": {"question": "copy", "width": 64, "heads": 4, "layers": 2, "batch": 64, "train_lengths": (10, 10)},
    "python_source": {
        "question": "python_source", "width": 64, "heads": 4, "layers": 2, "batch": 32, "train_lengths": (64, 64),
    },
    "python_source, wider": {
        "question": "python_source", "width": 256, "heads": 8, "layers": 4, "batch": 8, "train_lengths": (128, 128),
    },
}  # fmt: skip
OURS = ("none", "learned", "sinusoidal", "rotary", "alibi", "t5")
HEAD = """# Benchmarks of training

Written by `python benchmarks/training.py --markdown docs/training_benchmarks.md`; not edited by hand.
"""


class Plain(nn.Module):
    """torch's own `nn.TransformerEncoder`, pre-norm, with a causal mask and learned positions."""

    def __init__(self, run: RunConfig, length: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            run.width, run.heads, 4 * run.width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.words = nn.Embedding(run.question.vocabulary, run.width)
        self.places = nn.Embedding(length, run.width)
        self.stack = nn.TransformerEncoder(layer, run.layers, nn.LayerNorm(run.width), enable_nested_tensor=False)
        self.to_scores = nn.Linear(run.width, run.question.vocabulary)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[1]
        x = self.words(tokens) + self.places.weight[:n]
        return self.to_scores(self.stack(x, mask=self.mask[:n, :n], is_causal=True))


class Block(nn.Module):
    """One layer as nanoGPT has it: queries, keys and values in one product, SDPA, and a GELU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_all, self.to_output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = (
            y.view(b, n, self.heads, d // self.heads).transpose(1, 2) for y in self.to_all(self.before(x)).split(d, 2)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.to_output(mixed.transpose(1, 2).reshape(b, n, d))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class NanoStyle(nn.Module):
    """A decoder in the manner of nanoGPT, with learned positions."""

    def __init__(self, run: RunConfig, length: int) -> None:
        super().__init__()
        self.words = nn.Embedding(run.question.vocabulary, run.width)
        self.places = nn.Embedding(length, run.width)
        self.stack = nn.Sequential(*(Block(run.width, run.heads) for _ in range(run.layers)), nn.LayerNorm(run.width))
        self.to_scores = nn.Linear(run.width, run.question.vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.to_scores(self.stack(self.words(tokens) + self.places.weight[: tokens.shape[1]]))


def measure(size: dict[str, Any], *, rounds: int, steps: int) -> tuple[int, dict[str, float], dict[str, float]]:
    """Tokens a step, the seconds a step of each candidate, and how many times faster than each peer ours are."""
    candidates: dict[str, tuple[RunConfig, Any, Any]] = {}
    for name in (*OURS, "nn.TransformerEncoder", "nanoGPT style"):
        run = RunConfig(**size, encoding=name if name in OURS else "learned", steps=10_000)
        length = run.question.tokens(run.trained[1])
        model: Any = build(run) if name in OURS else (Plain if name.startswith("nn.") else NanoStyle)(run, length)
        candidates[name] = run, model, training.optimiser_of(run, model)
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for lap in range(rounds + 1):
        for name, (run, model, optimiser) in candidates.items():
            start = time.process_time()
            for number in range(lap * steps + 1, (lap + 1) * steps + 1):
                training.step(run, model, optimiser, number)
            if lap:  # the first warms up
                taken[name].append((time.process_time() - start) / steps)
    seconds = {name: statistics.median(each) for name, each in taken.items()}
    faster = {
        f"{ours} / {peer}": statistics.median(p / o for p, o in zip(taken[peer], taken[ours], strict=True))
        for ours in OURS
        for peer in ("nn.TransformerEncoder", "nanoGPT style")
    }
    run = RunConfig(**size)
    return run.batch * run.question.tokens(run.trained[1]), seconds, faster


def page(rounds: int, steps: int) -> str:
    """Every table."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    machine = f"{platform.machine()}, one thread, torch {torch.__version__}, Python {platform.python_version()}, {now}"
    parts = [HEAD, f"{machine}.\n\n" + " ".join((__doc__ or "").split("\n\n")[2].split()) + "\n"]
    for name, size in SIZES.items():
        tokens, seconds, faster = measure(size, rounds=rounds, steps=steps)
        shape = f"width {size['width']}, {size['heads']} heads, {size['layers']} layers, {tokens} tokens a step"
        lines = [
            f"## {name}\n",
            f"{shape}.\n",
            "| encoding | ms a step | tokens/s | / nn.TransformerEncoder | / nanoGPT style |",
        ]
        lines.append("|---|---|---|---|---|")
        for each, second in seconds.items():
            against = [faster.get(f"{each} / {peer}") for peer in ("nn.TransformerEncoder", "nanoGPT style")]
            told = " | ".join("" if x is None else f"{x:.2f}" for x in against)
            lines.append(f"| {each} | {second * 1e3:.2f} | {tokens / second:,.0f} | {told} |")
        parts.append("\n".join(lines) + "\n")
        print(parts[-1], flush=True)
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    text = page(given.rounds, given.steps)
    if given.markdown is not None:
        given.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
