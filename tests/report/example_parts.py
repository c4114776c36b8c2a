"""Parts of the reports for tests: sentences, proof steps, entries and attention maps."""

from __future__ import annotations

from collections import Counter

from orderproof.records.audit import AttentionMap, Entry, Proof, ProofStep, Scope, SentenceDistance, SentencePair

SENTENCE = ("[CLS]", "the", "cat", "chased", "the", "dog", "[SEP]")
REVERSED = ("[CLS]", "the", "dog", "chased", "the", "cat", "[SEP]")
LAYER = (
    ("attention.self.query", "aten.linear.default", "contraction_equivariant"),
    ("attention.self", "aten.view.default", "movement_factored"),
    ("attention.self", "aten.transpose.int", "movement_factored"),
    ("attention.self.key", "aten.linear.default", "contraction_equivariant"),
    ("attention.self.value", "aten.linear.default", "contraction_equivariant"),
    ("attention.self", "aten.scaled_dot_product_attention.default", "attention_equivariant"),
    ("attention.output.dense", "aten.linear.default", "contraction_equivariant"),
    ("attention.output", "aten.add.Tensor", "pointwise_equivariant"),
    ("attention.output.LayerNorm", "aten.layer_norm.default", "fibre_equivariant"),
    ("intermediate.dense", "aten.linear.default", "contraction_equivariant"),
    ("intermediate.intermediate_act_fn", "aten.gelu.default", "pointwise_equivariant"),
    ("output.dense", "aten.linear.default", "contraction_equivariant"),
    ("output", "aten.add.Tensor", "pointwise_equivariant"),
    ("output.LayerNorm", "aten.layer_norm.default", "fibre_equivariant"),
)
LEMMAS = {
    "contraction_equivariant": "a permutation that acts on both sides of a sum disappears",
    "pointwise_equivariant": "operands moved in the same way move the result in that way",
    "fibre_equivariant": "what acts along whole fibres does not see where they stand",
}


def layered_steps(layers: int, prefix: str = "encoder.layer") -> tuple[ProofStep, ...]:
    """A proof through identical layers."""
    head = ProofStep(
        node="embedding",
        operator="aten.embedding.default",
        lemma="lookup_moves_as_index",
        fact="dimension 1 moves by g",
        module="embeddings.word_embeddings",
        source="modeling_bert.py:98",
    )
    steps = [head]
    for layer in range(layers):
        for i, (module, operator, lemma) in enumerate(LAYER):
            steps.append(
                ProofStep(
                    node=f"n{layer}_{i}",
                    operator=operator,
                    lemma=lemma,
                    fact="dimension 1 moves by g",
                    module=f"{prefix}.{layer}.{module}",
                    source=f"modeling_bert.py:{140 + i}",
                )
            )
    return tuple(steps)


def proof(steps: tuple[ProofStep, ...]) -> Proof:
    lemmas = dict(Counter(step.lemma for step in steps))
    return Proof(step_count=len(steps), lemma_counts=lemmas, steps=steps, graph_fingerprint="sha256:0f3a")


def heat_map(title: str, tokens: tuple[str, ...]) -> AttentionMap:
    n = len(tokens)
    weights = [[1.0 + (3 * i + 5 * j) % 7 for j in range(n)] for i in range(n)]
    values = tuple(tuple(w / sum(row) for w in row) for row in weights)
    return AttentionMap(title=title, query_tokens=tokens, key_tokens=tokens, weights=values)


SWAP = SentencePair(
    first="the cat chased the dog",
    second="the dog chased the cat",
    tokens_first=SENTENCE,
    tokens_second=REVERSED,
    distances=(
        SentenceDistance(condition="with positions", dtype="float32", cosine=0.99087, max_abs_difference=0.0213),
        SentenceDistance(condition="without positions", dtype="float32", cosine=0.99999994, max_abs_difference=2.1e-07),
        SentenceDistance(condition="without positions", dtype="float64", cosine=1.0, max_abs_difference=3.3e-16),
    ),
)
ENTRY = Entry(
    kind="constant",
    operator="aten.add.Tensor",
    module="embeddings",
    source="modeling_bert.py:104",
    source_line="        embeddings = embeddings + position_embeddings",
    origin="embedding of arange by embeddings.position_embeddings.weight",
    reason="the constant differs along dimension 1, which the law moves",
)
SCOPE = Scope(length=7, assumptions=("real arithmetic", "finite activations", "the recorded length, 7"))
