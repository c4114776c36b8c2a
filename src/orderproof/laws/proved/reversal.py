"""OP103 reversal: equivariance to the reversal of the tokens.

    f(R X) = R f(X) for a per-token output,  f(R X) = f(X) for a pooled output,  R the reversal.

A bias that depends only on the distance |i - j| (ALiBi in an encoder) breaks permutation equivariance but not this law:
such a model gives a sentence and its reverse the same pooled output. One that reads a fixed token, as [CLS], need not.
Source: Press et al. 2022, "Train Short, Test Long", arXiv:2108.12409 (the bias); the law is elementary.
"""

from __future__ import annotations

from orderproof.laws.proved.proved_law import EquivarianceLaw
from orderproof.permutations import reversal
from orderproof.records.audit import Remedy

LAW = EquivarianceLaw(
    code="OP103",
    name="reversal",
    statement="Reversing the tokens reverses the outputs (per token) or leaves them unchanged (pooled).",
    trait="tells a sequence from its reverse",
    trait_if="fails",
    kind="property",
    expectation={"encoder": "fails", "causal_lm": "fails", "vision": "fails"},
    remedies={
        "fails": Remedy(
            text="Give the model positions that distinguish before from after: distances without a sign do not.",
            diff="-bias = slope * (position - other).abs()\n+bias = slope * (position - other)",
        )
    },
    generators=lambda n: (reversal(n),),
)
