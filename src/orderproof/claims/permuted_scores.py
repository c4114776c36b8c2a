"""Claim 6: softmax(P S P^T) = P softmax(S) P^T, so every step of attention is permutation-equivariant.

    Q' = P Q     K' = P K     V' = P V          (P X) W = P (X W)
    S' = P S P^T                                (P Q)(P K)^T = P Q K^T P^T
    A' = softmax(S') = P A P^T                  the softmax of a row depends on no index and on no order
    Z' = A' V' = P A P^T P V = P A V = P Z      P^T P = I

Each step is proved twice: on the recorded graph of a layer, for every number of tokens and all weights; and for three
tokens as formulas, where both sides are the same expression.
Source: Zaheer et al. 2017, "Deep Sets", arXiv:1703.06114; Lee et al. 2019, "Set Transformer", arXiv:1810.00825.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orderproof.claims.claim import Claim, ClaimCheck
from orderproof.claims.law_check import LawCheck
from orderproof.claims.small_models import attention_steps, attention_steps_with_row_numbers
from orderproof.claims.symbolic_check import Formula, check_identity
from orderproof.laws.proved.permutation import LAW as PERMUTATION

N, D = 3, 2  # tokens and features of the symbolic matrices


def softmax(S: Any) -> Any:
    """The softmax of each row."""
    import sympy

    e = S.applyfunc(sympy.exp)
    return sympy.Matrix(S.rows, S.cols, lambda i, j: e[i, j] / sum(e.row(i)))


def cumulative_softmax(S: Any) -> Any:
    """A softmax whose sums stop at the entry, so that it depends on the order within the row."""
    import sympy

    e = S.applyfunc(sympy.exp)
    return sympy.Matrix(S.rows, S.cols, lambda i, j: e[i, j] / sum(e[i, : j + 1]))


def double_first_row(X: Any) -> Any:
    """The matrix with its first row doubled, which depends on the row index."""
    return X.row(0).col_join(X[1:, :]) + X.row(0).col_join(0 * X[1:, :])


def projection_formula() -> Formula:
    """X W, symbolically."""
    return Formula(
        text="(P X) W = P (X W)", operands=(("x", (N, D), "rows"), ("w", (D, D), "still")), result_action="rows",
        function=lambda X, W: X * W,
    )  # fmt: skip


def broken_projection() -> Formula:
    """X W with the first row of X doubled."""
    return Formula(
        text="(P X) W = P (X W)", operands=(("x", (N, D), "rows"), ("w", (D, D), "still")), result_action="rows",
        function=lambda X, W: double_first_row(X) * W,
    )  # fmt: skip


def _scores(function: Callable[[Any, Any], Any]) -> Formula:
    operands: Any = (("q", (N, D), "rows"), ("k", (N, D), "rows"))
    return Formula(text="(P Q)(P K)^T = P Q K^T P^T", operands=operands, result_action="both", function=function)


def scores_formula() -> Formula:
    """Q K^T, symbolically."""
    return _scores(lambda Q, K: Q * K.T)


def broken_scores() -> Formula:
    """Q K^T with the first key doubled."""
    return _scores(lambda Q, K: Q * double_first_row(K).T)


def softmax_formula() -> Formula:
    """softmax(S) along rows, symbolically."""
    text = "softmax(P S P^T) = P softmax(S) P^T"
    return Formula(text=text, operands=(("s", (N, N), "both"),), result_action="both", function=softmax)


def broken_softmax() -> Formula:
    """A softmax whose sums stop at the entry."""
    text = "softmax(P S P^T) = P softmax(S) P^T"
    return Formula(text=text, operands=(("s", (N, N), "both"),), result_action="both", function=cumulative_softmax)


def _mixed(function: Callable[[Any, Any], Any]) -> Formula:
    operands: Any = (("a", (N, N), "both"), ("v", (N, D), "rows"))
    return Formula(text="(P A P^T)(P V) = P (A V)", operands=operands, result_action="rows", function=function)


def mixing_formula() -> Formula:
    """A V, symbolically."""
    return _mixed(lambda A, V: A * V)


def broken_mixing() -> Formula:
    """A V with the first value doubled."""
    return _mixed(lambda A, V: A * double_first_row(V))


def _graph_check(output: str, result: str) -> ClaimCheck:
    return ClaimCheck(
        statement=f"permuting the rows of X by P maps {output} to {result}", make_subject=attention_steps,
        method=LawCheck(PERMUTATION, output, pointwise=output in "QKV"), expected="holds", asserted_by_claim="holds",
        negative_control=attention_steps_with_row_numbers,
    )  # fmt: skip


def _symbolic_check(
    statement: str, subject: Callable[[], Formula], negative_control: Callable[[], Formula]
) -> ClaimCheck:
    return ClaimCheck(
        statement=statement,
        make_subject=subject,
        method=check_identity,
        expected="holds",
        asserted_by_claim="holds",
        negative_control=negative_control,
    )


CLAIM = Claim(
    number=6,
    name="permuted_scores",
    statement="softmax(PSP^T) = P softmax(S) P^T: Q, K, V, scores, attention and output are permuted with the rows.",
    expected_verdict="proved",
    exact_statement=(
        "Let P permute the rows of X. Then Q' = PQ, K' = PK, V' = PV, S' = PSP^T, A' = softmax(S') = PAP^T and Z' "
        "= PZ, for every X, every weight and every P."
    ),
    conditions=(
        "the softmax runs along rows (over the keys)",
        "no positions and no mask, or a mask that is permuted with the rows",
        "on the graph for every number of tokens, permutation and weight; symbolically for 3 tokens and 2 features",
    ),
    source="Zaheer et al. 2017, arXiv:1703.06114; Lee et al. 2019, arXiv:1810.00825",
    theorems=(
        "argument.softmax.softmax_perm",
        "argument.attention.scores_perm",
        "argument.attention.attention_equivariant",
    ),
    checks=(
        _graph_check("Q", "PQ"),
        _graph_check("K", "PK"),
        _graph_check("V", "PV"),
        _graph_check("S", "PSP^T"),
        _graph_check("A", "PAP^T"),
        _graph_check("Z", "PZ"),
        _symbolic_check(
            "the projection of permuted rows is permuted in the same way", projection_formula, broken_projection
        ),
        _symbolic_check("the scores of permuted rows are permuted in rows and columns", scores_formula, broken_scores),
        _symbolic_check("softmax(PSP^T) = P softmax(S) P^T", softmax_formula, broken_softmax),
        _symbolic_check("P^T P = I: PAP^T times PV is P times AV", mixing_formula, broken_mixing),
    ),
)
