"""Every registered encoding in a small transformer obeys the measured laws of positions as its claims say."""

from __future__ import annotations

import math

import pytest

from orderproof import encodings
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.fingerprint import fingerprint_model
from orderproof.blocks.transformer_adapter import TransformerAdapter
from orderproof.encodings import Claims
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.records.audit import Verdict
from tests.pairs import pairs_soon

LENGTH = {"dino_v3": 64}  # it stretches its waves over the picture: in a larger one steps are small
USUAL = 400  # tables have so many rows, and pictures so many patches
BY_TOKENS = {"none", "cope", "forgetting", "path"}  # what they do follows the order of the tokens, not position ids
DIAGONAL = {"lie"}  # positions here are equal on all axes, and along one line its rotations add up

ROUNDED = {"grape"}  # its frequencies are weights, which bfloat16 rounds before any angle is worked out

MEASURED = ("position_shift", "distinct_positions", "position_precision", "context_length", "ignored_arguments")
CAUSAL_ONLY = {name for name in encodings.names() if fingerprint_model(name, causal=True).encoding.claims.causal_only}


def wanted(law: str, name: str, claims: Claims) -> Verdict:
    """What the claims of an encoding say of a law."""
    if name in BY_TOKENS:
        return {"ignored_arguments": "refuted", "context_length": "not_applicable"}.get(law, "undecided")  # type: ignore[return-value]
    if law == "position_precision" and name in ROUNDED:
        return "refuted"
    if law == "position_shift":
        return "held" if claims.relative or name in DIAGONAL else "refuted"
    return "not_applicable" if law == "context_length" and claims.max_position is None and claims.ndim != 2 else "held"


@pytest.mark.parametrize(
    ("name", "causal", "law"),
    pairs_soon(encodings.names(), (True, False), MEASURED, allowed=lambda n, causal, _: causal or n not in CAUSAL_ONLY),
)
def test_encoding_obeys_the_laws_that_its_claims_imply(name: str, causal: bool, law: str) -> None:
    block = fingerprint_model(name, causal=causal, length=LENGTH.get(name, USUAL))
    driver = TransformerAdapter(block, causal=causal)
    if block.encoding.claims.ndim == 2:
        driver.max_positions = driver.max_positions or math.isqrt(USUAL)  # a picture, walked along its diagonal
    found = measure_law(driver, find_law(law), CachedCalls(driver), kind="encoding")  # type: ignore[arg-type]
    assert found.verdict == wanted(law, name, block.encoding.claims), found.reason
