"""A fact as a certificate claims it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.fact import INDEPENDENT, INF, Array, Fact
from orderproof.recheck.reading import decode_array, require
from orderproof.recheck.relations import Relation


def read_claim(data: Mapping[str, Any], shape: Sequence[int], dtype: str, relation: Relation) -> Fact:
    """A claim from a certificate, for a tensor of this shape and dtype. Raises `CertificateError`."""
    moves = tuple(relation.normal_move(move, size) for move, size in zip(data["moves"], shape, strict=True))
    dependence = decode_array(data["dependence"], shape, "i")
    require((dependence >= INDEPENDENT).all(), "a dependence is below -1")
    ends = data["values"] or {"low": ordinary_end(shape, -1), "high": ordinary_end(shape, 1)}
    low, high = (decode_array(ends[end], shape).astype(float) for end in ("low", "high"))
    for end in (low, high) if "int" in dtype else ():
        require((~np.isfinite(end) | (abs(end) < 2**53)).all(), "an integer is claimed that float64 does not hold")
    low, high = np.where(np.isnan(low), -INF, low), np.where(np.isnan(high), INF, high)
    if dtype == "bool":
        low, high = np.maximum(low, 0), np.minimum(high, 1)
    return Fact(tuple(shape), dtype, moves, dependence, low, high)


def ordinary_end(shape: Sequence[int], end: int) -> dict[str, Any]:
    """An end of the interval of ordinary numbers, as a certificate writes it."""
    return {"shape": [1] * len(shape), "runs": [[end, 1]]}


def claims_no_value(claimed: Fact) -> Array:
    """Elements of which the claim says at most that they are ordinary."""
    least = 0 if claimed.dtype == "bool" else -1
    ordinary = (claimed.low == least) & (claimed.high == 1)
    nothing: Array = ordinary | ((claimed.low == -INF) & (claimed.high == INF))
    return nothing


def check_claim(algebra: FactAlgebra, claimed: Fact, derived: Fact) -> Fact:
    """The fact that later steps may use: the claimed one, if it follows from the derived one.

    For a constant it is the derived one. Raises `CertificateError` if the claim does not follow.
    """
    same_type = (claimed.shape, claimed.dtype) == (derived.shape, derived.dtype)
    require(same_type, f"its result is {derived.dtype} {list(derived.shape)}")
    dependence = algebra.dependence_under(derived, claimed.moves)
    require(
        (claimed.dependence >= dependence).all(),
        "an element may depend on more than is claimed, or moves differently",
    )
    if derived.constant_value is None:
        derived = replace(derived, moves=claimed.moves, dependence=dependence)
    if derived.is_constant and claims_no_value(claimed).all():
        return derived
    equal = (derived.low == claimed.low) & (derived.high == claimed.high)
    above = _is_at_most(0.0 - derived.low, -claimed.low, derived)
    below = _is_at_most(derived.high, claimed.high, derived)
    follows = equal | ((claimed.low < claimed.high) & above & below)
    require(follows.all(), "a value is claimed to be known, masked or ordinary, and need not be")
    return derived if derived.is_constant else claimed


def _is_at_most(end: Array, claimed: Array, fact: Fact) -> Array:
    """True where a derived upper end is at most a claimed one. An end stands for itself up to an ordinary number."""
    ordinary = (claimed >= 1) & (end < fact.ordinary_limit)
    # Room for rounding and for one ordinary number: more would accumulate from step to step.
    room = np.where((abs(claimed) >= fact.ordinary_limit) & (abs(claimed) < INF), 2 + 1e-6 * abs(claimed), 0)
    at_most: Array = ordinary | (end <= claimed + room)
    return at_most
