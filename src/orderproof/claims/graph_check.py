"""Checks of the recorded graph: the operator and the source of Q, K and V."""

from __future__ import annotations

from torch.fx import Node

from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.claims.claim import CheckOutcome
from orderproof.claims.numeric_check import build_subject
from orderproof.recording.capture import capture
from orderproof.recording.captured_graph import CapturedGraph

LINEAR_OPERATOR = "aten.linear.default"
PROJECTIONS = ("Q", "K", "V")


def projections_of_one_input(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that Q, K and V are linear maps of one tensor."""
    projections = projection_sources(make_subject)
    sources = {source for source, _ in projections.values()}
    linear = all(operator == LINEAR_OPERATOR for _, operator in projections.values())
    return CheckOutcome(
        verdict="shown" if linear and len(sources) == 1 else "refuted",
        method="graph",
        evidence=describe_projections(projections),
    )


def cross_attention_projections(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that K and V are linear maps of one tensor, and Q of another."""
    projections = projection_sources(make_subject)
    linear = all(operator == LINEAR_OPERATOR for _, operator in projections.values())
    separate = projections["K"][0] == projections["V"][0] != projections["Q"][0]
    return CheckOutcome(
        verdict="shown" if linear and separate else "refuted",
        method="graph",
        evidence=describe_projections(projections),
    )


def projection_sources(make_subject: SubjectFactory) -> dict[str, tuple[str, str]]:
    """For Q, K and V: the source of its last operator, and that operator."""
    captured = capture(*build_subject(make_subject))
    return {
        name: (_source_of(captured.outputs[name], captured), str(captured.outputs[name].target)) for name in PROJECTIONS
    }


def _source_of(node: Node, captured: CapturedGraph) -> str:
    source = node.args[0]
    assert isinstance(source, Node)
    return f"input {captured.inputs.index(source)}" if source in captured.inputs else f"the result of {source.target}"


def describe_projections(projections: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    """One line per projection."""
    return tuple(f"{name} is {operator} of {source}" for name, (source, operator) in projections.items())
