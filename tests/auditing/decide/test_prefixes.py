"""Embeddings that a model adds before its tokens or after them, and the mask to which their values are joined."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.auditing.api import as_subject, audit_context, report_on_law
from orderproof.auditing.decide.theorem_certificates import theorem_certificate
from orderproof_recheck.theorem import check_theorem

ROWS, TOKENS, MORE = 2, 7, 3


class Prompted(nn.Module):
    """Causal attention on learned embeddings and tokens, without a mask where no token is a pad."""

    def __init__(self, *, before: bool, mask_before: bool, asked: slice) -> None:
        super().__init__()
        self.key, self.prompt = nn.Linear(16, 16), nn.Parameter(torch.randn(MORE, 16))
        self.before, self.mask_before, self.asked = before, mask_before, asked

    def joined(self, added: Tensor, own: Tensor, *, before: bool) -> Tensor:
        return torch.cat([added, own] if before else [own, added], 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.joined(self.prompt.expand(len(x), -1, -1), x, before=self.before)
        mask = self.joined(mask.new_ones(len(mask), MORE), mask, before=self.mask_before)
        visible = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        if not mask[:, self.asked].all():
            visible = visible & mask[:, None].bool()
        y = (x @ self.key(x).transpose(1, 2)).masked_fill(~visible, -1e9).softmax(-1) @ x
        return y[:, MORE:] if self.before else y[:, :-MORE]


def inputs() -> dict[str, Tensor]:
    mask = torch.ones(ROWS, TOKENS, dtype=torch.long)
    mask[1, -2:] = 0
    return {"x": torch.randn(ROWS, TOKENS, 16), "mask": mask}


def certificate_of(module: nn.Module, law: str) -> dict[str, Any]:
    context = audit_context(as_subject(module.eval(), inputs=inputs()))
    (finding,) = report_on_law(context, law).findings
    certificate = theorem_certificate(context, finding)
    assert certificate is not None
    return certificate


@pytest.mark.parametrize("law", ["causal", "padding"])
@pytest.mark.parametrize("before", [True, False])
def test_what_is_known_of_tokens_is_known_next_to_added_embeddings(law: str, before: bool) -> None:
    certificate = certificate_of(Prompted(before=before, mask_before=before, asked=slice(None)), law)
    check_theorem(certificate)
    kinds = {r["uniform"] for one in certificate["calls"][-1]["ranges"] for r in one["recordings"]}
    assert kinds == {None, "everything_real"}
    assert certificate["claim"]["covers"][-1].startswith("every attention mask")


@pytest.mark.parametrize(
    ("mask_before", "asked"),
    [(False, slice(None)), (True, slice(None, -1)), (True, slice(MORE)), (True, slice(MORE + 1, None))],
)
def test_a_mask_that_is_joined_or_asked_otherwise_is_no_proof(mask_before: bool, asked: slice) -> None:
    module = Prompted(before=True, mask_before=mask_before, asked=asked).eval()
    (finding,) = audit(module, inputs=inputs(), laws=["padding"]).findings
    assert finding.verdict != "proved" or finding.theorem is None or not finding.theorem.proved
