"""OP101 permutation: permutation equivariance of per-token outputs, permutation invariance of pooled outputs.

    f(P X) = P f(X) for a per-token output,  f(P X) = f(X) for a pooled output,  for every permutation P.

A transposition and a cycle generate all permutations, so two relations decide all n! orders. Self-attention without
positions is permutation-equivariant: softmax(P S P^T) = P softmax(S) P^T. A language model must not be.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5; Zaheer et al. 2017,
"Deep Sets", arXiv:1703.06114.
"""

from __future__ import annotations

from orderproof.laws.proved.proved_law import EquivarianceLaw
from orderproof.permutations import symmetric_generators
from orderproof.records.audit import Remedy

LAW = EquivarianceLaw(
    code="OP101",
    name="permutation",
    statement="A permutation of the tokens permutes the outputs in the same way, or leaves pooled outputs unchanged.",
    trait="sees token order",
    trait_if="fails",
    kind="property",
    expectation={"encoder": "fails", "causal_lm": "fails", "vision": "fails"},
    remedies={
        "fails": Remedy(
            text="Give the model positions: add them to embeddings, rotate queries and keys, or add a bias to scores.",
            diff="-x = embed(tokens)\n+x = embed(tokens) + embed_position(position_ids)",
        )
    },
    generators=symmetric_generators,
    maps_entries=True,
)
