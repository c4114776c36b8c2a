"""Processor seconds to record a Flax block and prove that it is causal, next to its twin in torch.

    ORDERPROOF_JAX_PYTHON=... python benchmarks/jax_block.py                                        two minutes
    ... python benchmarks/jax_block.py --markdown docs/evidence/benchmarks/jax_block.md     and write the page

User and system time of this program, of the processes that it forks and of the process of JAX, the smallest of three
fresh runs with one thread each. It counts from the imports on: of torch, of orderproof, and in the process of JAX of
jax and flax. The limit is three times what the twin takes.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

MODEL = Path(__file__).with_name("jax_block_model.py")
PAGE = "python benchmarks/jax_block.py --markdown docs/evidence/benchmarks/jax_block.md"
WIDTH, HEADS, TOKENS = 8, 2, 7
LIMIT, REPEATS = 3.0, 3
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Block(nn.Module):
    """The block in torch, with the names of the parts in Flax."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """[row, token, width]."""
        rows, tokens, _ = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(rows, tokens, HEADS, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        mask = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        scores = (q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5).masked_fill(~mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, tokens, WIDTH)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(x), approximate="tanh"))


def own_seconds() -> float:
    """Processor time of this process and of those that it forked and that have ended [s]."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def seconds_of(pid: int) -> float:
    """Processor time of a process that runs [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def seconds_of_one(side: str) -> tuple[float, float]:
    """Processor time of this program and of the process of JAX, to record the block and to prove it causal."""
    if side == "torch":
        from orderproof.models.plain_module import from_module

        began = own_seconds()
        prove(from_module(Block().eval(), torch.randn(2, TOKENS, WIDTH)))
        return own_seconds() - began, 0.0
    from orderproof.models.jax_function.load_function import jax_python, subject_of
    from orderproof.models.jax_function.process import JaxProcess

    process = JaxProcess(jax_python())
    process.load(f"{MODEL}:block")
    began, of_jax = own_seconds(), seconds_of(process.pid)
    prove(subject_of(process))
    return own_seconds() - began, seconds_of(process.pid) - of_jax


def prove(subject: Any) -> None:
    """Audit it for causality alone. Raises `RuntimeError` if that is not proved for every length."""
    import orderproof

    report = orderproof.audit(subject, laws=("causal",))
    for finding in report.findings:
        if finding.theorem is None or not finding.theorem.proved:
            raise RuntimeError(f"expected a proof of causal for every length; got {finding.verdict}: {finding.reason}")


def measure(side: str, repeats: int) -> tuple[float, float]:
    """The run with the least time, each in a fresh process."""
    command = [sys.executable, __file__, "--side", side]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    runs = []
    for _ in range(repeats):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        own, of_jax = map(float, done.stdout.split())
        runs.append((own, of_jax))
    return min(runs, key=sum)


def lines(of_torch: float, of_flax: tuple[float, float]) -> list[str]:
    """Both times side by side, and their ratio."""
    ratio = sum(of_flax) / of_torch
    own, of_jax = of_flax
    return [
        "| block | this program [s] | process of JAX [s] | both [s] |",
        "| --- | --- | --- | --- |",
        f"| torch | {of_torch:.2f} | 0 | {of_torch:.2f} |",
        f"| Flax NNX | {own:.2f} | {of_jax:.2f} | {sum(of_flax):.2f} |",
        "",
        f"Flax takes {ratio:.2f} times as long, {'within' if ratio <= LIMIT else 'ABOVE'} the limit of {LIMIT:.0f}.",
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--side", choices=("torch", "jax"), help="measure one of both in this process")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="runs of each")
    parser.add_argument("--markdown", metavar="PATH", help="write the page to this file")
    chosen = parser.parse_args(arguments)
    if chosen.side:
        print(*seconds_of_one(chosen.side))
        return 0
    table = lines(sum(measure("torch", chosen.repeats)), measure("jax", chosen.repeats))
    print("\n".join(table))
    if chosen.markdown:
        about = (
            f"{dt.datetime.now(dt.UTC).date()}, {platform.machine()}, one thread, Python {platform.python_version()}, "
            f"torch {version('torch')}."
        )
        how = (
            "Processor seconds to record one block with attention and prove that it is causal for every length: the "
            f"smallest of\n{chosen.repeats} runs, each in a fresh process, counted from the imports on.\n"
        )
        head = ["# Speed of a block of JAX\n", f"Written by `{PAGE}`; not edited by hand.\n", f"{about}\n", how]
        Path(chosen.markdown).write_text("\n".join([*head, *table, ""]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
