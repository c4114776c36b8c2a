"""Causality is decided for calls with an attention mask too, where no theorem about every mask covers them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof import audit
from orderproof.auditing.api import audit_context, report_on_law
from orderproof.auditing.decide.theorem_certificates import theorem_certificate
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.batch_layout import padding_slots
from orderproof.laws import find_proved_law
from orderproof.models import from_module
from orderproof.records.audit import Finding

MANY = 1000  # [real tokens]


class Decoder(nn.Module):
    """One layer of attention over embedded tokens; subclasses choose the masks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.project, self.head = nn.Embedding(50, 16), nn.Linear(16, 48), nn.Linear(16, 50)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits [batch, token, 50] of ids [batch, token]."""
        x = self.embed(input_ids)
        query, key, value = self.project(x).unsqueeze(1).chunk(3, -1)
        keys = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        mixed: Tensor = self.head(x + self.attend(query, key, value, keys).squeeze(1))
        return mixed

    def attend(self, query: Tensor, key: Tensor, value: Tensor, keys: Tensor | None) -> Tensor:
        """Attention with the mask of keys [batch, 1, 1, key], None without one."""
        raise NotImplementedError


class FlagWithoutMask(Decoder):
    """The causal flag is dropped where a mask is given."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, keys: Tensor | None) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=keys, is_causal=keys is None)


class FlagWithoutPads(Decoder):
    """The causal flag is dropped where the mask has a pad."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, keys: Tensor | None) -> Tensor:
        given = None if keys is None or bool(keys.all()) else keys
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=given, is_causal=given is None)


class JoinedMasks(Decoder):
    """The mask is combined with a causal one."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, keys: Tensor | None) -> Tensor:
        mask = torch.ones(query.shape[-2], query.shape[-2], dtype=torch.bool).tril()
        bias = torch.where(mask if keys is None else mask & keys, 0.0, torch.finfo(torch.float32).min)
        return functional.scaled_dot_product_attention(query, key, value, bias)


class JoinedWhereFew(JoinedMasks):
    """The same, but the program reads the values of the mask, so that no theorem covers every mask."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, keys: Tensor | None) -> Tensor:
        return super().attend(query, key, value, None if keys is None or int(keys.sum()) > MANY else keys)


class SquareMask(FlagWithoutMask):
    """The mask has a name whose meaning is not known, and no padding mask has its form."""

    def forward(self, input_ids: Tensor, visible_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        if visible_mask is not None and visible_mask.shape != (input_ids.shape[1],) * 2:
            raise ValueError("expected a mask [token, token]")
        return super().forward(input_ids, visible_mask)


def _causal(model: type[Decoder]) -> tuple[AuditContext, tuple[Finding, ...]]:
    torch.manual_seed(0)
    subject = from_module(model(), (torch.randint(0, 50, (2, 7)),))
    context = audit_context(subject)
    return context, report_on_law(context, "causal").findings


@pytest.mark.parametrize("model", [FlagWithoutMask, FlagWithoutPads])
def test_a_leak_in_calls_with_a_mask_is_a_failed_check(model: type[Decoder]) -> None:
    torch.manual_seed(0)
    report = audit(from_module(model(), (torch.randint(0, 50, (2, 7)),)))
    plain, padded = (finding for finding in report.findings if finding.law == "causal")
    assert (plain.verdict, plain.call_mode) == ("proved", "")
    assert (padded.verdict, padded.call_mode, padded.outcome) == ("refuted", "padded", "fail")
    assert padded.expected_because.startswith("calls without an attention mask are proved to satisfy it; ")
    assert padded.remedy.startswith("Mask later tokens before the softmax, on every attention backend")
    assert "test_causal_with_mask.py:" in padded.fix_source
    assert padded.witness is not None
    row, token = padded.witness.output_index[:2]
    assert not padding_slots(2, len(padded.witness.tokens_before))[row, token], "the witness is at a real token"
    assert padded.witness.change.endswith("in a padded batch")
    assert report.exit_code == 1
    assert "FAIL OP201 causal (padded)" in str(report)


def test_a_theorem_about_every_mask_needs_no_second_finding() -> None:
    _, (plain,) = _causal(JoinedMasks)
    assert plain.theorem is not None
    assert plain.theorem.covers == ("no attention mask", "every attention mask (at its real tokens)")


def test_a_proof_in_padded_calls_has_no_certificate() -> None:
    context, (_, padded) = _causal(JoinedWhereFew)
    assert (padded.verdict, padded.call_mode) == ("proved", "padded")
    assert theorem_certificate(context, padded) is None


def test_a_mask_that_cannot_be_given_is_noted() -> None:
    context, (plain,) = _causal(SquareMask)
    assert plain.verdict == "proved"
    proved = "OP201 causal is proved with the defaults of visible_mask in forward"
    assert any(note.startswith(f"{proved}; whether it holds with a mask was not checked") for note in context.notes)


def test_ids_that_are_the_same_in_both_draws_do_not_make_a_proof_vacuous() -> None:
    context = audit_context(from_module(JoinedMasks(), (torch.zeros(2, 7, dtype=torch.long) + torch.arange(7) % 2,)))
    law = find_proved_law("causal")
    search = WitnessSearch(context, law, "output", context.dims_for(law, "output"), None)
    tokens, others = search.tokens(7)
    for row in (0, -1):
        others.inputs[0][:, row] = tokens.inputs[0][:, row]
    search.tokens = lambda length: (tokens, others)  # type: ignore[method-assign]
    others.inputs[0][:, 1:-1] = 1 - tokens.inputs[0][:, 1:-1]
    assert search.mixes_tokens()
