"""The training speed of the lab, compared with the same model in torch's own layers and in the style of nanoGPT.

    python benchmarks/training.py                                        a minute or two
    python benchmarks/training.py --markdown docs/evidence/benchmarks/training.md writes the page

All models train with one thread and one process, on the same batches and with the same fused AdamW, clipping and
learning rates: a step is `orderproof.lab.trainer.training_step` with another model. Ratios are medians over rounds of
the ratio of processor times within a round. Above 1, the lab is faster.
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

from orderproof.lab import trainer
from orderproof.lab.model import build_model
from orderproof.lab.run_config import RunConfig

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
ENCODINGS = ("none", "learned", "sinusoidal", "rotary", "alibi", "t5")
HEAD = """# Benchmarks of training

Written by `python benchmarks/training.py --markdown docs/evidence/benchmarks/training.md`; not edited by hand.
"""


class TorchEncoder(nn.Module):
    """torch's own `nn.TransformerEncoder`, pre-norm, with a causal mask and learned positions."""

    def __init__(self, run: RunConfig, length: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            run.width, run.heads, 4 * run.width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.token_embedding = nn.Embedding(run.question.vocabulary, run.width)
        self.position_embedding = nn.Embedding(length, run.width)
        self.stack = nn.TransformerEncoder(layer, run.layers, nn.LayerNorm(run.width), enable_nested_tensor=False)
        self.to_scores = nn.Linear(run.width, run.question.vocabulary)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens: Tensor) -> Tensor:
        n = tokens.shape[1]
        x = self.token_embedding(tokens) + self.position_embedding.weight[:n]
        return self.to_scores(self.stack(x, mask=self.mask[:n, :n], is_causal=True))


class NanoGPTBlock(nn.Module):
    """One layer in the style of nanoGPT: a fused QKV projection, SDPA, and a GELU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.to_output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = (
            y.view(b, n, self.heads, d // self.heads).transpose(1, 2)
            for y in self.qkv(self.attention_norm(x)).split(d, 2)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.to_output(attended.transpose(1, 2).reshape(b, n, d))
        return x + self.down(functional.gelu(self.up(self.feed_forward_norm(x))))


class NanoGPTModel(nn.Module):
    """A decoder in the style of nanoGPT, with learned positions."""

    def __init__(self, run: RunConfig, length: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(run.question.vocabulary, run.width)
        self.position_embedding = nn.Embedding(length, run.width)
        self.stack = nn.Sequential(
            *(NanoGPTBlock(run.width, run.heads) for _ in range(run.layers)), nn.LayerNorm(run.width)
        )
        self.to_scores = nn.Linear(run.width, run.question.vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.to_scores(
            self.stack(self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]])
        )


def measure(size: dict[str, Any], *, rounds: int, steps: int) -> tuple[int, dict[str, float], dict[str, float]]:
    """Tokens per step, the seconds per step of each candidate, and our speed relative to each peer."""
    candidates: dict[str, tuple[RunConfig, Any, Any]] = {}
    for name in (*ENCODINGS, "nn.TransformerEncoder", "nanoGPT style"):
        run = RunConfig(**size, encoding=name if name in ENCODINGS else "learned", steps=10_000)
        length = run.question.row_length(run.effective_train_lengths[1])
        model: Any = (
            build_model(run)
            if name in ENCODINGS
            else (TorchEncoder if name.startswith("nn.") else NanoGPTModel)(run, length)
        )
        candidates[name] = run, model, trainer.make_optimiser(run, model)
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for lap in range(rounds + 1):
        for name, (run, model, optimiser) in candidates.items():
            start = time.process_time()
            for number in range(lap * steps + 1, (lap + 1) * steps + 1):
                trainer.training_step(run, model, optimiser, number, trainer.training_batch(run, number))
            if lap:  # the first is warmup
                taken[name].append((time.process_time() - start) / steps)
    seconds = {name: statistics.median(each) for name, each in taken.items()}
    faster = {
        f"{ours} / {peer}": statistics.median(p / o for p, o in zip(taken[peer], taken[ours], strict=True))
        for ours in ENCODINGS
        for peer in ("nn.TransformerEncoder", "nanoGPT style")
    }
    run = RunConfig(**size)
    return run.batch * run.question.row_length(run.effective_train_lengths[1]), seconds, faster


def page(rounds: int, steps: int) -> str:
    """The page, with one table per size."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    machine = f"{platform.machine()}, one thread, torch {torch.__version__}, Python {platform.python_version()}, {now}"
    parts = [HEAD, f"{machine}.\n\n" + " ".join((__doc__ or "").split("\n\n")[2].split()) + "\n"]
    for name, size in SIZES.items():
        tokens, seconds, faster = measure(size, rounds=rounds, steps=steps)
        shape = f"width {size['width']}, {size['heads']} heads, {size['layers']} layers, {tokens} tokens per step"
        lines = [
            f"## {name}\n",
            f"{shape}.\n",
            "| encoding | ms per step | tokens/s | / nn.TransformerEncoder | / nanoGPT style |",
        ]
        lines.append("|---|---|---|---|---|")
        for each, second in seconds.items():
            against = [faster.get(f"{each} / {peer}") for peer in ("nn.TransformerEncoder", "nanoGPT style")]
            ratios = " | ".join("" if x is None else f"{x:.2f}" for x in against)
            lines.append(f"| {each} | {second * 1e3:.2f} | {tokens / second:,.0f} | {ratios} |")
        parts.append("\n".join(lines) + "\n")
        print(parts[-1], flush=True)
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    text = page(arguments.rounds, arguments.steps)
    if arguments.markdown is not None:
        arguments.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
