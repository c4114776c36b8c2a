"""Two sentences with the same words: how far apart their outputs are, with positions and without.

Without positions: the recorded graph with the constants of its entry map made uniform, run in float32 and in float64. A
difference in float32 that falls with the precision is rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.auditing.explain.uniform_entries import with_uniform_positions
from orderproof.auditing.record.context import AuditContext
from orderproof.models import Subject
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import execute, execute_nodes
from orderproof.records.audit import AttentionMap, SentenceDistance, SentencePair

FIRST_SENTENCE, SECOND_SENTENCE = "the cat chased the dog", "the dog chased the cat"


def has_sentences(subject: Subject) -> bool:
    """True if a subject takes a sentence: it has a tokenizer, and one input of tokens."""
    takes_text = subject.encode_sentence is not None and subject.patch_embedding_path is None
    return takes_text and len(subject.token_axes) == 1


def compare_sentence_pair(
    subject: Subject, *, sentences: tuple[str, str] = (FIRST_SENTENCE, SECOND_SENTENCE), seed: int = 0,
    audited: AuditContext | None = None,
) -> tuple[SentencePair, tuple[AttentionMap, ...]] | None:  # fmt: skip
    """The distances and attention maps of two sentences of equal length.

    None for a subject that takes no text, and for one whose entry map is not complete. The recording of an
    audit of the same subject is used if the sentences have its length.
    """
    if not has_sentences(subject):
        return None
    assert subject.encode_sentence is not None
    samples = [subject.encode_sentence(s) for s in sentences]
    length = len(samples[0].labels)
    if length < 2 or len(samples[1].labels) != length:
        return None
    context = audited if audited is not None and audited.length == length else AuditContext(subject, length, seed)
    if context.export_failure is not None or not context.output_dims:
        return None
    output = next(iter(context.output_dims))
    both = torch.cat([s.inputs[0] for s in samples])
    uniform = with_uniform_positions(
        context, output, place=length // 2
    )  # the first token often differs from all others
    if both.shape != context.captured.inputs[0].meta["val"].shape or uniform is None:
        return None
    rows = []
    graphs = {"with positions": context.captured, "without positions": uniform}
    for condition, graph in graphs.items():
        for double in (False, True):
            first, second = execute(graph, (both,), float64=double)[output].mean(dim=1)
            rows.append(_row(condition, "float64" if double else "float32", first, second))
    maps = tuple(
        AttentionMap(
            title=f"{condition}: {sentences[k]!r} (first layer, head 0)",
            query_tokens=samples[k].labels,
            key_tokens=samples[k].labels,
            weights=values,
        )
        for condition, graph in graphs.items()
        for k, values in enumerate(_attention(graph, both))
    )
    pair = SentencePair(
        first=sentences[0], second=sentences[1], tokens_first=samples[0].labels, tokens_second=samples[1].labels,
        distances=tuple(rows),
    )  # fmt: skip
    return pair, maps


def _row(condition: str, dtype: str, first: Tensor, second: Tensor) -> SentenceDistance:
    cosine = float(torch.nn.functional.cosine_similarity(first.double(), second.double(), dim=0))
    return SentenceDistance(
        condition=condition, dtype=dtype, cosine=cosine, max_abs_difference=float((first - second).abs().max())
    )


def _attention(captured: CapturedGraph, inputs: Tensor) -> Iterator[tuple[tuple[float, ...], ...]]:
    """The attention weights of the first layer, head 0, for each row of the batch."""
    weights = _first_attention_weights(captured, inputs)
    if weights is None:
        return
    for row in weights:
        head = row[0] if row.dim() == 3 else row
        yield tuple(tuple(round(float(x), 5) for x in line) for line in head)


def _first_attention_weights(captured: CapturedGraph, inputs: Tensor) -> Tensor | None:
    values: dict[Node, Tensor] = {}
    with torch.no_grad():
        for node, value in execute_nodes(captured, (inputs,), float64=True):
            if isinstance(value, Tensor):
                values[node] = value
            target = str(node.target)
            if target.startswith(("aten.softmax", "aten._softmax")):
                return value if value.dim() in (3, 4) and len(value) == len(inputs) else None
            if target.startswith("aten.scaled_dot_product_attention"):
                return _sdpa_weights(node, values)
    return None


def _sdpa_weights(node: Node, values: dict[Node, Tensor]) -> Tensor:
    query, key = values[node.args[0]], values[node.args[1]]  # type: ignore[index]
    if key.shape[1] != query.shape[1]:
        key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scale = node.kwargs.get("scale") or 1 / math.sqrt(query.shape[-1])
    scores = query @ key.transpose(-1, -2) * float(scale)  # type: ignore[arg-type]
    mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    if isinstance(mask, Node):
        m = values[mask]
        scores = scores.masked_fill(~m, float("-inf")) if m.dtype is torch.bool else scores + m
    if (node.args[5] if len(node.args) > 5 else node.kwargs.get("is_causal", False)) is True:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return torch.softmax(scores, -1)
