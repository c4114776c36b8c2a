"""OP201 causal: outputs before token j are independent of the tokens from j on, for every j.

    X_i = X'_i for i < j  implies  f(X)_i = f(X')_i for i < j.

The prover tracks for each element the largest token index that it depends on, so one pass decides every j.

In a call with pads the law is about the outputs at real tokens: a pad may see no token at all, and its output is then
the mean of all.
Source: elementary; the assumption of next-token training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orderproof.batch_layout import PAD_LAYOUT_TEXTS, PAD_LAYOUTS, PadLayout, padding_slots
from orderproof.diagnosis.domain.fact import ALWAYS, NEVER, DependenceArray, Fact, Shape, constant_dependence
from orderproof.diagnosis.domain.move import STILL
from orderproof.errors import OutputShapeError
from orderproof.laws.causal_mask_line import causal_line_change
from orderproof.laws.mixing_kinds import CONVOLUTION, OTHER
from orderproof.laws.proved.proved_law import (
    UNKNOWN_ROWS,
    IndependenceLaw,
    InputChange,
    TokenAxis,
    TokenDim,
    axis_tuple,
    evenly_spaced,
    rows_and_tokens,
)
from orderproof.logic.terms import Formula, Term, at_most, less, variable
from orderproof.records.audit import Expectation, Remedy
from orderproof.theorems.statement import MASKS_IN_WORDS, REAL_TOKENS, TOKENS, Statement

LEAST_TOKENS_OF_A_FORM = 4  # below, a causal mask that is off by one looks like a short window


@dataclass(frozen=True, kw_only=True)
class CausalLaw(IndependenceLaw):
    """The law of this module."""

    def in_call_mode(self, call_mode: str) -> CausalLaw:
        layout = next((layout for layout in PAD_LAYOUTS if layout == call_mode), None)
        if layout is None:
            return self
        own = {field.name: getattr(self, field.name) for field in fields(CausalLaw)}
        return CausalLawAtRealTokens(**own, layout=layout)

    def input_fact(self, shape: Shape, axis: TokenAxis) -> Fact:
        rank = len(shape)
        moves = (STILL,) * rank
        if axis is None:
            return Fact(shape, moves, constant_dependence(rank, NEVER))
        (axis,) = axis_tuple(axis)
        level = np.arange(shape[axis], dtype=np.int64).reshape([-1 if d == axis else 1 for d in range(rank)])
        return Fact(shape, moves, level)

    def missing_property(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int) -> str | None:
        token = dims[0]
        place = np.arange(fact.shape[token.dim]) - token.prefix_length
        allowed = np.maximum(place, NEVER).reshape([-1 if d == token.dim else 1 for d in range(len(fact.shape))])
        over = fact.dependence > allowed
        if not over.any():
            return None
        where = np.argwhere(np.broadcast_to(over, np.broadcast_shapes(over.shape, allowed.shape)))[0]
        i = int(where[token.dim]) - token.prefix_length
        level = int(np.broadcast_to(fact.dependence, over.shape)[tuple(where)])
        entry = (
            f"the output at token {i}" if i >= 0 else f"entry {i + token.prefix_length} of the output, before token 0,"
        )
        return f"{entry} may depend on {self.dependence_text(level)}"

    def open_statement(self, shared: frozenset[str]) -> Statement | None:
        """With a mask the outputs at real tokens: a pad may see no token, and its output is then the mean of all."""
        if len(shared) > 1 or not shared <= REAL_TOKENS.keys():
            return None
        cut = variable("cut")
        premises = (at_most(0, cut), at_most(cut, TOKENS))

        def before(_row: Term, token: Term) -> Formula:
            return less(token, cut)

        if not shared:
            return Statement(before, before, lambda row, token: [before(row, token)], premises)
        (mask,) = shared
        is_real = REAL_TOKENS[mask]
        return Statement(
            before,
            lambda row, token: before(row, token) & is_real(row, token),
            lambda row, token: [before(row, token), is_real(row, token)],
            premises,
            covers=(f"{MASKS_IN_WORDS[mask]} (at its real tokens)",),
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
        yield from (self._replace_from(tokens - 1 - k, tokens, rows) for k in evenly_spaced(tokens - 1))

    def every_change(self, tokens: int, rows: int = 1) -> Iterator[InputChange]:
        yield from (self._replace_from(cut, tokens, rows) for cut in range(tokens - 1, 0, -1))

    def _replace_from(self, cut: int, tokens: int, rows: int) -> InputChange:
        del tokens, rows
        return InputChange(f"replace the tokens from {cut} on", first_replaced=cut)

    def expected_and_actual(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: InputChange
    ) -> tuple[Tensor, Tensor]:
        assert change.first_replaced is not None
        token = dims[0]
        end = change.first_replaced + token.prefix_length
        return first.narrow(token.dim, 0, end), second.narrow(token.dim, 0, end)


@dataclass(frozen=True, kw_only=True)
class CausalLawAtRealTokens(CausalLaw):
    """The law for a batch with pads, whose outputs are not compared."""

    reads_rows = True
    layout: PadLayout = "padded"

    def missing_property(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int) -> str | None:
        real = self._real_entries(fact.shape, dims, tokens)
        if real is None:
            return UNKNOWN_ROWS
        dependence = np.where(real, np.broadcast_to(fact.dependence, fact.shape), NEVER)
        return super().missing_property(Fact(fact.shape, fact.moves, dependence, fact.ranges), dims, tokens)

    def _real_entries(self, shape: Shape, dims: tuple[TokenDim, ...], tokens: int) -> NDArray[np.bool_] | None:
        """The entries of an output [row, ...] that belong to real tokens; None if tokens run along rows or twice."""
        token = dims[0]
        if token.dim == 0 or len(dims) > 1:
            return None
        real = np.zeros((shape[0], shape[token.dim]), dtype=bool)
        real[:, token.prefix_length : token.prefix_length + tokens] = self._real_slots(shape[0], tokens)
        return np.broadcast_to(real.reshape(rows_and_tokens(shape, token.dim)), shape)

    def max_dependence(self, shape: Shape, tokens: int, rows: int) -> DependenceArray | None:
        dims = [d for d, size in enumerate(shape) if size == tokens]
        if len(dims) != 1 or dims[0] == 0 or shape[0] != rows:
            return None
        allowed = np.where(self._real_slots(rows, tokens), np.arange(tokens), ALWAYS)
        return allowed.reshape(rows_and_tokens(shape, dims[0]))

    def forbidden_pairs(self, tokens: int, rows: int = 1) -> NDArray[np.bool_]:
        pairs: NDArray[np.bool_] = super().forbidden_pairs(tokens, rows) & self._real_slots(rows, tokens)[0][:, None]
        return pairs

    def _replace_from(self, cut: int, tokens: int, rows: int) -> InputChange:
        change = super()._replace_from(cut, tokens, rows)
        slots = np.broadcast_to(np.arange(tokens) >= cut, (rows, tokens))
        return replace(
            change, description=f"{change.description}, {PAD_LAYOUT_TEXTS[self.layout]}", replaced_slots=slots
        )

    def expected_and_actual(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: InputChange
    ) -> tuple[Tensor, Tensor]:
        assert change.replaced_slots is not None
        rows, tokens = change.replaced_slots.shape
        real = self._real_entries(tuple(first.shape), dims, tokens) if first.shape[:1] == (rows,) else None
        if real is None:
            raise OutputShapeError(UNKNOWN_ROWS)
        compared = torch.from_numpy(np.array(real))  # pads are zero in both, so that the others keep their indices
        return super().expected_and_actual(first.where(compared, 0), second.where(compared, 0), dims, change)

    def _real_slots(self, rows: int, tokens: int) -> NDArray[np.bool_]:
        """The slots [row, token] that are no pads."""
        real: NDArray[np.bool_] = ~padding_slots(rows, tokens, layout=self.layout).numpy()
        return real


LAW = CausalLaw(
    code="OP201",
    name="causal",
    statement="Replacing the tokens from j on leaves the outputs before j unchanged, for every j.",
    trait="hides later tokens from earlier ones",
    sequence_part="tokens",
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
    remedies_by_mixing={
        CONVOLUTION: Remedy(
            text="Pad the convolution before the first token only, by dilation * (kernel_size - 1) entries.",
            diff="-conv1d(x, weight, padding=kernel_size // 2)\n+conv1d(pad(x, (kernel_size - 1, 0)), weight)",
        ),
        OTHER: Remedy(
            text="Compute the output of a token from this token and earlier ones: no statistic of the sequence, no "
            "shift from later tokens, no scan from the end."
        ),
    },
    call_modes_without_theorem=("padded",),
    call_modes_of_other_masks=PAD_LAYOUTS[1:],
)
