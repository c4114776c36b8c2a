"""Claim 6: softmax(P S P^T) = P softmax(S) P^T, and with it every step of attention moves with the rows.

    Q' = P Q     K' = P K     V' = P V          (P X) W = P (X W)
    S' = P S P^T                                (P Q)(P K)^T = P Q K^T P^T
    A' = softmax(S') = P A P^T                  a softmax along rows minds neither which row it is nor the order in it
    Z' = A' V' = P A P^T P V = P A V = P Z      P^T P = I

Each step is proved twice: on the recorded graph of a layer, for every value of its weights; and with symbols in place
of numbers, for three tokens, where both sides are the same expression.
Source: Zaheer et al. 2017, "Deep Sets", arXiv:1703.06114; Lee et al. 2019, "Set Transformer", arXiv:1810.00825.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orderproof.claims.by_algebra import Formula, exactly
from orderproof.claims.by_law import ByLaw
from orderproof.claims.claim import Claim, Ground
from orderproof.claims.models import numbered_steps, steps

N, D = 3, 2  # tokens and features of the symbols


def softmax(S: Any) -> Any:
    """Take exp of every entry, over the sum of its row."""
    import sympy

    e = S.applyfunc(sympy.exp)
    return sympy.Matrix(S.rows, S.cols, lambda i, j: e[i, j] / sum(e.row(i)))


def running_softmax(S: Any) -> Any:
    """Take exp of every entry, over the sum of its row up to it: an order within the row."""
    import sympy

    e = S.applyfunc(sympy.exp)
    return sympy.Matrix(S.rows, S.cols, lambda i, j: e[i, j] / sum(e[i, : j + 1]))


def first_row_first(X: Any) -> Any:
    """The matrix with its first row doubled: a row that knows its place."""
    return X.row(0).col_join(X[1:, :]) + X.row(0).col_join(0 * X[1:, :])


def projection_formula() -> Formula:
    """X W, as symbols."""
    return Formula(
        text="(P X) W = P (X W)", operands=(("x", (N, D), "rows"), ("w", (D, D), "still")), result="rows",
        of=lambda X, W: X * W,
    )  # fmt: skip


def broken_projection() -> Formula:
    """X W with the first row of X doubled."""
    return Formula(
        text="(P X) W = P (X W)", operands=(("x", (N, D), "rows"), ("w", (D, D), "still")), result="rows",
        of=lambda X, W: first_row_first(X) * W,
    )  # fmt: skip


def _scores(of: Callable[[Any, Any], Any]) -> Formula:
    operands: Any = (("q", (N, D), "rows"), ("k", (N, D), "rows"))
    return Formula(text="(P Q)(P K)^T = P Q K^T P^T", operands=operands, result="both", of=of)


def scores_formula() -> Formula:
    """Q K^T, as symbols."""
    return _scores(lambda Q, K: Q * K.T)


def broken_scores() -> Formula:
    """Q K^T with the first key doubled."""
    return _scores(lambda Q, K: Q * first_row_first(K).T)


def softmax_formula() -> Formula:
    """softmax(S) along rows, as symbols."""
    text = "softmax(P S P^T) = P softmax(S) P^T"
    return Formula(text=text, operands=(("s", (N, N), "both"),), result="both", of=softmax)


def broken_softmax() -> Formula:
    """A softmax whose sums run up to the entry only."""
    text = "softmax(P S P^T) = P softmax(S) P^T"
    return Formula(text=text, operands=(("s", (N, N), "both"),), result="both", of=running_softmax)


def _mixed(of: Callable[[Any, Any], Any]) -> Formula:
    operands: Any = (("a", (N, N), "both"), ("v", (N, D), "rows"))
    return Formula(text="(P A P^T)(P V) = P (A V)", operands=operands, result="rows", of=of)


def mixing_formula() -> Formula:
    """A V, as symbols."""
    return _mixed(lambda A, V: A * V)


def broken_mixing() -> Formula:
    """A V with the first value doubled."""
    return _mixed(lambda A, V: A * first_row_first(V))


def _on_the_graph(output: str, says: str) -> Ground:
    return Ground(
        what=f"permute the rows of X by P, and {output} becomes {says}", subject=steps,
        test=ByLaw("order_blind", output, alone=output in "QKV"), expected="holds", asserted="holds",
        broken=numbered_steps,
    )  # fmt: skip


def _with_symbols(what: str, subject: Callable[[], Formula], broken: Callable[[], Formula]) -> Ground:
    return Ground(what=what, subject=subject, test=exactly, expected="holds", asserted="holds", broken=broken)


CLAIM = Claim(
    number=6,
    name="permuted_scores",
    statement="softmax(PSP^T) = P softmax(S) P^T: Q, K, V, scores, attention and output all move with the rows.",
    documented="proved",
    exact=(
        "Permute the rows of X by P. Then Q' = PQ, K' = PK, V' = PV, S' = PSP^T, A' = softmax(S') = PAP^T and Z' "
        "= PZ, for every X, every weight and every P."
    ),
    conditions=(
        "the softmax runs along rows (over the keys)",
        "no positions and no mask, or a mask that is permuted with the rows",
        "on the graph for every weight; with symbols for 3 tokens and 2 features, and all 6 orders",
    ),
    source="Zaheer et al. 2017, arXiv:1703.06114; Lee et al. 2019, arXiv:1810.00825",
    grounds=(
        _on_the_graph("Q", "PQ"),
        _on_the_graph("K", "PK"),
        _on_the_graph("V", "PV"),
        _on_the_graph("S", "PSP^T"),
        _on_the_graph("A", "PAP^T"),
        _on_the_graph("Z", "PZ"),
        _with_symbols("a projection of permuted rows is permuted alike", projection_formula, broken_projection),
        _with_symbols("the scores of permuted rows are permuted in rows and columns", scores_formula, broken_scores),
        _with_symbols("softmax(PSP^T) = P softmax(S) P^T", softmax_formula, broken_softmax),
        _with_symbols("P^T meets P: PAP^T times PV is P times AV", mixing_formula, broken_mixing),
    ),
)  # fmt: skip
