"""The order of laws under a budget: what they find per second, and how much work a law is.

What a law finds is counted in publicly reported faults: those of the page of known defects, and the small modules after
public reports. Its seconds are processor time on a bfloat16 decoder of 96 million parameters. A law without an entry
counts as one fault in two seconds.

Laws that are proved share a recording, so they are one block: measured laws that find more per second than the block
come before it, and the others after it. Laws of which nothing is expected find no fault and come last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from orderproof.laws import ProvedLaw
from orderproof.laws.law import Law
from orderproof.laws.measured import MeasuredLaw
from orderproof.records.audit import Expectation

AnyLaw = ProvedLaw | MeasuredLaw
RECORDING = 3.0  # [s] to record the graph, once for all laws that are proved
SENTENCES = 1.0  # [s] to compare two sentences
FOUND_AND_SECONDS: Mapping[str, tuple[int, float]] = {
    "batch_composition": (20, 0.3),
    "use_cache": (6, 0.1),
    "chunked_prefill": (17, 0.3),
    "attention_pattern": (20, 0.8),
    "cached_decoding": (23, 1.9),
    "pooled_padding": (1, 0.1),
    "save_load": (4, 0.7),
    "padding": (10, 1.8),
    "packed_alone": (1, 0.2),
    "default_position_ids": (4, 0.8),
    "stateless": (8, 1.8),
    "ignored_arguments": (5, 1.4),
    "position_precision": (10, 3.7),
    "context_length": (5, 2.0),
    "distinct_positions": (4, 2.1),
    "position_shift": (7, 3.7),
    "causal": (3, 1.7),
    "cache_editing": (3, 1.9),
    "packing": (7, 4.8),
    "permutation": (3, 3.0),
    "batch": (1, 1.0),
    "attention_backend": (4, 4.6),
    "left_padded_decoding": (1, 1.3),
    "prompt_permutation": (0, 2.2),
    "reversal": (0, 0.3),
    "position_ids": (0, 1.9),
    "right_padded_decoding": (0, 0.9),
    "sequence_parallel": (0, 0.9),
}
DEFAULT = (1, 2.0)


def seconds(law: Law) -> float:
    """How long a law takes on a small checkpoint [s]."""
    return FOUND_AND_SECONDS.get(law.name, DEFAULT)[1]


def blocks(
    laws: Sequence[AnyLaw], *, budget: bool, expected: Mapping[str, Expectation], kind: str, last: Collection[str] = ()
) -> list[list[AnyLaw]]:
    """The laws in the order in which they run, in blocks that are either proved or measured.

    Without a budget, the proved ones in the given order, then the measured ones. `last`: laws that have had their time.
    """

    def rank(law: AnyLaw) -> tuple[bool, bool, float, bool, float]:
        expects = expected.get(law.name) or law.expected(kind)
        of_block = proved_rate if isinstance(law, ProvedLaw) else _rate([law])
        return law.name in last, expects == "any", -of_block, isinstance(law, MeasuredLaw), -_rate([law])

    proved_rate = _rate([law for law in laws if isinstance(law, ProvedLaw)], RECORDING)
    ordered = sorted(laws, key=rank) if budget else sorted(laws, key=_is_measured)
    return [list(block) for _, block in groupby(ordered, key=_is_measured)]


def _is_measured(law: AnyLaw) -> bool:
    return isinstance(law, MeasuredLaw)


def _rate(laws: Sequence[AnyLaw], more: float = 0.0) -> float:
    """The faults found per second."""
    known = [FOUND_AND_SECONDS.get(law.name, DEFAULT) for law in laws]
    return sum(found for found, _ in known) / max(sum(taken for _, taken in known) + more, 0.1)
