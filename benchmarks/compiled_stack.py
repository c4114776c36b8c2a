"""Positions in a stack of four layers, compiled and eager: the time that they add to it.

Each library computes its angles where its models do: once a forward pass, or, this one, in each layer. Two stacks are
measured. In one, projections and attention are operators that only copy their results, and that the compiler cannot
look into: the time of the positions is then not lost in that of the products. The other is a whole stack.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch
from timing import Candidate, seconds_by_round
from torch import Tensor, nn
from torch.nn import functional

from orderproof import encodings, positions

LAYERS = 4
SHAPES = {"A": (8, 12, 512, 64), "B": (1, 32, 2048, 128), "decode": (1, 32, 1, 128)}
WHOLE = (1, 8, 512, 64)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Rotation = Callable[[Tensor, Tensor, Tensor, Any], tuple[Tensor, Tensor]]


class NoPositions(nn.Module):
    """A stack without positions: the time to subtract."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()

    def angles(self, x: Tensor, p: Tensor) -> Any:
        """What is computed once a forward pass."""

    def rotate(self, q: Tensor, k: Tensor, p: Tensor, angles: Any) -> tuple[Tensor, Tensor]:
        """What is computed in each layer."""
        return q, k


class Ours(NoPositions):
    """`Rotary.rotate` in each layer."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__(heads, width)
        self.rotary = encodings.Rotary(width)

    def rotate(self, q: Tensor, k: Tensor, p: Tensor, angles: Any) -> tuple[Tensor, Tensor]:
        return self.rotary.rotate(q, k, p)


class Transformers(NoPositions):
    """LlamaRotaryEmbedding once, apply_rotary_pos_emb in each layer."""

    def __init__(self, heads: int, width: int) -> None:
        from transformers import LlamaConfig
        from transformers.models.llama import modeling_llama

        super().__init__(heads, width)
        self.table = modeling_llama.LlamaRotaryEmbedding(
            LlamaConfig(hidden_size=heads * width, num_attention_heads=heads)
        )
        self.apply_angles = modeling_llama.apply_rotary_pos_emb

    def angles(self, x: Tensor, p: Tensor) -> Any:
        return self.table(x, p.unsqueeze(0))

    def rotate(self, q: Tensor, k: Tensor, p: Tensor, angles: Any) -> tuple[Tensor, Tensor]:
        return self.apply_angles(q, k, *angles)  # type: ignore[no-any-return]


class XTransformers(NoPositions):
    """RotaryEmbedding of x-transformers once, apply_rotary_pos_emb in each layer."""

    def __init__(self, heads: int, width: int) -> None:
        from x_transformers import x_transformers

        super().__init__(heads, width)
        self.table = x_transformers.RotaryEmbedding(width)
        self.apply_angles = x_transformers.apply_rotary_pos_emb

    def angles(self, x: Tensor, p: Tensor) -> Any:
        return self.table(p)[0]

    def rotate(self, q: Tensor, k: Tensor, p: Tensor, angles: Any) -> tuple[Tensor, Tensor]:
        return self.apply_angles(q, angles), self.apply_angles(k, angles)


class TableInMemory(NoPositions):
    """The limit: half-width float32 cosines and sines of all positions, computed before; only read and applied."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__(heads, width)
        self.cos, self.sin = encodings.cos_sin_table(encodings.Rotary(width).spectrum, 4096)

    def angles(self, x: Tensor, p: Tensor) -> Any:
        return self.cos[p], self.sin[p]

    def rotate(self, q: Tensor, k: Tensor, p: Tensor, angles: Any) -> tuple[Tensor, Tensor]:
        cos, sin = angles

        def turn(x: Tensor) -> Tensor:
            a, b = x.chunk(2, dim=-1)
            return torch.cat([(a * cos - b * sin).to(x.dtype), (b * cos + a * sin).to(x.dtype)], dim=-1)

        return turn(q), turn(k)


class Stack(nn.Module):
    """Layers of projection, rotation and attention; without weights if ``opaque``."""

    def __init__(self, scheme: NoPositions, shape: tuple[int, ...], *, opaque: bool) -> None:
        super().__init__()
        _, self.heads, _, self.width = shape
        self.scheme, self.opaque = scheme, opaque
        torch.manual_seed(0)
        size = self.heads * self.width
        layers = 0 if opaque else LAYERS
        self.qkv = nn.ModuleList(nn.Linear(size, 3 * size, bias=False) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(size, size, bias=False) for _ in range(layers))

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        angles = self.scheme.angles(x, p)
        for n in range(LAYERS):
            qkv = torch.ops.orderproof_benchmark.project(x) if self.opaque else self.qkv[n](x)
            q, k, v = qkv.unflatten(-1, (3, self.heads, self.width)).permute(2, 0, 3, 1, 4).unbind(0)
            q, k = self.scheme.rotate(q, k, p, angles)
            if self.opaque:
                x = torch.ops.orderproof_benchmark.attend(x, q, k, v)
            else:
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.out[n](mixed.transpose(1, 2).flatten(2))
        return x


def define_opaque_operators() -> None:
    """Operators that a compiler cannot look into: three copies of their input, and a copy of it."""
    if hasattr(torch.ops.orderproof_benchmark, "project"):
        return

    @torch.library.custom_op("orderproof_benchmark::project", mutates_args=())
    def project(x: Tensor) -> Tensor:
        return torch.cat([x, x, x], dim=-1)

    @torch.library.custom_op("orderproof_benchmark::attend", mutates_args=())
    def attend(x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return x.clone()

    project.register_fake(lambda x: x.new_empty(*x.shape[:2], 3 * x.shape[2]))
    attend.register_fake(lambda x, q, k, v: torch.empty_like(x))


def calls_of(
    schemes: dict[str, type[NoPositions]], shape: tuple[int, ...], dtype: torch.dtype, *, compiled: bool, opaque: bool,
    train: bool = False,
) -> dict[str, Candidate]:  # fmt: skip
    """A forward pass of each stack, or a forward and a backward pass."""
    define_opaque_operators()
    torch.compiler.reset()
    batch, heads, tokens, width = shape
    x, p = torch.randn(batch, tokens, heads * width).to(dtype), positions.arange(tokens)
    found: dict[str, Candidate] = {}
    for name, scheme in schemes.items():
        stack: Any = Stack(scheme(heads, width), shape, opaque=opaque).to(dtype)
        weights = list(stack.parameters())
        run = torch.compile(stack) if compiled else stack

        def once(run: Any = run, weights: list[Tensor] = weights) -> object:
            with torch.set_grad_enabled(train):
                y = run(x, p)
                return torch.autograd.grad(y.sum(), weights) if train else y

        found[name] = once
    return found


def benchmark_positions(rounds: int) -> Iterator[tuple[str, list[list[str]], list[str]]]:
    """The time that positions add to a stack of opaque layers."""
    schemes = {"none": NoPositions, "hf": Transformers, "x": XTransformers, "table": TableInMemory, "ours": Ours}
    lines = [["shape", "dtype", "run", "transformers [ms]", "x-transformers", "table in memory (limit)", "ours",
              "ours of the fastest peer"]]  # fmt: skip
    missed = []
    for compiled in (True, False):
        for shape_name, shape in SHAPES.items():
            if shape_name == "B" and not compiled:  # eager rotations of this shape have a table of their own
                continue
            for dtype_name, dtype in DTYPES.items():
                runs = calls_of(schemes, shape, dtype, compiled=compiled, opaque=True)
                taken = seconds_by_round(runs, rounds=rounds, calls=200 if shape[2] == 1 else 1)
                added = {name: [a - b for a, b in zip(taken[name], taken["none"], strict=True)] for name in taken}
                of_hf = {name: _median_ratio(added[name], added["hf"]) for name in ("x", "table", "ours")}
                last = of_hf["ours"] / min(1.0, of_hf["x"])
                run = "compiled" if compiled else "eager"
                base = f"{statistics.median(added['hf']) * 1e3:.3g}"
                words = [f"{of_hf[name]:.2f}" for name in ("x", "table", "ours")]
                lines.append([f"{shape_name} {shape}", dtype_name, run, base, *words, f"{last:.2f}"])
                if last > 1.0:
                    missed.append(f"{shape_name} {dtype_name} {run}: {last:.2f} of the fastest peer")
    yield (
        "Positions of a stack of 4 layers, in multiples of transformers (limit: 1.0 of the fastest peer)",
        lines,
        missed,
    )


def benchmark_whole(rounds: int) -> Iterator[tuple[str, list[list[str]], list[str]]]:
    """A whole compiled stack, with projections and attention."""
    schemes = {"none": NoPositions, "hf": Transformers, "ours": Ours}
    lines = [["dtype", "passes", "without positions [ms]", "with transformers", "with ours", "ours of transformers"]]
    missed = []
    for dtype_name, dtype in DTYPES.items():
        for train in (False, True):
            runs = calls_of(schemes, WHOLE, dtype, compiled=True, opaque=False, train=train)
            taken = seconds_by_round(runs, rounds=max(3, rounds // 3) if train else rounds)
            of_none = [f"{_median_ratio(taken[name], taken['none']):.3f}" for name in ("hf", "ours")]
            last = _median_ratio(taken["ours"], taken["hf"])
            passes = "forward and backward" if train else "forward"
            lines.append([dtype_name, passes, f"{statistics.median(taken['none']) * 1e3:.0f}", *of_none, f"{last:.3f}"])
            if last > 1.0:
                missed.append(f"{dtype_name} {passes}: {last:.3f} of transformers")
    yield f"A whole compiled stack of 4 layers {WHOLE} (limit: 1.0 of transformers)", lines, missed


def benchmark_errors(rounds: int) -> Iterator[tuple[str, list[list[str]], list[str]]]:
    """The largest error of a compiled rotation at positions up to 131,071, next to float64."""
    del rounds
    lines = [["dtype", "transformers", "ours", "rounding of the exact result"]]
    missed = []
    shape = (1, 8, 512, 128)
    q, k = (torch.randn(shape, dtype=torch.float64) for _ in range(2))
    p = positions.offset(131_072 - shape[2], shape[2])
    for dtype_name, dtype in DTYPES.items():
        low = q.to(dtype), k.to(dtype)
        exact = encodings.Rotary(128).rotate(low[0].double(), low[1].double(), p)[0]
        floor = float((exact.to(dtype).double() - exact).abs().max())
        errors = []
        for scheme in (Transformers(8, 128), Ours(8, 128)):
            torch.compiler.reset()
            with torch.no_grad():
                found = torch.compile(_angles_and_rotation)(scheme, *low, p)
            errors.append(float((found.double() - exact).abs().max()))
        lines.append([dtype_name, *(f"{error:.1e}" for error in (*errors, floor))])
        if errors[1] > 4 * floor:
            missed.append(f"{dtype_name}: {errors[1]:.1e}")
    title = "The largest error of a compiled rotation at positions up to 131,071 (limit: 4 times that of rounding)"
    yield title, lines, missed


def _angles_and_rotation(scheme: NoPositions, q: Tensor, k: Tensor, p: Tensor) -> Tensor:
    return scheme.rotate(q, k, p, scheme.angles(q, p))[0]


def _median_ratio(above: list[float], below: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(above, below, strict=True))
