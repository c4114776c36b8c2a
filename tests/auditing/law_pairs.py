"""Verdicts on a module and on a faulty twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from orderproof.auditing.api import audit_context
from orderproof.laws import find_proved_law
from orderproof.models import from_module
from orderproof.records.audit import Finding
from tests.auditing.internals import prove_law

VECTORS = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(1))
IDS = torch.randint(32, (3, 8), generator=torch.Generator().manual_seed(1))


def findings_of(
    module: nn.Module, law: str, inputs: Tensor | Sequence[Tensor] = VECTORS, **options: object
) -> list[Finding]:
    """The findings about each output."""
    context = audit_context(from_module(module.eval(), inputs, **options))  # type: ignore[arg-type]
    return list(prove_law(context, find_proved_law(law)))


def finding_about_the_output(module: nn.Module, law: str, inputs: Tensor) -> Finding:
    """The finding about the only output [row, token, width] at the length of the inputs."""
    subject = from_module(module.eval(), inputs, outputs=f"batch,token,{inputs.shape[-1]}", token_axis=1)
    (finding,) = prove_law(audit_context(subject), find_proved_law(law))
    return finding


def verdicts(module: nn.Module, laws: Mapping[str, object] | Sequence[str], inputs: Tensor = VECTORS) -> dict[str, str]:
    """The verdict of each law about the first output."""
    torch.manual_seed(0)
    return {law: findings_of(module, law, inputs)[0].verdict for law in laws}
