"""Verdicts on a module and on a faulty twin, with the certificates of what was proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.auditing.api import audit_context
from orderproof.auditing.decide.certificates import certificates_of
from orderproof.laws import find_proved_law
from orderproof.models import from_module
from orderproof.recheck.check import recheck
from orderproof.records.audit import Finding
from tests.auditing.internals import prove_law

VECTORS = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(1))
IDS = torch.randint(32, (3, 8), generator=torch.Generator().manual_seed(1))


def checked_findings(
    module: nn.Module, law: str, inputs: Tensor | Sequence[Tensor] = VECTORS, **options: object
) -> list[Finding]:
    """The findings about each output; every certificate is checked again, and each proof has one."""
    context = audit_context(from_module(module.eval(), inputs, **options), keep_walks=True)  # type: ignore[arg-type]
    findings = list(prove_law(context, find_proved_law(law)))
    for finding in findings:
        certificates = list(certificates_of(context, finding))
        for certificate in certificates:
            assert recheck(certificate).premises is not None
        assert bool(certificates) == (finding.verdict == "proved")
    return findings


def certificates_and_finding(module: nn.Module, law: str, inputs: Tensor) -> tuple[Finding, list[dict[str, Any]]]:
    """The finding about the only output [row, token, width] at the length of the inputs, and its certificates."""
    subject = from_module(module.eval(), inputs, outputs=f"batch,token,{inputs.shape[-1]}", token_axis=1)
    context = audit_context(subject, keep_walks=True)
    (finding,) = prove_law(context, find_proved_law(law))
    certificates = list(certificates_of(context, finding))
    assert all(recheck(certificate).premises is not None for certificate in certificates)
    return finding, certificates


def verdicts(module: nn.Module, laws: Mapping[str, object] | Sequence[str], inputs: Tensor = VECTORS) -> dict[str, str]:
    """The verdict of each law about the first output."""
    torch.manual_seed(0)
    return {law: checked_findings(module, law, inputs)[0].verdict for law in laws}
