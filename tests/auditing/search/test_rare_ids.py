"""A law that only rare token ids break is refuted: the search tries the ids that a graph compares tokens with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.records.audit import Finding

IDS = 1000
Marks = Callable[[Tensor], Tensor]  # where a marker is, [row, token]
MARKS: dict[str, Marks] = {
    "equal to 2": lambda ids: ids == 2,
    "equal to 777": lambda ids: ids == 777,
    "not equal to 777": lambda ids: ~(ids != 777),
    "below 3": lambda ids: ids < 3,
    "at most 2": lambda ids: ids <= 2,
    "above 997": lambda ids: ids > 997,
    "at least 998": lambda ids: ids >= 998,
    "equal to a stored number": lambda ids: ids == torch.tensor(777),
    "one of two": lambda ids: torch.isin(ids, torch.tensor([2, 777])),
}


class Marked(nn.Module):
    """Word vectors that are scaled by a count of markers."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(IDS, 8)
        self.marks = marks

    def forward(self, ids: Tensor) -> Tensor:
        return self.words(ids) * (1 + self.count(self.marks(ids).long())).unsqueeze(-1)

    def count(self, marks: Tensor) -> Tensor:
        raise NotImplementedError


class CountsLater(Marked):
    def count(self, marks: Tensor) -> Tensor:
        return marks.flip(1).cumsum(1).flip(1)


class CountsEarlier(Marked):
    def count(self, marks: Tensor) -> Tensor:
        return marks.cumsum(1)


class CountsOtherRows(Marked):
    def count(self, marks: Tensor) -> Tensor:
        return marks.sum(0, keepdim=True)


def found(kind: type[Marked], marks: str, law: str) -> Finding:
    ids = torch.randint(8, 900, (3, 7), generator=torch.Generator().manual_seed(1))
    return prove(kind(MARKS[marks]), law, inputs=(ids,))


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize(
    ("kind", "law"), [(CountsLater, "causal"), (CountsEarlier, "permutation"), (CountsOtherRows, "batch")]
)
def test_a_law_that_a_rare_id_breaks_is_refuted(kind: type[Marked], law: str, marks: str) -> None:
    finding = found(kind, marks, law)
    assert finding.verdict == "refuted", finding.reason
    assert finding.witness is not None
    assert finding.deviation.float64 is not None
    assert finding.deviation.float64 > 1e-3


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize(("kind", "law"), [(CountsEarlier, "causal"), (CountsLater, "batch")])
def test_a_law_that_no_id_breaks_is_proved(kind: type[Marked], law: str, marks: str) -> None:
    assert found(kind, marks, law).verdict == "proved"


def test_the_witness_is_short_and_shows_the_id() -> None:
    witness = found(CountsLater, "equal to 777", "causal").witness
    assert witness is not None
    assert len(witness.tokens_before) == 2
    assert witness.tokens_after[1] == "<777>"
