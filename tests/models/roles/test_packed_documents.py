"""Packed documents with boundaries or lengths: laws of modules that keep them apart, and of those that do not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, prove
from orderproof.errors import SubjectError
from orderproof.models import from_module
from orderproof.models.roles.packed_documents import packed_documents

TOKENS = torch.randn(7, 16, generator=torch.Generator().manual_seed(0))
BOUNDARIES = torch.tensor([0, 3, 7], dtype=torch.int32)
LENGTHS = torch.tensor([2, 5])


def attended(x: Tensor, visible: Tensor) -> Tensor:
    return (x @ x.mT / 4).masked_fill(~visible, -torch.inf).softmax(-1) @ x


class Masked(nn.Module):
    """Attention within documents by a mask; `leaks` leaves the mask out, `ahead` shows later tokens."""

    def __init__(self, *, leaks: bool = False, ahead: bool = False) -> None:
        super().__init__()
        self.values, self.leaks, self.ahead = nn.Linear(16, 16), leaks, ahead

    def forward(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
        place = torch.arange(len(x))
        document = torch.bucketize(place, cu_seqlens[1:], right=True)
        same = (document[:, None] == document) | torch.tensor(self.leaks)
        return attended(self.values(x), same & ((place[:, None] >= place) | torch.tensor(self.ahead)))


class Looped(nn.Module):
    """The same in a loop over documents."""

    def forward(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
        parts = [x[a:b] for a, b in zip(cu_seqlens[:-1].tolist(), cu_seqlens[1:].tolist(), strict=True)]
        return torch.cat([attended(part, torch.ones(len(part), len(part)).tril().bool()) for part in parts])


class Split(nn.Module):
    """The same with the lengths of documents."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return torch.cat([part.cumsum(0) for part in x.split(lengths.tolist())])


@pytest.mark.parametrize(("module", "places"), [(Masked(), BOUNDARIES), (Looped(), BOUNDARIES), (Split(), LENGTHS)])
def test_documents_stay_apart(module: nn.Module, places: Tensor) -> None:
    report = audit(module, laws=("causal", "packing"), inputs=(TOKENS, places))
    assert [finding.verdict for finding in report.findings] == ["proved", "proved"]
    assert any("of packed documents, computed for each number of tokens" in note for note in report.notes)


def test_documents_that_see_each_other_are_refuted() -> None:
    inputs = {"x": TOKENS, "cu_seqlens": BOUNDARIES}
    assert prove(Masked(leaks=True), "packing", inputs=inputs).verdict == "refuted"
    assert prove(Masked(leaks=True), "causal", inputs=inputs).verdict == "proved"
    assert prove(Masked(ahead=True), "packing", inputs=inputs).verdict == "proved"
    assert prove(Masked(ahead=True), "causal", inputs=inputs).verdict == "refuted"


def test_a_packed_row_has_no_other_rows() -> None:
    subject = from_module(Masked(), (TOKENS, BOUNDARIES))
    assert subject.packs_documents
    assert subject.sample(9, 0).inputs[0].shape == (1, 9, 16)
    assert subject.module(*subject.sample(9, 0).inputs).shape == (1, 9, 16)
    with pytest.raises(ValueError, match="packed documents are one row; got 2"):
        subject.module(torch.randn(2, 7, 16))
    assert prove(subject, "batch").verdict == "not_applicable"


@pytest.mark.parametrize(
    "other",
    [torch.tensor([0, 3, 6]), torch.tensor([0, 5, 3, 7]), torch.tensor([7]), torch.tensor([0.0, 7.0]), TOKENS],
)
def test_other_tensors_are_no_places_of_documents(other: Tensor) -> None:
    assert packed_documents(other, 7) is None


def test_rows_of_tokens_are_not_packed() -> None:
    class Rows(nn.Module):
        def forward(self, x: Tensor, scale: Tensor) -> Tensor:
            return x.cumsum(1) * scale.sum()

    assert not from_module(Rows(), (torch.randn(2, 7, 16), torch.tensor([0, 7]))).packs_documents


def test_nested_tensors_are_refused_with_what_to_do() -> None:
    ragged = torch.nested.nested_tensor([torch.randn(3, 16), torch.randn(5, 16)], layout=torch.jagged)
    with pytest.raises(SubjectError, match="expected dense tensors; got a nested or sparse one: give its rows padded"):
        from_module(nn.Linear(16, 16), ragged)
