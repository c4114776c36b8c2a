"""The statements of the laws, for all lengths: where the inputs of two runs agree, and where the outputs must.

Row x0 and token x1 of an input; `mask(x0, x1)` marks a real token, `document(x0, x1)` is the document of a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderproof_recheck.facts import FLOATS, INTEGER_LIMITS, Axes, Cases, Fact, Predicates, axis, index, known
from orderproof_recheck.logic.formulas import (
    TRUE,
    Every,
    Formula,
    at_most,
    equal,
    every,
    holds,
    if_else,
    less,
    opposite,
    some,
)
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Term, apply, integer, variable

TOKENS, BATCH = variable("tokens"), variable("batch")
MASK, POSITIONS, BLOCKS, DOCUMENTS = "attention_mask", "position_ids", "block_mask", "document_ids"
RIGHT_MASK = "right_padding_mask"  # an attention mask with pads on the right
TOKEN_INPUT, ROW_INPUT, FIXED = "tokens", "rows", "fixed"
LEAST_SIZE = 2
MOST_NEGATIVE = {
    "float16": -65504.0, "bfloat16": -3.3895313892515355e38, "float32": -3.4028234663852886e38,
    "float64": -1.7976931348623157e308,
}  # fmt: skip
LENGTH = "number of real tokens"
FUNCTIONS = frozenset({"mask", "document", "sees", "position", "document_id", LENGTH})
ROW, TOKEN = index(0), index(1)
REAL = holds("mask", ROW, TOKEN)
REAL_ON_THE_LEFT = less(TOKEN, apply(LENGTH, ROW))
REAL_OF = {MASK: REAL, RIGHT_MASK: REAL_ON_THE_LEFT}
MASK_TEXTS = {MASK: "every attention mask", RIGHT_MASK: "every attention mask with pads on the right"}
REAL_TOKEN = variable("real token")  # any token: what is proved where it is real holds in each row with a real token
_AT_REAL_TOKEN = Replacement({axis(1): REAL_TOKEN})


@dataclass(frozen=True)
class Statement:
    """A law of two runs."""

    given: Formula  # the inputs agree; over ROW and TOKEN
    shown: Formula  # the outputs must agree; over ROW and TOKEN
    premises: tuple[Formula, ...] = ()
    symbols: tuple[str, ...] = ()  # variables of the statement besides the sizes
    covers: tuple[str, ...] = ()  # in words
    per_token: bool = True
    pooled: Term | None = None  # outputs without tokens agree where `shown` holds of this token
    counted: Formula | None = None  # `document` counts, over TOKEN, the tokens up to one for which this holds
    permuted: bool = False  # run 2 has the tokens of run 1 in another order, and nothing else is said


@dataclass(frozen=True)
class UniformInputs:
    """Shared inputs that do not distinguish the tokens of a row: `element` holds for all indices within `sizes`."""

    element: Formula
    sizes: Axes


def find_statement(law: str, code: str, shared: Sequence[str]) -> Statement:
    """The statement of a law for a call with these shared inputs. Raises `CertificateError`."""
    found = STATEMENTS.get((code, law, tuple(shared)))
    require(found is not None, "its law has no such statement")
    assert found is not None
    return found


def _permuted(*covers: str) -> Statement:
    """f(P X) = P f(X) for every permutation, from which a law of some permutations follows."""
    return Statement(TRUE, TRUE, covers=covers, permuted=True)


_EVERY_ORDER = "every permutation of the tokens"
_CUT, _ROW, _DOCUMENT = variable("cut"), variable("row"), variable("own document")
_BEFORE = less(TOKEN, _CUT)
_IN_CUT = (at_most(0, _CUT), at_most(_CUT, TOKENS))
_SAME_ROW = equal(ROW, _ROW)
_IN_ROWS = (at_most(0, _ROW), less(_ROW, BATCH))
_OWN = equal(apply("document", ROW, TOKEN), _DOCUMENT)
_SAME_ID = equal(apply("document_id", ROW, TOKEN), _DOCUMENT)
_BEGINS = every(
    at_most(1, TOKEN),
    opposite(equal(apply("position", ROW, TOKEN) - apply("position", ROW, TOKEN - 1), 1)),
)

_EVERY_LAYOUT = ("every layout of documents",)
_WITHIN_BLOCKS = Statement(
    _OWN,
    _OWN,
    (),
    ("own document",),
    ("every layout of documents", "every mask within documents that shows each token itself"),
)

STATEMENTS: dict[tuple[str, str, tuple[str, ...]], Statement] = {
    ("OP201", "causal", ()): Statement(_BEFORE, _BEFORE, _IN_CUT, ("cut",)),
    **{
        ("OP201", "causal", (mask,)): Statement(
            _BEFORE, every(_BEFORE, real), _IN_CUT, ("cut",), (f"{MASK_TEXTS[mask]} (at its real tokens)",)
        )
        for mask, real in REAL_OF.items()
    },
    **{
        ("OP202", "padding", (mask,)): Statement(
            real, every(real, _AT_REAL_TOKEN.formula(real)), (at_most(0, REAL_TOKEN), less(REAL_TOKEN, TOKENS)),
            ("real token",), (MASK_TEXTS[mask],), pooled=REAL_TOKEN,
        )
        for mask, real in REAL_OF.items()
    },
    ("OP203", "packing", (POSITIONS, BLOCKS)): _WITHIN_BLOCKS,
    **{
        ("OP203", "packing", shared): Statement(_SAME_ID, _SAME_ID, (), ("own document",), _EVERY_LAYOUT)
        for shared in ((DOCUMENTS,), (POSITIONS, DOCUMENTS))
    },
    ("OP203", "packing", (BLOCKS,)): _WITHIN_BLOCKS,
    ("OP203", "packing", (POSITIONS,)): Statement(
        _OWN, _OWN, (), ("own document",), ("every layout of documents as runs of consecutive position ids",),
        counted=_BEGINS,
    ),
    ("OP204", "batch", ()): Statement(
        _SAME_ROW, _SAME_ROW, _IN_ROWS, ("row",), per_token=False, pooled=integer(0)
    ),
    **{
        ("OP204", "batch", (mask,)): Statement(
            _SAME_ROW, _SAME_ROW, _IN_ROWS, ("row",), (text,), per_token=False, pooled=integer(0)
        )
        for mask, text in MASK_TEXTS.items()
    },
    ("OP101", "permutation", ()): _permuted(_EVERY_ORDER),
    ("OP102", "prompt_permutation", ()): _permuted(),
    ("OP103", "reversal", ()): _permuted(),
    ("OP104", "position_ids", (POSITIONS,)): _permuted(_EVERY_ORDER, "all position ids"),
    ("OP104", "position_ids", (POSITIONS, BLOCKS)): _permuted(
        _EVERY_ORDER, "all position ids", "every mask [query, key]"
    ),
}  # fmt: skip


UNIFORM = {
    "everything_real": UniformInputs(REAL, (BATCH, TOKENS)),
    "everything_real_on_the_left": UniformInputs(REAL_ON_THE_LEFT, (BATCH, TOKENS)),
    # No token up to the last one begins a document, so all are of document 0.
    "one_document": UniformInputs(equal(apply("document", ROW, TOKENS - 1), 0), (BATCH,)),
}


def for_inputs(formula: Formula, uniform: str | None) -> Formula:
    """A formula of a statement for uniform inputs of a kind."""
    if isinstance(formula, Every):
        return every(*(for_inputs(part, uniform) for part in formula.fields[0]))
    if uniform is not None and formula in (UNIFORM[uniform].element, _AT_REAL_TOKEN.formula(UNIFORM[uniform].element)):
        return TRUE
    if uniform == "one_document" and formula is _OWN:
        return equal(_DOCUMENT, 0)
    return formula


def input_fact(claim: Fact, role: str, statement: Statement, uniform: str | None) -> Fact:
    """The fact about an input, by its role. Raises `CertificateError`."""
    axes, dtype = claim.axes, claim.dtype
    if role == FIXED:
        return Fact(axes, dtype, Predicates())
    least = 3 if role == BLOCKS else 2
    if role == ROW_INPUT:
        require(len(axes) >= 1 and axes[0] == (BATCH,), "an input has no dimension of rows")
        require(not statement.per_token, "the law is not about rows only")
        return Fact(axes, dtype, Predicates(same=for_inputs(statement.given, uniform)))
    require(len(axes) >= least and axes[0] == (BATCH,), "an input has no dimension of rows")
    if role != BLOCKS:
        require(axes[1] == (TOKENS,), "an input has no dimension of tokens")
    if role == TOKEN_INPUT:
        return Fact(axes, dtype, Predicates(same=for_inputs(statement.given, uniform)))
    if role in REAL_OF:
        require(len(axes) == 2, "an attention mask has two dimensions")
        real = for_inputs(REAL_OF[role], uniform)
        if dtype == "bool":
            return known(axes, dtype, real)
        require(dtype in INTEGER_LIMITS, "an attention mask of another dtype")
        return known(axes, dtype, if_else(real, integer(1), integer(0)))
    if role == POSITIONS:
        require(len(axes) == 2 and dtype in INTEGER_LIMITS, "position ids of another shape or dtype")
        return known(axes, dtype, apply("position", ROW, TOKEN))
    if role == DOCUMENTS:
        require(len(axes) == 2 and dtype in INTEGER_LIMITS, "document ids of another shape or dtype")
        return known(axes, dtype, apply("document_id", ROW, TOKEN))
    require(role == BLOCKS and axes == ((BATCH,), (), (TOKENS,), (TOKENS,)), "an input has an unknown role")
    require(dtype in FLOATS, "a block mask of another dtype")
    seen = _seen(index(0), index(1), index(2))
    return known(axes, dtype, Cases(((seen, 0.0), (opposite(seen), MOST_NEGATIVE[dtype]))))


def _seen(row: Term, query: Term, key: Term) -> Formula:
    """A token sees itself, and any tokens of its document."""
    own = equal(apply("document", row, query), apply("document", row, key))
    return every(own, some(equal(query, key), holds("sees", row, query, key)))
