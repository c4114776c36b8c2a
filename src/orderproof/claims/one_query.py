"""Claim 1: with one query, permuting the prompt leaves the output unchanged.

Let q be the query of the last token, k_n and v_n the key and the value of token n. One layer gives

    out = sum_n exp(q . k_n) v_n / sum_n exp(q . k_n)

and a finite sum does not depend on the order of its terms: the prompts [A, B] and [B, A] have the same output. A causal
mask does not change that, because the last token attends to every token. It does change the outputs at the *other*
tokens: the second attends to two tokens, the first to one. A second layer reads these outputs, so its last token can
distinguish the prompts. Without a mask, no number of layers can.
Source: Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization in Transformers",
arXiv:2305.19466, theorem 1.
"""

from __future__ import annotations

from torch import nn

from orderproof.blocks import fingerprint_model
from orderproof.claims.claim import Claim, ClaimCheck
from orderproof.claims.law_check import LawCheck
from orderproof.claims.small_models import WIDTH, mean_pooled_encoder, mean_pooled_encoder_with_positions
from orderproof.laws.proved.prompt_permutation import LAW as PROMPT_PERMUTATION


def _block(*, causal: bool, layers: int, encoding: str = "none") -> nn.Module:
    return fingerprint_model(encoding, causal=causal, layers=layers, width=WIDTH, heads=2, length=16)


def one_layer() -> nn.Module:
    """One bidirectional layer without positions."""
    return _block(causal=False, layers=1)


def one_causal_layer() -> nn.Module:
    """One causal layer without positions."""
    return _block(causal=True, layers=1)


def two_causal_layers() -> nn.Module:
    """Two causal layers without positions."""
    return _block(causal=True, layers=2)


def one_layer_with_positions() -> nn.Module:
    """One bidirectional layer with learned positions."""
    return _block(causal=False, layers=1, encoding="learned")


PROMPT_INVARIANT = "permuting the tokens before the last leaves the output at the last token unchanged"

CLAIM = Claim(
    number=1,
    name="one_query",
    statement="With one query, swapping the prompt's tokens leaves the output equal.",
    expected_verdict="proved",
    exact_statement=(
        "Without positions, one layer read at its last token gives the same output for every order of the tokens "
        "before it, with a causal mask or without. Two causal layers do not; two layers without a mask do."
    ),
    conditions=(
        "one layer; or several without a causal mask",
        "no positions: none added to embeddings, applied as rotations, or added to attention scores",
        "the last token keeps its position, and only its output is used",
        "equal in real arithmetic; in floating point up to rounding",
    ),
    source="Kazemnejad et al. 2023, arXiv:2305.19466, theorem 1",
    theorems=(
        "argument.one_query.last_token_ignores_order",
        "argument.one_query.prompt_invariant",
        "argument.two_causal_layers.two_causal_layers_use_order",
    ),
    checks=(
        ClaimCheck(
            statement=PROMPT_INVARIANT,
            make_subject=one_layer,
            method=LawCheck(PROMPT_PERMUTATION),
            expected="holds",
            asserted_by_claim="holds",
            negative_control=one_layer_with_positions,
        ),
        ClaimCheck(
            statement=PROMPT_INVARIANT,
            make_subject=one_causal_layer,
            method=LawCheck(PROMPT_PERMUTATION),
            expected="holds",
            asserted_by_claim="holds",
            negative_control=two_causal_layers,
        ),
        ClaimCheck(
            statement=PROMPT_INVARIANT,
            make_subject=mean_pooled_encoder,
            method=LawCheck(PROMPT_PERMUTATION, "words"),
            expected="holds",
            negative_control=mean_pooled_encoder_with_positions,
        ),
        ClaimCheck(
            statement=PROMPT_INVARIANT,
            make_subject=two_causal_layers,
            method=LawCheck(PROMPT_PERMUTATION),
            expected="fails",
            negative_control=one_causal_layer,
        ),
    ),
)
