"""Inverse Fourier transforms: a product of transforms is the transform of a circular convolution.

Lemma (convolution_theorem). Let F be the Fourier transform of rows with n places, X = F(x) and Y = F(y).
  1. The inverse of X Y at i is z[i] = sum_j x[j] y[(i - j) mod n]. It depends on what x[j] and y[(i - j) mod n] depend
     on, for those j where neither is zero. Of rows with L and K places and zeros behind them, z[i] reads x[0] to x[i]
     for i < L, if n >= L + K - 1: the convolution is causal. If n is smaller, the end of x enters the beginning of z.
  2. The inverse of X + Y, or of X with a real factor for each row, reads x[i] and y[i] at i. Conjugation reverses a
     real row: y[(j - i) mod n] in place of y[(i - j) mod n].
  3. The inverse of anything else reads whole rows (dense_dependence).
Proof. F is linear, F(z) = F(x) F(y), and the inverse of F(z) is z.
Arithmetic: over the reals. In floating point every element of z has a rounding error of the size of the largest element
of the row, so a later token changes an earlier output by rounding: an assumption, which the proof lists.
Machine-checked (proofs/rules/slicewise_lemma.v): dense_dependence.
Not machine-checked: the convolution theorem; floating point.
"""

from __future__ import annotations

import numpy as np

from orderproof.diagnosis.domain.fact import Fact
from orderproof.diagnosis.domain.spectrum import EXACT_TRANSFORMS_ASSUMPTION
from orderproof.diagnosis.rule import OperatorCall, rule
from orderproof.diagnosis.rules.slicewise import transform_of_whole_rows
from orderproof.diagnosis.spectra import rows_of_inverse


@rule("convolution_theorem", "fft_irfft", "fft_ifft")
def inverse_transform(call: OperatorCall) -> Fact:
    """The rows of a spectrum, place by place."""
    whole = transform_of_whole_rows(call)
    rows = rows_of_inverse(call, whole)
    if rows is None or not whole.has_no_moves or not (rows < whole.dependence).any():
        return whole
    call.assume(EXACT_TRANSFORMS_ASSUMPTION)
    return Fact(whole.shape, whole.moves, np.minimum(rows, whole.dependence), whole.ranges)
