"""Statements about two runs of an open graph: what the inputs agree on, and where the outputs have to agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from orderproof.logic.terms import (
    FloorDivision,
    Formula,
    Term,
    apply,
    at_most,
    conjunction,
    equal,
    floor_division,
    holds,
    less,
    negation,
    variable,
)

TOKENS, BATCH = variable("tokens"), variable("batch")  # the open sizes
REAL_TOKEN = variable("real token")  # any token: what is proved where it is real holds in each row with a real token
TOKEN_INPUT = "tokens"  # the role of the inputs that differ between the runs
ROW_INPUT = "rows"  # the same of inputs that have rows, and no open number of tokens
FIXED = "fixed"  # the role of inputs that do not move with the tokens
MASK, POSITIONS, BLOCKS = "attention_mask", "position_ids", "block_mask"  # roles of inputs that both runs share
DOCUMENTS = "document_ids"  # the same
RIGHT_MASK = "right_padding_mask"  # the same: an attention mask with pads on the right
MASK_FUNCTION, DOCUMENT_FUNCTION, POSITION_FUNCTION = "mask", "document", "position"
DOCUMENT_ID_FUNCTION, LENGTH_FUNCTION = "document_id", "number of real tokens"
STATEMENT_FUNCTIONS = (  # of what inputs hold
    MASK_FUNCTION, DOCUMENT_FUNCTION, POSITION_FUNCTION, DOCUMENT_ID_FUNCTION, LENGTH_FUNCTION,
)  # fmt: skip


def is_real(row: Term, token: Term) -> Formula:
    """The attention mask marks a token as real."""
    return holds(MASK_FUNCTION, row, token)


def is_real_on_the_left(row: Term, token: Term) -> Formula:
    """The same of an attention mask with pads on the right: the real tokens of a row come first."""
    return less(token, apply(LENGTH_FUNCTION, row))


def document(row: Term, token: Term) -> Term:
    """The document to which a token belongs: any number."""
    return apply(DOCUMENT_FUNCTION, row, token)


def document_id(row: Term, token: Term) -> Term:
    """The document id of a token that the model is given: any number, equal for the tokens of one document."""
    return apply(DOCUMENT_ID_FUNCTION, row, token)


def position(row: Term, token: Term) -> Term:
    """The position id of a token: any number."""
    return apply(POSITION_FUNCTION, row, token)


def sees_within_document(row: Term, query: Term, key: Term) -> Formula:
    """A mask within documents: each token sees itself, and any tokens of its document."""
    own = equal(document(row, query), document(row, key))
    return own & (equal(query, key) | holds("sees", row, query, key))


Place = Callable[[Term, Term], Formula]  # (row, token) -> a formula
REAL_TOKENS: dict[str, Place] = {MASK: is_real, RIGHT_MASK: is_real_on_the_left}  # by the role of a mask
MASKS_IN_WORDS = {MASK: "every attention mask", RIGHT_MASK: "every attention mask with pads on the right"}


@dataclass(frozen=True)
class PrefixSum:
    """A function of a statement that counts tokens.

    Attributes:
        counted: The tokens that are counted.
        total: The number of them in a row up to a token.

    """

    counted: Place
    total: Callable[[Term, Term], Term]


def begins_document(row: Term, token: Term) -> Formula:
    """The position ids do not go on from the token before: a document begins."""
    goes_on = equal(position(row, token) - position(row, token + -1), 1)
    return conjunction(at_most(1, token), negation(goes_on))


DOCUMENTS_BY_POSITIONS = PrefixSum(begins_document, document)


@dataclass(frozen=True)
class Statement:
    """A law of two runs of an open graph.

    Attributes:
        given: Where the inputs of both runs agree.
        shown: Where the outputs have to agree.
        parts: (row, token) -> the formulas of which facts between inputs and outputs consist.
        premises: What holds of its symbols.
        covers: What the statement holds for, besides sizes and weights: "every attention mask".
        per_token: Both runs agree in tokens, not in rows as a whole.
        pooled: The token of which `shown` holds where outputs without tokens have to agree; they are not compared
            where it is None.
        prefix_sums: Functions of the statement that count tokens.

    """

    given: Place
    shown: Place
    parts: Callable[[Term, Term], Sequence[Formula]]
    premises: tuple[Formula, ...] = ()
    covers: tuple[str, ...] = ()
    per_token: bool = True
    pooled: Term | None = None
    prefix_sums: tuple[PrefixSum, ...] = ()

    def simplified(self, replaced: Callable[[Formula], Formula]) -> Statement:
        """The statement with a simpler formula for each of its own."""
        return replace(
            self,
            given=lambda row, token: replaced(self.given(row, token)),
            shown=lambda row, token: replaced(self.shown(row, token)),
            parts=lambda row, token: [replaced(part) for part in self.parts(row, token)],
            premises=tuple(map(replaced, self.premises)),
        )

    def candidates(self, indices: Sequence[tuple[Term, Term]]) -> list[Formula]:
        """Formulas over indices (index, size of its axis), of which those of facts are made."""
        no_row, no_token = variable("no row"), variable("no token")
        rows = [i for i, size in indices if size is BATCH] or [no_row]
        others = [] if self.pooled is None or self.pooled.is_constant else [self.pooled]
        tokens = [*dict.fromkeys(token_places(indices)), *others] or [no_token]
        found = dict.fromkeys(part for token in tokens for row in rows for part in self.parts(row, token))
        unknown = no_row.variables | no_token.variables
        return [formula for formula in found if formula.variables.isdisjoint(unknown)]


def token_places(indices: Sequence[tuple[Term, Term]]) -> Iterator[Term]:
    """The tokens that indices (index, size of its axis) may stand for.

    An axis may be longer than the tokens by a constant, its first elements or its last. Chunks of tokens have an axis
    of chunks and one within a chunk; without the second, a chunk stands for its first token, its last one, or the one
    before it.
    Those that come first are the least, so that the formulas made of them are the weakest.
    """
    for place, size in indices:
        more = size - TOKENS
        if more.is_constant:
            yield from sorted((place, place - more.constant), key=lambda term: term.constant)
        chunks = chunk_axis(size)
        if chunks is not None:
            width, more_chunks = chunks
            within = [inner for inner, own in indices if own.is_constant and own.constant == width]
            for first in ((place - more_chunks) * width, place * width):
                yield from (first - 1, *([first + inner for inner in within] or [first]), first + (width - 1))


def chunk_axis(size: Term) -> tuple[int, int] | None:
    """The width of the chunks of tokens that an axis of this size counts, and how many more it has; None without."""
    pairs = size - TOKENS  # the tokens less half of them, rounded down: pairs of `n + n % 2` tokens
    if len(pairs.summands) == 1 and pairs.summands[0] == (floor_division(TOKENS, 2).summands[0][0], -1):
        return 2, pairs.constant
    if len(size.summands) != 1:
        return None
    atom, factor = size.summands[0]
    if not isinstance(atom, FloorDivision):
        return None
    divided, width = atom.parts
    return (width, size.constant) if (divided - TOKENS * factor).is_constant and abs(factor) == 1 else None


@dataclass(frozen=True)
class Equivariance:
    """f(P X) = P f(X) for every permutation P of the tokens, and of everything that the call receives for each of them.

    Attributes:
        covers: What the statement holds for, besides sizes and weights.

    """

    covers: tuple[str, ...] = ()
