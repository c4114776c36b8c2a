"""Claim 1: with one query, swapping the prompt's tokens leaves the output equal.

Let q be the query of the last token, k_n and v_n the key and the value of token n. One layer gives

    out = sum_n exp(q . k_n) v_n / sum_n exp(q . k_n)

and a finite sum does not depend on the order of its terms: the prompt [A, B] gives what [B, A] gives. A causal mask
changes nothing here, as the last token sees every token. It does change what the *other* tokens get: with a causal
mask the second of them sees two tokens and the first sees one. A second layer reads that, and so its last token can
tell the prompts apart. Without a mask all tokens see all, and no number of layers helps.
Source: Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization in Transformers",
arXiv:2305.19466, theorem 1.
"""

from __future__ import annotations

from torch import nn

from orderproof.blocks import fingerprint_block
from orderproof.claims.by_law import ByLaw
from orderproof.claims.claim import Claim, Ground
from orderproof.claims.models import WIDTH, reader, reader_with_positions


def _block(*, causal: bool, layers: int, encoding: str = "none") -> nn.Module:
    return fingerprint_block(encoding, causal=causal, layers=layers, width=WIDTH, heads=2, length=16)


def one_layer() -> nn.Module:
    """One layer without positions, in which all tokens see all."""
    return _block(causal=False, layers=1)


def one_causal_layer() -> nn.Module:
    """One causal layer without positions."""
    return _block(causal=True, layers=1)


def two_causal_layers() -> nn.Module:
    """Two causal layers without positions."""
    return _block(causal=True, layers=2)


def with_positions() -> nn.Module:
    """One layer with a learned vector for each position, in which all tokens see all."""
    return _block(causal=False, layers=1, encoding="learned")


SAME = "the prompt's tokens may change places: the output at the last token stays the same"

CLAIM = Claim(
    number=1,
    name="one_query",
    statement="With one query, swapping the prompt's tokens leaves the output equal.",
    documented="proved",
    exact=(
        "Without positions, one layer read at its last token gives the same output for every order of the tokens "
        "before it, with a causal mask or without. Two causal layers do not; two layers without a mask do."
    ),
    conditions=(
        "one layer; or several, if every token sees every token",
        "no positions: nothing is added to the vectors, turned, or added to the scores",
        "the last token stays where it is, and only its output is read",
        "equal over the real numbers; in floating point up to rounding",
    ),
    source="Kazemnejad et al. 2023, arXiv:2305.19466, theorem 1",
    grounds=(
        Ground(
            what=SAME, subject=one_layer, test=ByLaw("prompt_blind"), expected="holds", asserted="holds",
            broken=with_positions,
        ),
        Ground(
            what=SAME, subject=one_causal_layer, test=ByLaw("prompt_blind"), expected="holds", asserted="holds",
            broken=two_causal_layers,
        ),
        Ground(
            what=SAME, subject=reader, test=ByLaw("prompt_blind", "words"), expected="holds",
            broken=reader_with_positions,
        ),
        Ground(
            what=SAME, subject=two_causal_layers, test=ByLaw("prompt_blind"), expected="fails",
            broken=one_causal_layer,
        ),
    ),
)  # fmt: skip
