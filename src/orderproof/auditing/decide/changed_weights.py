"""Weights that a model changed while a law was measured."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from orderproof.auditing.explain.findings import undecide
from orderproof.models import Subject
from orderproof.recording.execution import relative_difference
from orderproof.records.audit import Finding
from orderproof.tolerances import SAME_WEIGHTS
from orderproof.weight_bits import weight_bits

CHANGES_SHOWN = 3  # names of changed weights in a reason
CHECKSUM_PART = 1 << 15  # [elements] converted at once for a checksum: they fit into the cache of a processor


class WeightValues:
    """The parameters and buffers of a module before the first law.

    Their bits are compared first, because sums in float64 take longer.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module, self._bits, self._sums = module, weight_bits(module), _weight_sums(module)

    def changed(self) -> list[str]:
        """The names of those that have other values now."""
        if weight_bits(self._module) == self._bits:
            return []
        before, after = self._sums, _weight_sums(self._module)
        changed = [k for k in before if k in after and not relative_difference(before[k], after[k]) <= SAME_WEIGHTS]
        return [key.rpartition(" [")[0] for key in changed]


def _weight_sums(module: nn.Module) -> dict[str, Tensor]:
    """Sums over each parameter and buffer, by name and shape: a buffer that grows is another one."""
    return {
        f"{name} {list(x.shape)}": _sum_of_absolute_values(x.detach()) if x.is_floating_point() else x.sum()
        for name, x in (*module.named_parameters(), *module.named_buffers())
        if x.device.type != "meta"
    }


def _sum_of_absolute_values(x: Tensor) -> Tensor:
    """In float64, without a float64 copy of the whole tensor."""
    parts = x.flatten().chunk(x.numel() // CHECKSUM_PART + 1)
    return torch.stack([part.abs().double().sum() for part in parts]).sum()


def with_changed_weights(finding: Finding, changed: Sequence[str], subject: Subject) -> Finding:
    """The finding of a law during which the model changed these parameters and buffers.

    Outputs that agreed are no evidence if a parameter changed; a violation that was seen stays one. A buffer may be
    written by every call, as the cache of a model that is served, and a difference was repeated on the model as it was
    before: see `comparison_runs`.
    """
    if not changed or finding.verdict in ("undecided", "not_applicable"):
        return finding
    names = ", ".join(changed[:CHANGES_SHOWN]) + (", ..." if len(changed) > CHANGES_SHOWN else "")
    parameters = {name for name, _ in subject.module.named_parameters()}
    if finding.verdict == "refuted" or parameters.isdisjoint(changed):
        note = f"the model changed {names} while the law was measured"
        return finding.model_copy(update={"reason": "; ".join(part for part in (finding.reason, note) if part)})
    return undecide(finding, f"the model changed its own weights while the law was measured: {names}")
