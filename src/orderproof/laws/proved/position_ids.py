"""OP104 position_ids: equivariance to joint permutations of the tokens and their position ids.

    f(P X, P p) = P f(X, p) for every permutation P.

Then order enters only through the position ids; the index at which a token is stored has no effect. A causal model gets
its mask as an input, which is permuted on both axes, P M P^T, so that each token attends to the same tokens as before.
Source: elementary; Lee et al. 2019, "Set Transformer", arXiv:1810.00825, for the part without positions.
"""

from __future__ import annotations

from orderproof.laws.proved.proved_law import EquivarianceLaw
from orderproof.permutations import symmetric_generators

LAW = EquivarianceLaw(
    code="OP104",
    name="position_ids",
    statement="Permuting tokens and position ids together permutes the outputs in the same way.",
    trait="uses order through position ids only",
    trait_if="holds",
    kind="property",
    expectation={},
    call_modes=("labelled",),
    generators=symmetric_generators,
)
