"""OP201 causal: outputs before token j are independent of the tokens from j on, for every j.

    X_i = X'_i for i < j  implies  f(X)_i = f(X')_i for i < j.

The prover tracks for each element the largest token index that it depends on, so one pass decides every j.
Source: elementary; the assumption of next-token training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from orderproof.laws.causal_mask_line import causal_line_change
from orderproof.laws.proved.proved_law import (
    IndependenceLaw,
    InputChange,
    TokenAxis,
    TokenDim,
    axis_tuple,
    evenly_spaced,
)
from orderproof.prover.domain.fact import ALWAYS, NEVER, DependenceArray, Fact, Shape, constant_dependence
from orderproof.prover.domain.move import STILL
from orderproof.prover.logic.terms import Formula, Term, at_most, less, variable
from orderproof.prover.symbolic.statement import MASK, TOKENS, Statement, is_real
from orderproof.records.audit import Expectation, Remedy

LEAST_TOKENS_OF_A_FORM = 4  # below, a causal mask that is off by one looks like a short window


@dataclass(frozen=True, kw_only=True)
class CausalLaw(IndependenceLaw):
    """The law of this module."""

    def input_fact(self, shape: Shape, axis: TokenAxis) -> Fact:
        rank = len(shape)
        moves = (STILL,) * rank
        if axis is None:
            return Fact(shape, moves, constant_dependence(rank, NEVER))
        (axis,) = axis_tuple(axis)
        level = np.arange(shape[axis], dtype=np.int64).reshape([-1 if d == axis else 1 for d in range(rank)])
        return Fact(shape, moves, level)

    def missing_property(
        self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int, rows: int | None = None
    ) -> str | None:
        token = dims[0]
        place = np.arange(fact.shape[token.dim]) - token.prefix_length
        allowed = np.maximum(place, NEVER).reshape([-1 if d == token.dim else 1 for d in range(len(fact.shape))])
        over = fact.dependence > allowed
        if not over.any():
            return None
        where = np.argwhere(np.broadcast_to(over, np.broadcast_shapes(over.shape, allowed.shape)))[0]
        i = int(where[token.dim]) - token.prefix_length
        level = int(np.broadcast_to(fact.dependence, over.shape)[tuple(where)])
        what = "anything" if level >= ALWAYS else f"token {level}"
        entry = (
            f"the output at token {i}" if i >= 0 else f"entry {i + token.prefix_length} of the output, before token 0,"
        )
        return f"{entry} may depend on {what}"

    def open_statement(self, shared: frozenset[str]) -> Statement | None:
        """With a mask the outputs at real tokens: a pad may see no token, and its output is then the mean of all."""
        if not shared <= {MASK}:
            return None
        cut = variable("cut")
        premises = (at_most(0, cut), at_most(cut, TOKENS))

        def before(_row: Term, token: Term) -> Formula:
            return less(token, cut)

        if not shared:
            return Statement(before, before, lambda row, token: [before(row, token)], premises)
        return Statement(
            before,
            lambda row, token: before(row, token) & is_real(row, token),
            lambda row, token: [before(row, token), is_real(row, token)],
            premises,
            covers=("every attention mask (at its real tokens)",),
        )

    def max_dependence(self, shape: Shape, tokens: int, rows: int) -> DependenceArray | None:
        dims = [d for d, size in enumerate(shape) if size == tokens]
        if len(dims) != 1:
            return None
        return np.arange(tokens).reshape([-1 if d == dims[0] else 1 for d in range(len(shape))])

    def forbidden_pairs(self, tokens: int, rows: int = 1) -> NDArray[np.bool_]:
        return ~np.tri(tokens, dtype=bool)

    def expectation_from_mask(self, visible: NDArray[np.bool_]) -> tuple[Expectation, str]:
        """A mask that hides all later tokens but the next one is taken for a causal mask that is off by one.

        Each query i sees the keys up to i + 1 and no other. Most masks that are meant to show later tokens have
        another form: all keys, a band or window (a late query does not see the first key), a prefix or blocks (some
        query but the last sees no later key), a look-ahead of several tokens. A window that sees one later token and
        is longer than the input has this form, and so has a look-ahead of one token: the user states that it is meant.
        """
        tokens = len(visible)
        if tokens < LEAST_TOKENS_OF_A_FORM or not np.array_equal(visible, np.tri(tokens, k=1, dtype=bool)):
            return "any", ""
        return "holds", "hides all later tokens but the next one, like a causal mask that is off by one"

    def line_change(self, line: str, visible: NDArray[np.bool_] | None, form: str, *, applied: bool) -> str:
        return causal_line_change(line, visible, form, applied=applied)

    def input_changes(self, tokens: int, rows: int = 1) -> Iterator[InputChange]:
        for k in evenly_spaced(tokens - 1):
            cut = tokens - 1 - k
            yield InputChange(f"replace the tokens from {cut} on", first_replaced=cut)

    def expected_and_actual(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: InputChange
    ) -> tuple[Tensor, Tensor]:
        assert change.first_replaced is not None
        token = dims[0]
        end = change.first_replaced + token.prefix_length
        return first.narrow(token.dim, 0, end), second.narrow(token.dim, 0, end)


LAW = CausalLaw(
    code="OP201",
    name="causal",
    statement="Replacing the tokens from j on leaves the outputs before j unchanged, for every j.",
    trait="hides later tokens from earlier ones",
    expectation={"encoder": "fails", "causal_lm": "holds", "vision": "fails"},
    remedies={
        "holds": Remedy(
            text="Mask later tokens before the softmax, on every attention backend, with and without a padding mask.",
            diff="-scaled_dot_product_attention(q, k, v, attn_mask=mask)\n"
            "+scaled_dot_product_attention(q, k, v, attn_mask=mask & torch.ones_like(mask).tril())",
        ),
        "fails": Remedy(
            text="Attend to later tokens: a mask that should hide pads only hides later tokens too.",
            diff="-mask = create_causal_mask(...)\n+mask = create_bidirectional_mask(...)",
        ),
    },
)
