"""Reports made by hand: one as the bundled model gives it, one hostile, one with a huge proof."""

from __future__ import annotations

from collections import Counter
from typing import Any

from orderproof.record import (
    Completion,
    Deviation,
    Entry,
    Finding,
    HeatMap,
    Measurement,
    Proof,
    Report,
    Scope,
    Step,
    SubjectRecord,
    Swap,
    SwapRow,
    TrialRecord,
    Witness,
)

HOSTILE = '<script>alert("x")</script>&amp;]]>--><img src=x onerror=alert(1)>\x1b[31m\u202e[bold]{{ 7 * 7 }}'
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
    "pointwise_equivariant": "operands moved alike move the result alike",
    "fibre_equivariant": "what acts along whole fibres does not see where they stand",
}
DISTINCT_STEPS = 50_000


def layered_steps(layers: int, prefix: str = "encoder.layer") -> tuple[Step, ...]:
    """A proof through identical layers."""
    head = Step(
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
                Step(
                    node=f"n{layer}_{i}",
                    operator=operator,
                    lemma=lemma,
                    fact="dimension 1 moves by g",
                    module=f"{prefix}.{layer}.{module}",
                    source=f"modeling_bert.py:{140 + i}",
                )
            )
    return tuple(steps)


def proof(steps: tuple[Step, ...]) -> Proof:
    lemmas = dict(Counter(step.lemma for step in steps))
    return Proof(steps=len(steps), lemmas=lemmas, lines=steps, fingerprint="sha256:0f3a")


def heat_map(title: str, tokens: tuple[str, ...]) -> HeatMap:
    n = len(tokens)
    weights = [[1.0 + (3 * i + 5 * j) % 7 for j in range(n)] for i in range(n)]
    values = tuple(tuple(w / sum(row) for w in row) for row in weights)
    return HeatMap(title=title, rows=tokens, columns=tokens, values=values)


SWAP = Swap(
    first="the cat chased the dog",
    second="the dog chased the cat",
    tokens_first=SENTENCE,
    tokens_second=REVERSED,
    rows=(
        SwapRow(condition="with positions", dtype="float32", cosine=0.99087, largest_difference=0.0213),
        SwapRow(condition="without positions", dtype="float32", cosine=0.99999994, largest_difference=2.1e-07),
        SwapRow(condition="without positions", dtype="float64", cosine=1.0, largest_difference=3.3e-16),
    ),
)
ENTRY = Entry(
    kind="constant",
    operator="aten.add.Tensor",
    module="embeddings",
    source="modeling_bert.py:104",
    text="        embeddings = embeddings + position_embeddings",
    origin="embedding of arange by embeddings.position_embeddings.weight",
    reason="the constant differs along dimension 1, which the law moves",
)
SCOPE = Scope(length=7, assumptions=("real arithmetic", "finite activations", "the exported length, 7"))


def everyday() -> Report:
    """As the bundled model gives it: every expectation met."""
    witness = Witness(
        before=("the", "cat"),
        after=("cat", "the"),
        change="swap tokens 0 and 1",
        permutation=(1, 0),
        output_index=(0, 1, 203),
        expected=0.4183671,
        found=0.3920114,
        difference=0.0572,
        module="embeddings",
    )
    completion = Completion(
        verdict="proved",
        uniform=1,
        scope=SCOPE,
        proof=proof(layered_steps(6)),
        deviation=Deviation(float32=3.1e-07, float64=5.2e-16),
    )
    findings = (
        Finding(
            code="OP101",
            law="order_blind",
            verdict="refuted",
            expected="fails",
            scope=SCOPE,
            entries=(ENTRY,),
            statement="Permuting the tokens permutes the output.",
            entries_complete=True,
            output="last_hidden_state",
            witness=witness,
            completion=completion,
            deviation=Deviation(float32=0.0572, float64=0.0572),
            seconds=1.5,
        ),
        Finding(
            code="OP102",
            law="prompt_blind",
            verdict="refuted",
            expected="fails",
            scope=SCOPE,
            entries=(ENTRY,),
            entries_complete=True,
            output="last_hidden_state",
            witness=witness.model_copy(
                update={"before": SENTENCE, "after": REVERSED, "change": "swap tokens 2 and 5", "permutation": None}
            ),
            deviation=Deviation(float32=0.0411, float64=0.0411),
        ),
        Finding(
            code="OP103",
            law="mirror_blind",
            verdict="undecided",
            expected="any",
            scope=SCOPE,
            output="last_hidden_state",
            reason="no proof was found, and no witness in 64 trials",
        ),
        Finding(
            code="OP201",
            law="causal",
            verdict="refuted",
            expected="any",
            scope=SCOPE,
            output="last_hidden_state",
            reason="every token attends to every other",
        ),
        Finding(
            code="OP303", law="precision", verdict="held", expected="holds", scope=SCOPE, reason="12 of 12 lengths"
        ),
        Finding(
            code="OP203", law="packing", verdict="not_applicable", scope=SCOPE, reason="the model takes no document ids"
        ),
    )
    return Report(
        orderproof="0.1.0",
        subject=SubjectRecord(
            name="sentence-transformers/all-MiniLM-L6-v2",
            kind="encoder",
            parameters=22_713_216,
            layers=6,
            detail="eager attention on cpu",
        ),
        findings=findings,
        swap=SWAP,
        heat_maps=(
            heat_map("layer 1, head 1, with positions: the cat chased the dog", SENTENCE),
            heat_map("layer 1, head 1, with positions: the dog chased the cat", REVERSED),
        ),
        lemmas=LEMMAS,
        notes=("the checkpoint's SHA-256 is the official file's",),
        versions={"torch": "2.13.0", "transformers": "5.23.0"},
        seconds=21.4,
    )


def causal_proof(layers: int = 4) -> Report:
    """A causal decoder, proved; its order-blindness violated an expectation and one law stayed open."""
    scope = Scope(length=8, weights="these", consulted=("mask",), assumptions=("real arithmetic",))
    findings = (
        Finding(
            code="OP201",
            law="causal",
            verdict="proved",
            expected="holds",
            scope=scope,
            proof=proof(layered_steps(layers, "model.layers")),
            deviation=Deviation(float32=0.0, float64=0.0),
        ),
        Finding(
            code="OP101",
            law="order_blind",
            verdict="proved",
            expected="fails",
            met=False,
            scope=scope,
            vacuous=True,
            proof=proof(layered_steps(layers, "model.layers")),
        ),
        Finding(
            code="OP202",
            law="padding",
            verdict="undecided",
            expected="holds",
            met=False,
            scope=scope,
            reason="aten.foo.default has no rule",
        ),
    )
    return Report(
        orderproof="0.1.0", subject=SubjectRecord(name="arch:toy", kind="decoder", parameters=1), findings=findings
    )


def _measured(code: str, law: str, *trials: TrialRecord, signal: float | None = 0.96, **changes: Any) -> Finding:
    return Finding(
        code=code, law=law, verdict="held", expected="holds", scope=Scope(length=7, weights="these"), output="logits",
        statement=f"What {law} says.", measurement=Measurement(tolerance=1e-4, signal=signal, trials=trials),
        reason=f"{len(trials)} comparisons",
    ).model_copy(update=changes)  # fmt: skip


def measured() -> Report:
    """A decoder whose caches were tried: two laws held, one refuted, one in doubt, one that could not be tried."""
    padded = "pads on the left, then one token at a time"
    findings = (
        *causal_proof().findings[:1],
        _measured(
            "OP401", "cache",
            TrialRecord(what="one token at a time", float32=8.8e-07, verdict="held"),
            TrialRecord(what="into a static cache", float32=3.1e-04, float64=5.2e-13, verdict="held"),
            deviation=Deviation(float32=3.1e-04, float64=5.2e-13),
        ),
        _measured(
            "OP402", "cache_chunks",
            TrialRecord(what="in chunks of 2, 2, 3 tokens", float32=0.0, verdict="held"),
            TrialRecord(what="in chunks of 1, 6 tokens", reason="in chunks of 1, 6 tokens: ValueError: one at a time"),
            deviation=Deviation(float32=0.0),
        ),
        _measured(
            "OP403", "cache_edits", TrialRecord(what="the rows exchanged", reason="its rows cannot be reordered"),
            signal=None, verdict="undecided", met=False, reason="its rows cannot be reordered",
        ),
        _measured(
            "OP405", "cache_padded",
            TrialRecord(what=padded, float32=0.89, float64=0.89, verdict="refuted", reason=padded),
            TrialRecord(what="the same, one row alone", float32=4.5e-07, verdict="held"),
            signal=None, verdict="refuted", met=False, reason=padded, deviation=Deviation(float32=0.89, float64=0.89),
            witness=Witness(
                before=(), after=(), change=padded, output_index=(0, 0, 54), expected=0.152568, found=-2.70433,
                difference=0.89,
            ),
            fix="Count positions by the mask, not by the cache.",
        ),
        _measured(
            "OP501", "backend",
            TrialRecord(
                what="sdpa", float32=3e-4, float64=2e-5, reason="sdpa: 3e-04 in float32 and 2e-05 in float64"
            ),
            verdict="undecided", expected="any", reason="sdpa: 3e-04 in float32 and 2e-05 in float64",
            deviation=Deviation(float32=3e-4, float64=2e-5),
        ),
    )  # fmt: skip
    return causal_proof().model_copy(
        update={"findings": findings, "versions": {"torch": "2.13.0", "transformers": "5.23.0"}}
    )


def undecided_only() -> Report:
    """Nothing violated, one law open: exit code 3."""
    report = causal_proof()
    return report.model_copy(update={"findings": (report.findings[0], report.findings[2])})


def huge_assumptions() -> Report:
    """A proof that rests on more than fits a model card."""
    report = causal_proof()
    scope = report.findings[0].scope.model_copy(update={"assumptions": tuple(f"assumption {i}" for i in range(40))})
    return report.model_copy(update={"findings": (report.findings[0].model_copy(update={"scope": scope}),)})


def hostile() -> Report:
    """Every string tries to be markup, script, terminal control or template."""
    scope = Scope(length=2, consulted=(HOSTILE,), assumptions=(HOSTILE,))
    step = Step(node=HOSTILE, operator=HOSTILE, lemma=HOSTILE, fact=HOSTILE, module=HOSTILE, source=HOSTILE)
    witness = Witness(
        before=(HOSTILE, "<script>"),
        after=("<script>", HOSTILE),
        change=HOSTILE,
        permutation=(1, 0),
        difference=1.0,
        module=HOSTILE,
    )
    entry = Entry(
        kind="operator", operator=HOSTILE, module=HOSTILE, source=HOSTILE, text=HOSTILE, origin=HOSTILE, reason=HOSTILE
    )
    completion = Completion(verdict="undecided", uniform=1, scope=scope, reason=HOSTILE)
    finding = Finding(
        code=HOSTILE,
        law=HOSTILE,
        statement=HOSTILE,
        verdict="refuted",
        scope=scope,
        output=HOSTILE,
        entries=(entry,),
        witness=witness,
        proof=proof((step,)),
        completion=completion,
        reason=HOSTILE,
    )
    tried = _measured(
        HOSTILE, HOSTILE, TrialRecord(what=HOSTILE, float32=1.0, verdict="refuted", reason=f"{HOSTILE}: {HOSTILE}"),
        verdict="refuted", statement=HOSTILE, output=HOSTILE, fix=HOSTILE, reason=HOSTILE,
        witness=Witness(before=(), after=(), change=HOSTILE, difference=1.0),
    )  # fmt: skip
    return Report(
        orderproof=HOSTILE,
        subject=SubjectRecord(name=HOSTILE, kind=HOSTILE, parameters=1, detail=HOSTILE),
        findings=(finding, tried),
        swap=SWAP.model_copy(update={"first": HOSTILE, "tokens_first": (HOSTILE,)}),
        heat_maps=(HeatMap(title=HOSTILE, rows=(HOSTILE,), columns=(HOSTILE,), values=((0.5,),)),),
        lemmas={HOSTILE: HOSTILE},
        notes=(HOSTILE,),
        versions={HOSTILE: HOSTILE},
    )


def huge(*, alike: bool) -> Report:
    """A proof of some 50,000 lines, through identical layers or through ones that have nothing in common."""
    steps = (
        layered_steps(DISTINCT_STEPS // len(LAYER))
        if alike
        else tuple(
            Step(
                node=f"n{i}",
                operator=f"aten.op{i % 997}.default",
                lemma=f"lemma_{i % 89}",
                fact="<" * 40,
                module=f"blocks.{i // 40}.part{i % 5}",
                source=f"model.py:{i}",
            )
            for i in range(DISTINCT_STEPS)
        )
    )
    report = everyday()
    finding = report.findings[0].model_copy(update={"proof": proof(steps)})
    return report.model_copy(update={"findings": (finding, *report.findings[1:])})
