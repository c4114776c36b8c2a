"""Masks that are computed from the content of a call: documents, pads and marks, with flags of Python."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.models import from_module
from orderproof.number_limits import VISIBLE_ROW_ASSUMPTION
from orderproof.records.audit import Finding


class Attention(nn.Module):
    """Attention over ids whose mask subclasses compute; with `leaks` each token sees the next one."""

    def __init__(self, *, leaks: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.leaks, self.off = int(leaks), False
        self.words, self.qkv = nn.Embedding(12, 16), nn.Linear(16, 48)

    def earlier(self, n: int) -> Tensor:
        """Booleans [query, key]."""
        return torch.ones(n, n, dtype=torch.bool).tril(self.leaks)

    def seen(self, ids: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input_ids: Tensor) -> Tensor:
        query, key, value = self.qkv(self.words(input_ids)).chunk(3, -1)
        scores = (query @ key.mT / 4).masked_fill(~self.seen(input_ids), -torch.inf)
        return scores.softmax(-1) @ value


class Documents(Attention):
    """Documents that begin at token 0."""

    def seen(self, ids: Tensor) -> Tensor:
        document = (ids == 0).long().cumsum(1)
        return (document[:, :, None] == document[:, None]) & self.earlier(ids.shape[1])


class OtherDocuments(Attention):
    """The same by what is hidden, with comparisons that are false of a token and itself."""

    def seen(self, ids: Tensor) -> Tensor:
        document = torch.cumsum(ids.eq(0), dim=-1)
        hidden = torch.ne(document.unsqueeze(-1), document.unsqueeze(-2)) | ~self.earlier(ids.shape[1])
        return ~hidden


class Ordered(Attention):
    """Keys of the same document or an earlier one, with expanded operands."""

    def seen(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        document = (ids == 0).int().cumsum(1).unsqueeze(1).expand(-1, n, -1)
        return torch.logical_and(document.transpose(1, 2) >= document, self.earlier(n))


class Flagged(Attention):
    """Pads would be hidden if a flag of Python were set."""

    def seen(self, ids: Tensor) -> Tensor:
        hidden = (ids == 1)[:, None] & self.off
        return ~hidden & self.earlier(ids.shape[1])


class FlaggedOtherwise(Attention):
    """The same, with what is seen."""

    def seen(self, ids: Tensor) -> Tensor:
        real = torch.logical_or((ids != 1)[:, None], torch.tensor(not self.off)) | (not self.off)
        return self.earlier(ids.shape[1]) & real & True


KINDS = (Documents, OtherDocuments, Ordered, Flagged, FlaggedOtherwise)


def _causal(kind: type[Attention], *, leaks: bool) -> Finding:
    ids = torch.randint(0, 12, (2, 7), generator=torch.Generator().manual_seed(0))
    subject = from_module(kind(leaks=leaks), (ids,), assume={"model_kind": "causal_lm"})
    return audit(subject, laws=["causal"]).findings[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_of_content_is_causal(kind: type[Attention]) -> None:
    good, bad = (_causal(kind, leaks=leaks) for leaks in (False, True))
    assert (good.verdict, bad.verdict) == ("proved", "refuted")
    assert good.theorem is not None
    assert good.theorem.proved


@pytest.mark.parametrize("compare", [operator.eq, operator.le, operator.ne, operator.gt])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_only_integers_are_known_to_equal_themselves(compare: Callable[..., Tensor], dtype: torch.dtype) -> None:
    class Compared(Documents):
        def seen(self, ids: Tensor) -> Tensor:
            document = (ids == 0).to(dtype).cumsum(1)
            same = compare(document[:, :, None], document[:, None])
            return (~same if compare in (operator.ne, operator.gt) else same) & self.earlier(ids.shape[1])

    finding = _causal(Compared, leaks=False)
    assert finding.verdict == "proved"
    assert (VISIBLE_ROW_ASSUMPTION in finding.scope.assumptions) is (dtype is torch.float32)


def test_another_place_of_the_tensor_may_differ() -> None:
    class Shifted(Documents):
        """A row may be masked wholly: nothing is known of its diagonal."""

        def seen(self, ids: Tensor) -> Tensor:
            return (ids[:, :, None] == ids.roll(1, 1)[:, None]) & self.earlier(ids.shape[1])

    assert _causal(Shifted, leaks=False).verdict == "undecided"
