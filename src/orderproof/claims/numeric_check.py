"""Numeric checks, in float64.

A difference between two runs far above rounding refutes an equality: one example is sufficient, like a witness of the
prover. Agreement up to rounding is not a proof; such a check is at most *shown*.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.claims.claim import CheckOutcome
from orderproof.records.audit import Deviation
from orderproof.records.claims import ClaimVerdict
from orderproof.report import phrases

ROUNDING_TOLERANCE = 1e-11  # relative, in float64, for a few layers of small width
REFUTATION_TOLERANCE = 1e-6  # relative, in float64, far above rounding


def max_relative_difference(first: Tensor, second: Tensor) -> float:
    """The largest absolute difference, relative to the largest absolute value of the first."""
    return float((first - second).abs().max() / first.abs().max())


def classify_difference(difference: float, evidence: tuple[str, ...]) -> CheckOutcome:
    """`shown` for a relative difference up to rounding, `refuted` far above it, else `undecided`."""
    verdict: ClaimVerdict = (
        "shown"
        if difference <= ROUNDING_TOLERANCE
        else "refuted"
        if difference >= REFUTATION_TOLERANCE
        else "undecided"
    )
    return CheckOutcome(verdict=verdict, method="numbers", evidence=evidence, deviation=Deviation(float64=difference))


def swap_first_rows(x: Tensor) -> Tensor:
    """The tokens with the first two swapped."""
    return x[:, [1, 0, *range(2, x.shape[1])]]


@torch.no_grad()
def output_unchanged(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that swapping two rows of the input leaves the output unchanged."""
    module, x = build_subject_float64(make_subject)
    first, second = module(x), module(swap_first_rows(x))
    difference = max_relative_difference(first, second)
    index = tuple(int(i) for i in torch.unravel_index((first - second).abs().argmax(), first.shape))
    before, after = (phrases.format_number(float(output[index])) for output in (first, second))
    lines = (
        f"rows 0 and 1 swapped: the output differs by {phrases.format_difference(difference)}",
        f"output{list(index)}: {before} before, {after} after",
    )
    return classify_difference(difference, lines)


def build_subject_float64(make_subject: SubjectFactory) -> tuple[nn.Module, Tensor]:
    """The module and its first example input, in float64 if they are floating-point."""
    module, (x, *_) = build_subject(make_subject)
    return module.double(), x.double() if x.is_floating_point() else x


def build_subject(make_subject: SubjectFactory) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The module and its example inputs."""
    module, inputs = make_subject()
    return module.eval(), inputs if isinstance(inputs, tuple) else (inputs,)
