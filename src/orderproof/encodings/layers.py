"""Layer schedules: which layer has which encoding.

    every(4, NoEncoding(), otherwise=rope, layers=48)      layers 4, 8, ... see no positions (iRoPE: Llama 4, SmolLM3)
    every(6, far, otherwise=near, layers=26)               layers 6, 12, ... have another base (Gemma 3: near is
                                                           Rotary(256), far is Rotary(256, base=1e6))
    in_turn([near, near, far], layers=26)                  any other pattern, repeated

Each gives one encoding a layer, which `blocks.Stack` takes instead of one for all. Layers may share one: its
parameters, where it has any, are then shared.
Source: Meta 2025, "The Llama 4 herd"; Gemma Team 2025, "Gemma 3 Technical Report", arXiv:2503.19786, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings._operands import check_size
from orderproof.errors import EncodingError


def every(
    n: int, encoding: PositionalEncoding, *, otherwise: PositionalEncoding, layers: int
) -> tuple[PositionalEncoding, ...]:
    """One encoding for layers n, 2n, 3n, ..., counted from 1, and another for all others."""
    return in_turn([otherwise] * (check_size("every", "n", n) - 1) + [encoding], layers=layers)


def in_turn(encodings: Sequence[PositionalEncoding], *, layers: int) -> tuple[PositionalEncoding, ...]:
    """These encodings in turn, begun again until every layer has one."""
    check_size("in_turn", "layers", layers)
    if not encodings:
        raise EncodingError("in_turn: expected one encoding or more, got none")
    return tuple(encodings[layer % len(encodings)] for layer in range(layers))
