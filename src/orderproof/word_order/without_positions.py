"""The same measurement without positions: on the recorded graph with uniform constants at the entries of its map.

A graph has one length and batch size, so the sentences of the most common length are used. Every token gets the
position in the middle. The first position is unsuitable: models learn special values there, and with these at every
token, some models map all sentences to nearly the same vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from orderproof.auditing.explain.uniform_entries import with_uniform_positions
from orderproof.auditing.record.context import AuditContext
from orderproof.errors import first_line
from orderproof.models import Subject
from orderproof.models.hf.tokenizer import SentenceTokenizer
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import execute
from orderproof.records.sensitivity import Pooling, WithoutPositions
from orderproof.word_order.batches import SentenceBatch
from orderproof.word_order.distances import SentenceVectors, pool

MAX_SENTENCES = 24  # enough to see that the outputs do not move


def without_positions(
    subject: Subject,
    tokenizer: SentenceTokenizer,
    batches: Sequence[SentenceBatch],
    *,
    pooling: Pooling,
    order: Iterable[str],
    seed: int,
) -> WithoutPositions:
    """The effects without positions. An error of the model becomes the `reason` of the result."""
    tokens, _ = Counter(batch.rows.shape[1] for batch in batches).most_common(1)[0]
    chosen = [batch for batch in batches if batch.rows.shape[1] == tokens][:MAX_SENTENCES]
    if len(chosen) < 2:
        return WithoutPositions(reason="no two sentences have the same number of tokens")
    try:
        graph = _position_free_graph(subject, tokens, seed)
        if isinstance(graph, str):
            return WithoutPositions(reason=graph)
        vectors = SentenceVectors()
        for batch in chosen:
            vectors.add(batch.perturbations, pool(_run_in_batches(graph, tokenizer, batch.rows), pooling))
    except Exception as error:  # noqa: BLE001 - a third-party model may raise anything
        return WithoutPositions(reason=f"the graph could not be run: {first_line(error)}")
    return WithoutPositions(
        effects=vectors.summary(order, seed=seed), sentences=len(chosen), tokens=tokens, reference_position=tokens // 2
    )


def _position_free_graph(subject: Subject, tokens: int, seed: int) -> CapturedGraph | str:
    context = AuditContext(subject, tokens, seed)
    if context.export_failure is not None:
        return context.export_failure
    if context.graph_mismatch is not None:
        return context.graph_mismatch
    output = next(iter(context.output_dims), "")
    if [(d.dim, d.prefix_length) for d in context.output_dims.get(output, ())] != [(1, 0)]:
        return "its first output does not have one vector per token"
    graph = with_uniform_positions(context, output, place=tokens // 2)
    return graph or "an entry of its map is not a constant that can be made uniform"


def _run_in_batches(graph: CapturedGraph, tokenizer: SentenceTokenizer, token_ids: Tensor) -> Tensor:
    """The first output of each row, computed in batches of the graph's batch size."""
    batch_size = int(graph.inputs[0].meta["val"].shape[0])
    padded = torch.cat([token_ids, token_ids[:1].expand(-len(token_ids) % batch_size, -1)])
    outputs = [
        next(iter(execute(graph, (tokenizer.to_inputs(part),)).values())) for part in torch.split(padded, batch_size)
    ]
    return torch.cat(outputs)[: len(token_ids)]
