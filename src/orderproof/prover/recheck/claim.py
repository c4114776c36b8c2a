"""A fact as a certificate claims it, with the kind of each bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orderproof.prover.recheck.algebra import FactAlgebra
from orderproof.prover.recheck.fact import INDEPENDENT, INF, ORDINARY_LIMIT, Array, Fact
from orderproof.prover.recheck.reading import decode_array, require
from orderproof.prover.recheck.relations import Relation

# Kinds of claim about the value of an element:
ORDINARY = 0  # an ordinary number
EXACT = 1  # exactly this value
MASKING = 2  # at most this value, which is low enough to mask
UNBOUNDED = 3  # any value
AT_MOST_ORDINARY = 4  # an ordinary number, or any lower one


@dataclass(frozen=True)
class Claim:
    """A claimed fact, and the kind of its claim about the value of each element."""

    fact: Fact
    status: Array  # ORDINARY, EXACT, MASKING, UNBOUNDED or AT_MOST_ORDINARY; each dimension full or 1


def read_claim(data: Mapping[str, Any], shape: Sequence[int], dtype: str, relation: Relation) -> Claim:
    """A claim from a certificate, for a tensor of this shape and dtype. Raises `CertificateError`."""
    moves = tuple(relation.normal_move(move, size) for move, size in zip(data["moves"], shape, strict=True))
    dependence = decode_array(data["dependence"], shape, "i")
    require((dependence >= INDEPENDENT).all(), "a dependence is below -1")
    zero = {"shape": [1] * len(shape), "runs": [[0, 1]]}
    known = data["known"] or {"status": zero, "value": zero}
    status, value = decode_array(known["status"], shape, "i"), decode_array(known["value"], shape)
    require("float" in dtype or (status != MASKING).all(), "an integer or boolean is claimed to be masked")
    ordinary_low, least, greatest = (0, 0, 1) if dtype == "bool" else (-1, -INF, INF)
    low = np.choose(status, [ordinary_low, value, least, least, least])
    high = np.choose(status, [1, value, value, greatest, 1])
    return Claim(Fact(tuple(shape), dtype, moves, dependence, low, high), status)


def check_claim(algebra: FactAlgebra, claim: Claim, derived: Fact) -> Fact:
    """The fact that later steps may use: the claimed one, if it follows from the derived one.

    For a constant it is the derived one. Raises `CertificateError` if the claim does not follow.
    """
    claimed = claim.fact
    same_type = (claimed.shape, claimed.dtype) == (derived.shape, derived.dtype)
    require(same_type, f"its result is {derived.dtype} {list(derived.shape)}")
    dependence = algebra.dependence_under(derived, claimed.moves)
    require(
        (claimed.dependence >= dependence).all(),
        "an element may depend on more than is claimed, or moves differently",
    )
    if derived.constant_value is None:
        derived = replace(derived, moves=claimed.moves, dependence=dependence)
    if derived.is_constant and not claim.status.any():
        return derived
    exact = (derived.low == claimed.low) & (derived.high == claimed.high)
    # Room for rounding and for one ordinary number: more would accumulate from step to step.
    room = np.where(np.isinf(claimed.high), 0, 2 - 1e-6 * claimed.high)
    masked = (derived.high <= claimed.high + room) & (claimed.high <= claimed.masking_threshold)
    at_most_ordinary = derived.high < ORDINARY_LIMIT
    follows = np.choose(claim.status, [derived.is_ordinary, exact, masked, True, at_most_ordinary])
    require(follows.all(), "a value is claimed to be known, masked or ordinary, and need not be")
    return derived if derived.is_constant else claimed
