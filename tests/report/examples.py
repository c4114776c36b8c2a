"""Reports for tests: one as the bundled model gives it, one hostile, one with a huge proof."""

from __future__ import annotations

from typing import Any

from orderproof.laws import measured_laws, proved_laws
from orderproof.records.audit import (
    RECORDED_CALL_ASSUMPTION,
    AttentionMap,
    ComparisonRecord,
    Completion,
    Deviation,
    Entry,
    Finding,
    Measurement,
    ProofStep,
    Report,
    Scope,
    SubjectRecord,
    Theorem,
    Witness,
    outcome_of,
)
from tests.report.example_parts import (
    ENTRY,
    LAYER,
    LEMMAS,
    REVERSED,
    SCOPE,
    SENTENCE,
    SWAP,
    heat_map,
    layered_steps,
    proof,
)

HOSTILE = '<script>alert("x")</script>&amp;]]>--><img src=x onerror=alert(1)>\x1b[31m\u202e[bold]{{ 7 * 7 }}'
DISTINCT_STEPS = 50_000
LAWS = {law.name: law for law in (*proved_laws(), *measured_laws())}


def with_outcome(finding: Finding) -> Finding:
    """The finding as a check or a property with its outcome, as an audit makes it."""
    law = LAWS.get(finding.law)
    expects = finding.expected != "any" and (law is None or law.kind == "check")
    kind = "check" if expects or not finding.expectation_met else "property"
    trait, trait_if = (law.trait, law.trait_if) if law else (finding.law, "holds")
    outcome = outcome_of(kind, finding.verdict, met=finding.expectation_met, trait_if=trait_if)
    return finding.model_copy(update={"kind": kind, "trait": trait, "outcome": outcome})


def everyday() -> Report:
    """As the audit of the bundled model: no check fails."""
    witness = Witness(
        tokens_before=("the", "cat"),
        tokens_after=("cat", "the"),
        change="swap tokens 0 and 1",
        permutation=(1, 0),
        output_index=(0, 1, 203),
        expected_value=0.4183671,
        actual_value=0.3920114,
        relative_difference=0.0572,
        first_violating_module="embeddings",
    )
    completion = Completion(
        verdict="proved",
        uniform_operand_count=1,
        scope=SCOPE,
        proof=proof(layered_steps(6)),
        deviation=Deviation(float32=3.1e-07, float64=5.2e-16),
    )
    findings = (
        Finding(
            code="OP101",
            law="permutation",
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
            law="prompt_permutation",
            verdict="refuted",
            expected="fails",
            scope=SCOPE,
            entries=(ENTRY,),
            entries_complete=True,
            output="last_hidden_state",
            witness=witness.model_copy(
                update={
                    "tokens_before": SENTENCE,
                    "tokens_after": REVERSED,
                    "change": "swap tokens 2 and 5",
                    "permutation": None,
                }
            ),
            deviation=Deviation(float32=0.0411, float64=0.0411),
        ),
        Finding(
            code="OP103",
            law="reversal",
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
            code="OP303",
            law="position_precision",
            verdict="held",
            expected="holds",
            scope=SCOPE,
            reason="12 of 12 lengths",
        ),
        Finding(
            code="OP203", law="packing", verdict="not_applicable", scope=SCOPE, reason="the model takes no document ids"
        ),
    )
    return Report(
        orderproof_version="0.1.0",
        subject=SubjectRecord(
            name="sentence-transformers/all-MiniLM-L6-v2",
            kind="encoder",
            parameters=22_713_216,
            layers=6,
            detail="eager attention on cpu",
        ),
        findings=tuple(map(with_outcome, findings)),
        sentence_pair=SWAP,
        attention_maps=(
            heat_map("layer 1, head 1, with positions: the cat chased the dog", SENTENCE),
            heat_map("layer 1, head 1, with positions: the dog chased the cat", REVERSED),
        ),
        lemma_statements=LEMMAS,
        notes=("the checkpoint's SHA-256 is the official file's",),
        versions={"torch": "2.13.0", "transformers": "5.23.0"},
        seconds=21.4,
    )


def causal_proof(layers: int = 4) -> Report:
    """A causal decoder with one passed, one failed and one undecided check."""
    scope = Scope(length=8, weights="these", tensors_read=("mask",), assumptions=("real arithmetic",))
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
            law="permutation",
            verdict="proved",
            expected="fails",
            expectation_met=False,
            scope=scope,
            vacuous=True,
            proof=proof(layered_steps(layers, "model.layers")),
        ),
        Finding(
            code="OP202",
            law="padding",
            verdict="undecided",
            expected="holds",
            expectation_met=False,
            scope=scope,
            reason="aten.foo.default has no rule",
        ),
    )
    return Report(
        orderproof_version="0.1.0",
        subject=SubjectRecord(name="arch:toy", kind="decoder", parameters=1),
        findings=tuple(map(with_outcome, findings)),
    )


OVER_REALS = "over the real numbers"
SMALL_SCORES = "scores are small compared with the mask"


def theorems() -> Report:
    """A decoder with laws proved for every length: without a limit, with one, with a condition; and one not proved."""
    causal = causal_proof().findings[0]
    scope = Scope(length=7, assumptions=(RECORDED_CALL_ASSUMPTION, SMALL_SCORES, "of one call: the call changes steps"))
    unlimited = Theorem(
        proved=True, covers=("no attention mask", "every attention mask (at its real tokens)"),
        assumptions=(OVER_REALS, SMALL_SCORES),
    )  # fmt: skip
    limited = Theorem(
        proved=True, greatest_length=2048, every_depth=True, covers=("every attention mask",), assumptions=(OVER_REALS,)
    )  # fmt: skip
    conditional = Theorem(
        proved=True, least_length=3, greatest_length=128, covers=("every layout of documents", "every mask in them"),
        conditions=("tokens - 2*batch <= 0", "batch <= 8"), assumptions=(OVER_REALS,),
    )  # fmt: skip
    open_only = Theorem(proved=False, reason="aten.fft_fft.default (mixer): it has no rule")
    findings = [
        causal.model_copy(update={"code": code, "law": law, "scope": scope, "theorem": theorem})
        for code, law, theorem in (
            ("OP201", "causal", unlimited), ("OP202", "padding", limited), ("OP204", "batch", open_only),
            ("OP203", "packing", conditional),
        )
    ]  # fmt: skip
    return causal_proof().model_copy(update={"findings": tuple(map(with_outcome, findings))})


def theorem_of_rows() -> Report:
    """A law of whole rows that is proved for every number of rows, but not for every length."""
    theorem = Theorem(
        proved=True,
        open_length=False,
        recorded_shapes=("[batch, 7]",),
        conditions=("batch >= 4",),
        assumptions=(OVER_REALS,),
        reason="its recording is for 23 tokens only: the call uses their number, model.py:12",
    )
    report = theorems()
    return report.model_copy(update={"findings": (report.findings[0].model_copy(update={"theorem": theorem}),)})


def _measured(
    code: str, law: str, *comparisons: ComparisonRecord, control: float | None = 0.96, **changes: Any
) -> Finding:
    return Finding(
        code=code, law=law, verdict="held", expected="holds", scope=Scope(length=7, weights="these"), output="logits",
        statement=f"What {law} says.",
        measurement=Measurement(tolerance=1e-4, control_difference=control, comparisons=comparisons),
        reason=f"{len(comparisons)} comparisons",
    ).model_copy(update=changes)  # fmt: skip


def measured() -> Report:
    """A decoder with measured laws: two hold, one is refuted, one is in doubt and one is not possible."""
    padded = "pads on the left, then one token at a time"
    findings = (
        *causal_proof().findings[:1],
        _measured(
            "OP401", "cached_decoding",
            ComparisonRecord(description="one token at a time", float32=8.8e-07, verdict="held"),
            ComparisonRecord(description="into a static cache", float32=3.1e-04, float64=5.2e-13, verdict="held"),
            deviation=Deviation(float32=3.1e-04, float64=5.2e-13),
        ),
        _measured(
            "OP402", "chunked_prefill",
            ComparisonRecord(description="in chunks of 2, 2, 3 tokens", float32=0.0, verdict="held"),
            ComparisonRecord(
                description="in chunks of 1, 6 tokens", reason="in chunks of 1, 6 tokens: ValueError: one at a time"
            ),
            deviation=Deviation(float32=0.0),
        ),
        _measured(
            "OP403", "cache_editing",
            ComparisonRecord(description="the rows exchanged", reason="its rows cannot be reordered"),
            control=None, verdict="undecided", expectation_met=False, reason="its rows cannot be reordered",
        ),
        _measured(
            "OP405", "left_padded_decoding",
            ComparisonRecord(description=padded, float32=0.89, float64=0.89, verdict="refuted", reason=padded),
            ComparisonRecord(description="the same, one row alone", float32=4.5e-07, verdict="held"),
            control=None, verdict="refuted", expectation_met=False, reason=padded,
            deviation=Deviation(float32=0.89, float64=0.89),
            witness=Witness(
                tokens_before=(), tokens_after=(), change=padded, output_index=(0, 0, 54),
                expected_value=0.152568, actual_value=-2.70433,
                relative_difference=0.89,
            ),
            remedy="Count positions by the mask, not by the cache.",
        ),
        _measured(
            "OP501", "attention_backend",
            ComparisonRecord(
                description="sdpa", float32=3e-4, float64=2e-5, reason="sdpa: 3e-04 in float32 and 2e-05 in float64"
            ),
            verdict="undecided", expected="any", reason="sdpa: 3e-04 in float32 and 2e-05 in float64",
            deviation=Deviation(float32=3e-4, float64=2e-5),
        ),
    )  # fmt: skip
    return causal_proof().model_copy(
        update={
            "findings": tuple(map(with_outcome, findings)),
            "versions": {"torch": "2.13.0", "transformers": "5.23.0"},
        }
    )


def undecided_only() -> Report:
    """No failed check and one undecided: exit code 3."""
    report = causal_proof()
    return report.model_copy(update={"findings": (report.findings[0], report.findings[2])})


def huge_assumptions() -> Report:
    """A proof with more assumptions than a model card shows."""
    report = causal_proof()
    scope = report.findings[0].scope.model_copy(update={"assumptions": tuple(f"assumption {i}" for i in range(40))})
    return report.model_copy(update={"findings": (report.findings[0].model_copy(update={"scope": scope}),)})


def hostile() -> Report:
    """Every string contains markup, script, terminal control and template syntax."""
    scope = Scope(length=2, tensors_read=(HOSTILE,), assumptions=(HOSTILE,))
    step = ProofStep(node=HOSTILE, operator=HOSTILE, lemma=HOSTILE, fact=HOSTILE, module=HOSTILE, source=HOSTILE)
    witness = Witness(
        tokens_before=(HOSTILE, "<script>"),
        tokens_after=("<script>", HOSTILE),
        change=HOSTILE,
        permutation=(1, 0),
        relative_difference=1.0,
        first_violating_module=HOSTILE,
    )
    entry = Entry(
        kind="operator",
        operator=HOSTILE,
        module=HOSTILE,
        source=HOSTILE,
        source_line=HOSTILE,
        origin=HOSTILE,
        reason=HOSTILE,
    )
    completion = Completion(verdict="undecided", uniform_operand_count=1, scope=scope, reason=HOSTILE)
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
    measured_finding = _measured(
        HOSTILE, HOSTILE,
        ComparisonRecord(description=HOSTILE, float32=1.0, verdict="refuted", reason=f"{HOSTILE}: {HOSTILE}"),
        verdict="refuted", statement=HOSTILE, output=HOSTILE, remedy=HOSTILE, reason=HOSTILE,
        witness=Witness(tokens_before=(), tokens_after=(), change=HOSTILE, relative_difference=1.0),
    )  # fmt: skip
    return Report(
        orderproof_version=HOSTILE,
        subject=SubjectRecord(name=HOSTILE, kind=HOSTILE, parameters=1, detail=HOSTILE),
        findings=tuple(map(with_outcome, (finding, measured_finding))),
        sentence_pair=SWAP.model_copy(update={"first": HOSTILE, "tokens_first": (HOSTILE,)}),
        attention_maps=(
            AttentionMap(title=HOSTILE, query_tokens=(HOSTILE,), key_tokens=(HOSTILE,), weights=((0.5,),)),
        ),
        lemma_statements={HOSTILE: HOSTILE},
        notes=(HOSTILE,),
        versions={HOSTILE: HOSTILE},
    )


def huge(*, same: bool) -> Report:
    """A proof of some 50,000 steps, through identical layers or through different ones."""
    steps = (
        layered_steps(DISTINCT_STEPS // len(LAYER))
        if same
        else tuple(
            ProofStep(
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
