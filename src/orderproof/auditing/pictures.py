"""Two sentences with the same words: how far apart the model puts them, with its positions and without.

Without positions means the captured graph with the constants of its entry map made uniform, run in float32
and in float64: what is left in float32 and falls with the precision is rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.auditing.attempt import ancestors, attempt
from orderproof.auditing.examine import Examination
from orderproof.laws import get
from orderproof.prover.capture import Captured
from orderproof.prover.rewrite import can_be_uniform, make_uniform
from orderproof.prover.run import run, steps
from orderproof.record import HeatMap, Swap, SwapRow
from orderproof.subjects import Subject

FIRST, SECOND = "the cat chased the dog", "the dog chased the cat"


def swap_and_maps(
    subject: Subject, *, sentences: tuple[str, str] = (FIRST, SECOND), seed: int = 0
) -> tuple[Swap, tuple[HeatMap, ...]] | None:
    """The demonstration and its attention maps; None for a subject that takes no text, or whose map is not complete."""
    if subject.text is None or subject.cut is not None or len(subject.token_axes) != 1:
        return None
    samples = [subject.text(s) for s in sentences]
    length = len(samples[0].tokens)
    if length < 2 or len(samples[1].tokens) != length:
        return None
    exam = Examination(subject, length, seed)
    if exam.failure is not None or not exam.output_dims:
        return None
    output = next(iter(exam.output_dims))
    both = torch.cat([s.inputs[0] for s in samples])
    uniform = without_order(exam, output, place=length // 2)  # the first place is often like no other
    if both.shape != exam.captured.inputs[0].meta["val"].shape or uniform is None:
        return None
    rows = []
    graphs = {"with positions": exam.captured, "without positions": uniform}
    for condition, graph in graphs.items():
        for double in (False, True):
            first, second = run(graph, (both,), float64=double)[output].mean(dim=1)
            rows.append(_row(condition, "float64" if double else "float32", first, second))
    maps = tuple(
        HeatMap(
            title=f"{condition}: {sentences[k]!r} (first layer, head 0)",
            rows=samples[k].tokens,
            columns=samples[k].tokens,
            values=values,
        )
        for condition, graph in graphs.items()
        for k, values in enumerate(_attention(graph, both))
    )
    swap = Swap(
        first=sentences[0], second=sentences[1], tokens_first=samples[0].tokens, tokens_second=samples[1].tokens,
        rows=tuple(rows),
    )  # fmt: skip
    return swap, maps


def _row(condition: str, dtype: str, first: Tensor, second: Tensor) -> SwapRow:
    cosine = float(torch.nn.functional.cosine_similarity(first.double(), second.double(), dim=0))
    return SwapRow(
        condition=condition, dtype=dtype, cosine=cosine, largest_difference=float((first - second).abs().max())
    )


def without_order(exam: Examination, output: str, *, place: int) -> Captured | None:
    """The graph with the constants of its entry map made as they are at one place; None where they are not all."""
    walked = attempt(exam, get("order_blind"), exam.captured, repairing=True)
    needed = ancestors(exam.captured.outputs[output])
    breaks = [b for b in walked.walk.breaks if b.node in needed]
    if not all(can_be_uniform(b) for b in breaks):
        return None
    return make_uniform(exam.captured, breaks, place=place)[0]


def _attention(captured: Captured, inputs: Tensor) -> Iterator[tuple[tuple[float, ...], ...]]:
    """The first layer's attention, head 0, for each row of the batch."""
    weights = _first_weights(captured, inputs)
    if weights is None:
        return
    for row in weights:
        head = row[0] if row.dim() == 3 else row
        yield tuple(tuple(round(float(x), 5) for x in line) for line in head)


def _first_weights(captured: Captured, inputs: Tensor) -> Tensor | None:
    kept: dict[Node, Tensor] = {}
    with torch.no_grad():
        for node, value in steps(captured, (inputs,), float64=True):
            if isinstance(value, Tensor):
                kept[node] = value
            target = str(node.target)
            if target.startswith(("aten.softmax", "aten._softmax")):
                return value if value.dim() in (3, 4) and len(value) == len(inputs) else None
            if target.startswith("aten.scaled_dot_product_attention"):
                return _weights_of(node, kept)
    return None


def _weights_of(node: Node, kept: dict[Node, Tensor]) -> Tensor:
    query, key = kept[node.args[0]], kept[node.args[1]]  # type: ignore[index]
    if key.shape[1] != query.shape[1]:
        key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scale = node.kwargs.get("scale") or 1 / math.sqrt(query.shape[-1])
    scores = query @ key.transpose(-1, -2) * float(scale)  # type: ignore[arg-type]
    mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    if isinstance(mask, Node):
        m = kept[mask]
        scores = scores.masked_fill(~m, float("-inf")) if m.dtype is torch.bool else scores + m
    if (node.args[5] if len(node.args) > 5 else node.kwargs.get("is_causal", False)) is True:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return torch.softmax(scores, -1)
