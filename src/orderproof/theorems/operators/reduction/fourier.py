"""Fourier transforms: each number is computed from all elements along the transformed dimensions.

Lemma. Let C[i, k] = sum_j w[k, j] A[i, j].
  1. C[i, k] agrees in both runs where all A[i, j] do.
  2. No rule says more of tensors that move: along j the weights tell the elements apart.

Machine-checked (proofs/symbolic/steps.v): reduction_step.
"""

from __future__ import annotations

from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.operators.reduction.reduction import from_whole_rows
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

FOURIER = (
    "fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_fft2", "fft_ifft2", "fft_fftn", "fft_ifftn", "fft_rfftn",
    "fft_irfftn",
)  # fmt: skip


TRANSFORMS = operators(*FOURIER)


@TRANSFORMS.open
def fourier(call: OpenOperation) -> OpenFact | tuple[OpenFact, ...]:
    """Fourier transforms: each result is computed from all elements along the transformed dimensions."""
    rank = len(call.operand.dims)
    given = call.argument(2, "dim", [-2, -1] if call.name.endswith("2") else None if call.name.endswith("n") else -1)
    if given is None:
        raise NotCovered("a Fourier transform of dimensions that are not named")
    dims = given if isinstance(given, list | tuple) else [given]
    return from_whole_rows(call, call.operand, [int(d) % rank for d in dims])
