"""The line of a model that leaves the tokens of a row behind: where an output without tokens is pooled."""

from __future__ import annotations

from torch import Tensor
from torch.fx import Node

from orderproof.auditing.explain.entries import Frame, frame_of
from orderproof.auditing.record.context import AuditContext
from orderproof.batch_layout import ONE_SIDE
from orderproof.recording.captured_graph import CapturedGraph, ancestors
from orderproof.records.audit import Finding


def with_pooling_line(context: AuditContext, finding: Finding) -> Finding:
    """A violation of an output without tokens that has no line yet, with the line that pools."""
    if (
        finding.verdict != "refuted"
        or finding.fix_source
        or (finding.witness and finding.witness.first_violating_source)
    ):
        return finding
    context = context.other_sequences.get(finding.call_mode.removeprefix("pads of "), context)
    masked = next((c for mode in ONE_SIDE if isinstance(c := context.in_call_mode(mode), AuditContext)), context)
    if masked.export_failure is not None:
        return finding
    pooled = [name for name, dims in masked.output_dims.items() if not dims]
    change = "" if finding.witness is None else finding.witness.change
    named = [name for name in pooled if name == finding.output or f"({name})" in change]
    line = _pooling_line(masked.captured, (named or pooled)[0], masked.token_count) if pooled else Frame()
    return finding.model_copy(update={"fix_source": line.source, "fix_line": line.text})


def _pooling_line(captured: CapturedGraph, output: str, tokens: int) -> Frame:
    """The line of the last operator of tensors with tokens, which depend on the input, that gives one without."""
    needed, found = ancestors([captured.outputs[output]]), Frame()
    varies = {*captured.inputs} | ({captured.start} if captured.start is not None else set())
    for node in captured.graph.nodes:
        operands = [n for n in node.all_input_nodes if n in varies]
        if not operands:
            continue
        varies.add(node)
        if node in needed and not _has(node, tokens) and any(_has(n, tokens) for n in operands):
            found = frame_of(node) if frame_of(node).source else found
    return found


def _has(node: Node, tokens: int) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and tokens in value.shape
