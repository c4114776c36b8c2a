"""Layer patterns: a different encoding for different layers.

    every_nth_layer(4, NoEncoding(), otherwise=rope, layers=48)  layers 4, 8, ... without positions (iRoPE: Llama 4,
                                                                 SmolLM3)
    every_nth_layer(6, far, otherwise=near, layers=26)           layers 6, 12, ... with another base (Gemma 3: near is
                                                                 Rotary(256), far is Rotary(256, base=1e6))
    repeat_pattern([near, near, far], layers=26)                 any other pattern, repeated

Each function returns one encoding per layer, for `blocks.TransformerStack`. Layers that share an encoding share its
parameters.
Source: Meta 2025, "The Llama 4 herd"; Gemma Team 2025, "Gemma 3 Technical Report", arXiv:2503.19786, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.checks import check_size
from orderproof.errors import EncodingError


def every_nth_layer(
    n: int, encoding: PositionalEncoding, *, otherwise: PositionalEncoding, layers: int
) -> tuple[PositionalEncoding, ...]:
    """One encoding for layers n, 2n, 3n, ..., counted from 1, and another for all other layers."""
    return repeat_pattern([otherwise] * (check_size("every_nth_layer", "n", n) - 1) + [encoding], layers=layers)


def repeat_pattern(encodings: Sequence[PositionalEncoding], *, layers: int) -> tuple[PositionalEncoding, ...]:
    """The encodings repeated until every layer has one."""
    check_size("repeat_pattern", "layers", layers)
    if not encodings:
        raise EncodingError("repeat_pattern: expected one encoding or more, got none")
    return tuple(encodings[layer % len(encodings)] for layer in range(layers))
