"""The same measurement without positions: the recorded graph with the constants of its entry map made uniform.

A graph is recorded at one length and with so many rows; the sentences are those of the commonest length. Every token
gets the place in the middle, not the first: models learn a first place unlike all others, and with that one at every
token some tell no two sentences apart, so that nothing would move for another reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from orderproof.auditing.distances import Cloud, pooled
from orderproof.auditing.examine import Examination
from orderproof.auditing.moved_rows import Prepared
from orderproof.auditing.pictures import without_order
from orderproof.prover.capture import Captured, first_line
from orderproof.prover.run import run
from orderproof.sensitivity_record import Pooling, WithoutPositions
from orderproof.subjects import Subject
from orderproof.subjects.words import Words

MOST = 24  # sentences: enough to see that nothing moves


def without_positions(
    subject: Subject, words: Words, prepared: Sequence[Prepared], *, pooling: Pooling, order: Iterable[str], seed: int
) -> WithoutPositions:
    """How far sentence vectors move where nothing tells one position from another. Never raises for the model."""
    tokens, _ = Counter(p.rows.shape[1] for p in prepared).most_common(1)[0]
    chosen = [p for p in prepared if p.rows.shape[1] == tokens][:MOST]
    if len(chosen) < 2:
        return WithoutPositions(reason="no two sentences have as many tokens")
    try:
        graph = _uniform(subject, tokens, seed)
        if isinstance(graph, str):
            return WithoutPositions(reason=graph)
        cloud = Cloud()
        for sentence in chosen:
            cloud.add(sentence.kinds, pooled(_states(graph, words, sentence.rows), pooling))
    except Exception as error:  # noqa: BLE001 - the model is not ours: anything may come
        return WithoutPositions(reason=f"the graph could not be run: {type(error).__name__}: {first_line(error)}")
    return WithoutPositions(
        moved=cloud.summary(order, seed=seed), sentences=len(chosen), tokens=tokens, place=tokens // 2
    )


def _uniform(subject: Subject, tokens: int, seed: int) -> Captured | str:
    exam = Examination(subject, tokens, seed)
    if exam.failure is not None:
        return exam.failure
    if exam.infidelity is not None:
        return exam.infidelity
    output = next(iter(exam.output_dims), "")
    if [(d.dim, d.offset) for d in exam.output_dims.get(output, ())] != [(1, 0)]:
        return "its first output has no vector for each token"
    made = without_order(exam, output, place=tokens // 2)
    return made or "not every entry of its map is a constant that can be made uniform"


def _states(graph: Captured, words: Words, numbers: Tensor) -> Tensor:
    """The first output for each row, in as many runs as the rows of the graph make necessary."""
    rows = int(graph.inputs[0].meta["val"].shape[0])
    padded = torch.cat([numbers, numbers[:1].expand(-len(numbers) % rows, -1)])
    made = [next(iter(run(graph, (words.inputs(part),)).values())) for part in torch.split(padded, rows)]
    return torch.cat(made)[: len(numbers)]
