"""OP102 prompt_permutation: the output at the last token is invariant to permutations of the tokens before it.

    f(P X)_n = f(X)_n for every permutation P with P(n) = n.

The law holds for a single causal layer without positions, because the last row of the mask is uniform. It fails for two
layers: after the first one, each token depends on the number of tokens before it.
Source: Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization in Transformers",
arXiv:2305.19466, theorem 1 (causal layers without positions can recover them).
"""

from __future__ import annotations

from orderproof.laws.proved.proved_law import EquivarianceLaw
from orderproof.permutations import symmetric_generators
from orderproof.records.audit import Remedy

LAW = EquivarianceLaw(
    code="OP102",
    name="prompt_permutation",
    statement="Permuting all tokens but the last leaves the output at the last token unchanged.",
    trait="sees the order of the prompt",
    trait_if="fails",
    kind="property",
    expectation={"encoder": "fails", "causal_lm": "fails", "vision": "any"},
    remedies={
        "fails": Remedy(
            text="Give the model positions: add them to embeddings, rotate queries and keys, or add a bias to scores.",
            diff="-x = embed(tokens)\n+x = embed(tokens) + embed_position(position_ids)",
        )
    },
    generators=lambda n: symmetric_generators(n, n - 1),
    last_token_only=True,
)
