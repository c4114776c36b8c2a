"""The scope of a proof in words: for which lengths, batches, masks and weights the law is proved."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orderproof.records.audit import Scope, Theorem
from orderproof.report.joined_words import join_words

LEAST_BATCH_SIZE = 2  # a theorem is recorded with an open number of rows, and torch treats one row apart
_AT_MOST = re.compile(r"(batch|tokens) - (\d+) <= 0")
_NO_MASK = "no attention mask"  # covered by the call with tokens only


def proof_scope_text(scope: Scope, theorem: Theorem | None) -> str:
    """``for every length from 2 to 128, every batch size of at least 2, every attention mask and every weight``.

    If the law is not proved for every length: ``at 7 tokens for every weight; runs at 16 and 33 tokens agree; for every
    length not proved: why``. A proof without such a result (of a completion): ``for every value of every parameter``.
    """
    these = scope.weights == "these"
    if theorem is None:
        return "for these weights" if these else "for every value of every parameter"
    if theorem.proved:
        text = "; ".join([theorem_text(theorem), *_compared(scope)])
        return f"{text}; {_not_proved(theorem)}" if theorem.reason else text
    tokens = f"{scope.length:,} token{'' if scope.length == 1 else 's'}"
    weights = "these weights" if these else "every weight"
    return "; ".join([f"at {tokens} for {weights}", *_compared(scope), no_theorem_text(theorem)])


def no_theorem_text(theorem: Theorem | None) -> str:
    """Why a law is not proved for every length; empty if it is, or if that was not tried."""
    return "" if theorem is None or theorem.proved else _not_proved(theorem)


def _not_proved(theorem: Theorem) -> str:
    return f"for every length not proved: {theorem.reason or 'no reason is recorded'}"


def _compared(scope: Scope) -> list[str]:
    """The other calls whose runs were compared, which proves nothing of them."""
    lengths = [f"at {join_words([f'{n:,}' for n in scope.compared_lengths])} tokens"] if scope.compared_lengths else []
    masks = [f"with other attention masks ({', '.join(scope.compared_masks)})"] if scope.compared_masks else []
    rows = [f"with {rows_text(scope.compared_rows)}"] if scope.compared_rows else []
    return [f"runs {join_words([*lengths, *rows, *masks])} agree"] if lengths or rows or masks else []


def rows_text(counts: Sequence[int]) -> str:
    """``1, 3 and 4 rows``, ``1 row``."""
    return f"{join_words([f'{n:,}' for n in counts])} row{'' if tuple(counts) == (1,) else 's'}"


def theorem_text(theorem: Theorem) -> str:
    """For what a theorem holds, with the conditions on the sizes."""
    held = [
        _sizes_text(theorem), f"every batch size of at least {LEAST_BATCH_SIZE}", *_shared_inputs(theorem.covers),
        *(["every number of layers"] if theorem.every_depth else []), "every weight",
    ]  # fmt: skip
    text = f"for {', '.join(held[:-1])} and {held[-1]}"
    return f"{text}, where {' and '.join(map(_condition_text, theorem.conditions))}" if theorem.conditions else text


def lengths_text(theorem: Theorem) -> str:
    """``every length from 2 to 128``, ``every length of at least 2``, or ``inputs of shape [batch, 9]``.

    With the first condition on the sizes, and how many there are besides.
    """
    text, conditions = _sizes_text(theorem), theorem.conditions
    if not conditions:
        return text
    more = f" and {len(conditions) - 1} more" if len(conditions) > 1 else ""
    return f"{text} where {_condition_text(conditions[0])}{more}"


def _condition_text(condition: str) -> str:
    """``batch <= 4`` for ``batch - 4 <= 0``; other conditions as they are."""
    found = _AT_MOST.fullmatch(condition)
    return f"{found[1]} <= {found[2]}" if found else condition


def _sizes_text(theorem: Theorem) -> str:
    """The lengths of a theorem without its conditions."""
    if not theorem.open_length:
        shapes = join_words(list(theorem.recorded_shapes))
        return (
            f"inputs of shape{'s' * (len(theorem.recorded_shapes) > 1)} {shapes}" if shapes else "inputs of this size"
        )
    if theorem.greatest_length is None:
        return f"every length of at least {theorem.least_length:,}"
    return f"every length from {theorem.least_length:,} to {theorem.greatest_length:,}"


def _shared_inputs(covers: Sequence[str]) -> list[str]:
    """The inputs that are covered; a call without a mask and calls with every mask are one item."""
    named = [text for text in covers if text != _NO_MASK]
    return [f"{text} or none" for text in named] if len(named) < len(covers) else named
