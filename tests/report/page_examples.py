"""Reports for tests of the audit page: one with an off-by-one mask, one without failures and of everyday size."""

from __future__ import annotations

from orderproof.records.audit import Finding, Picture, Report, Scope, Witness
from tests.report.example_parts import ENTRY
from tests.report.examples import LAWS, causal_proof, everyday, with_outcome


def off_by_one() -> Report:
    """A decoder whose mask shows each token the next one; the mask and the change of its line are known."""
    mask = Picture(kind="mask", rows=("1!0", "11!", "111"))
    line, fixed = "mask = torch.ones(n, n).tril(1)", "mask = torch.ones(n, n).tril(0)"
    entry = ENTRY.model_copy(
        update={
            "kind": "operator", "operator": "aten.scaled_dot_product_attention.default", "source": "model.py:21",
            "source_line": "y = scaled_dot_product_attention(q, k, v, attn_mask=mask)", "picture": mask,
        }
    )  # fmt: skip
    witness = Witness(
        tokens_before=("a", "b"), tokens_after=("a", "c"), change="replace the tokens from 1 on",
        relative_difference=0.35,
    )  # fmt: skip
    finding = Finding(
        code="OP201", law="causal", verdict="refuted", expected="holds", expectation_met=False, scope=Scope(length=3),
        statement="Replacing the tokens from j on leaves the outputs before j unchanged.", entries=(entry,),
        witness=witness, remedy="Mask later tokens.", remedy_diff=f"-{line}\n+{fixed}", fix_source="model.py:20",
        fix_line=line, output="logits",
    )  # fmt: skip
    return causal_proof().model_copy(update={"findings": (with_outcome(finding),)})


def healthy() -> Report:
    """As the bundled model: fourteen checks that pass, seven properties, a sentence pair and attention maps."""
    report = everyday()
    described, check = report.findings[0], report.findings[4]
    laws = [law for law in LAWS.values() if law.kind == "check"][:14]
    traits = [law for law in LAWS.values() if law.kind == "property"]
    findings = [described.model_copy(update={"code": law.code, "law": law.name, "trait": law.trait}) for law in traits]
    findings += [check.model_copy(update={"code": law.code, "law": law.name}) for law in laws]
    return report.model_copy(update={"findings": tuple(findings)})
