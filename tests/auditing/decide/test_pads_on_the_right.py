"""Theorems about masks with pads on the right, as of a classifier that reads the first token of a row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.auditing.api import as_subject, audit_context, report_on_law
from orderproof.auditing.decide.theorem_certificates import theorem_certificate
from orderproof.records.audit import Finding
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem, digest_of

ROWS, TOKENS = 2, 7


class Reader(nn.Module):
    """Attention on real tokens, and one of its outputs."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.key, self.place = nn.Linear(16, 16), place

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        scores = (x @ self.key(x).transpose(1, 2)).masked_fill(~mask[:, None].bool(), -torch.inf)
        return (scores.softmax(-1) @ x)[:, self.place]


class FirstUnlessAllIsReal(Reader):
    """The same, which leaves its mask out where no token is a pad."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return ((x @ self.key(x).transpose(1, 2)).softmax(-1) @ x)[:, 0] if mask.all() else super().forward(x, mask)


class LastReal(nn.Module):
    """The score of the last token of a row, by the number of its real tokens: a reward model."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.score = nn.Embedding(50, 16), nn.Linear(16, 1)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        own = self.table(ids)
        scores = self.score(own + (own * mask[..., None]).cumsum(1))[..., 0]
        return scores[torch.arange(len(ids)), mask.sum(1) - 1]


def inputs() -> dict[str, Tensor]:
    mask = torch.ones(ROWS, TOKENS, dtype=torch.long)
    mask[1, -2:] = 0
    return {"x": torch.randn(ROWS, TOKENS, 16), "mask": mask}


def certificate_of(module: nn.Module) -> dict[str, Any]:
    context = audit_context(as_subject(module.eval(), inputs=inputs()))
    (finding,) = report_on_law(context, "padding").findings
    assert (finding.verdict, finding.call_mode) == ("proved", "padded right")
    certificate = theorem_certificate(context, finding)
    assert certificate is not None
    return certificate


def test_the_first_token_ignores_pads_on_the_right_for_every_length() -> None:
    certificate = certificate_of(Reader(0))
    check_theorem(certificate)
    assert certificate["claim"]["covers"] == ["every attention mask with pads on the right"]
    assert certificate["calls"][0]["shared"] == ["right_padding_mask"]


def test_a_branch_for_rows_without_pads_is_a_part_of_the_theorem() -> None:
    certificate = certificate_of(FirstUnlessAllIsReal(0))
    kinds = {one["uniform"] for part in certificate["calls"][0]["ranges"] for one in part["recordings"]}
    assert kinds == {None, "everything_real_on_the_left"}


def test_a_certificate_for_pads_on_the_right_is_none_for_every_mask() -> None:
    certificate = certificate_of(Reader(0))
    certificate["calls"][0]["shared"] = ["attention_mask"]
    certificate["claim"]["covers"] = ["every attention mask"]
    certificate["digest"] = digest_of(certificate)
    with pytest.raises(CertificateError):
        check_theorem(certificate)


@pytest.mark.parametrize("place", [1, -1, -2])
def test_another_token_may_be_a_pad(place: int) -> None:
    (finding,) = audit(Reader(place).eval(), inputs=inputs(), laws=["padding"]).findings
    assert finding.verdict != "proved" or finding.theorem is None or not finding.theorem.proved


def test_an_output_that_reads_a_pad_on_the_left_at_another_length_is_proved_on_the_right() -> None:
    given = {"ids": torch.randint(50, (ROWS, TOKENS)), "mask": inputs()["mask"]}
    report = audit(LastReal().eval(), inputs=given, laws=["padding"])
    (finding,) = report.findings
    assert (finding.verdict, finding.call_mode) == ("proved", "padded right")
    assert any("reads pads of a batch with both sides: pad its rows on the right" in note for note in report.notes)


class LastTokenPool(nn.Module):
    """The last token of each row, as embedders take it: the last of all where each row has a real token there."""

    def __init__(self, asked: int = -1) -> None:
        super().__init__()
        self.key, self.asked = nn.Linear(16, 16), asked

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        hidden = (x @ self.key(x).transpose(1, 2)).masked_fill(~mask[:, None].bool(), -1e9).softmax(-1) @ x + x
        if mask[:, self.asked].sum() == mask.shape[0]:
            return hidden[:, -1]
        return hidden[torch.arange(len(x)), mask.sum(dim=1) - 1]


def test_the_last_token_of_each_row_has_a_theorem() -> None:
    certificate = certificate_of(LastTokenPool())
    check_theorem(certificate)
    kinds = {one["uniform"] for part in certificate["calls"][0]["ranges"] for one in part["recordings"]}
    assert kinds == {None, "everything_real_on_the_left"}


@pytest.mark.parametrize("asked", [0, -2])
def test_a_last_token_by_another_column_has_none(asked: int) -> None:
    (finding,) = audit(LastTokenPool(asked).eval(), inputs=inputs(), laws=["padding"]).findings
    assert finding.verdict != "proved" or finding.theorem is None or not finding.theorem.proved


class Counted(nn.Module):
    """Attention on the tokens of a row up to its number of real tokens and `more`, and the output at a real token."""

    def __init__(self, more: int = 0, place: int = -1) -> None:
        super().__init__()
        self.key, self.more, self.place = nn.Linear(16, 16), more, place

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        real = torch.arange(x.shape[1]) < lengths[:, None] + self.more
        weights = (x @ self.key(x).transpose(1, 2)).masked_fill(~real[:, None], -1e9).softmax(-1)
        return (weights @ x)[torch.arange(len(x)), lengths + self.place]


def padding_of_lengths(module: nn.Module) -> tuple[Finding, dict[str, Any] | None]:
    given = {"x": torch.randn(ROWS, TOKENS, 16), "lengths": torch.tensor([TOKENS, TOKENS - 2])}
    context = audit_context(as_subject(module.eval(), inputs=given))
    (finding,) = report_on_law(context, "padding").findings
    return finding, theorem_certificate(context, finding)


def test_the_last_real_token_by_the_number_of_real_tokens_has_a_theorem() -> None:
    finding, certificate = padding_of_lengths(Counted())
    assert certificate is not None
    check_theorem(certificate)
    assert certificate["claim"]["covers"] == ["every attention mask with pads on the right"]
    assert finding.call_mode == "padded right"


@pytest.mark.parametrize(("more", "place"), [(1, -1), (2, -1), (0, -2), (0, -3)])
def test_a_number_that_is_off_by_one_has_none(more: int, place: int) -> None:
    finding, certificate = padding_of_lengths(Counted(more, place))
    assert certificate is None
    assert finding.verdict != "proved" or finding.theorem is None or not finding.theorem.proved


class Decoder(nn.Module):
    """Causal layers of torch whose mask of pads may be left out; a pad on the left sees no key."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)

    def forward(self, x: Tensor, pad_mask: Tensor | None = None) -> Tensor:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.layers(x, mask=later, src_key_padding_mask=pad_mask)


@pytest.mark.filterwarnings("ignore")
def test_a_mask_that_no_example_gives_is_for_pads_on_the_right_where_others_give_nan() -> None:
    report = audit(Decoder().eval(), inputs=torch.randn(ROWS, TOKENS, 16), laws=["causal", "padding", "batch"])
    theorems = [finding.theorem for finding in report.findings]
    assert len(theorems) == 3
    assert all(one and one.covers[-1].startswith("every attention mask with pads on the right") for one in theorems)
    assert any("with pads on the left the output is NaN" in note for note in report.notes)


class OfOtherRows(nn.Module):
    """What reads the number of real tokens of another row: a pad that only the longest row, or the first, shows."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.value, self.kind, self.cell = nn.Linear(16, 16), kind, nn.GRU(16, 16, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.kind in ("longest", "first"):
            real = torch.arange(x.shape[1]) < (lengths.max() if self.kind == "longest" else lengths[:1])
            return (x @ self.value(x).transpose(1, 2)).masked_fill(~real, -torch.inf).softmax(-1) @ x
        if self.kind == "last of the longest":
            return self.value(x)[:, lengths.max() - 1]
        if self.kind == "first half":
            return self.value(x)[:, : x.shape[1] // 2].sum(1) / lengths[:, None]
        hidden = self.cell(x[:, : int(lengths.max())])[0] if self.kind == "recurrence" else self.value(x)
        return hidden[:, : int(lengths.max())].sum(1) / lengths[:, None]


@pytest.mark.parametrize(
    "kind", ["longest", "first", "last of the longest", "sum to the longest", "recurrence", "first half"]
)
def test_rows_of_several_lengths_show_a_pad_that_a_model_reads(kind: str) -> None:
    given = {"x": torch.randn(ROWS, TOKENS, 16), "lengths": torch.tensor([TOKENS, TOKENS - 2])}
    (finding,) = audit(OfOtherRows(kind).eval(), inputs=given, laws=["padding"]).findings
    assert finding.verdict == "refuted"


class FullRows(nn.Module):
    """Attention without a mask where the longest row, or the first, has no pads."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.key, self.kind = nn.Linear(16, 16), kind

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        scores = x @ self.key(x).transpose(1, 2)
        if (lengths.max() if self.kind == "longest" else lengths[0]) == x.shape[1]:
            return scores.softmax(-1) @ x
        real = torch.arange(x.shape[1]) < lengths[:, None]
        return scores.masked_fill(~real[:, None], -torch.inf).softmax(-1) @ x


@pytest.mark.parametrize("kind", ["longest", "first"])
def test_a_row_without_pads_shows_that_others_lose_their_mask(kind: str) -> None:
    given = {"x": torch.randn(ROWS, TOKENS, 16), "lengths": torch.tensor([TOKENS, TOKENS - 2])}
    (finding,) = audit(FullRows(kind).eval(), inputs=given, laws=["padding"]).findings
    assert finding.verdict == "refuted"


class FullRow(Reader):
    """Attention without a mask where one row, the first or the last, has no pads."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        scores = x @ self.key(x).transpose(1, 2)
        if mask[self.place].all():
            return scores.softmax(-1) @ x
        return scores.masked_fill(mask[:, None] == 0, -1e9).softmax(-1) @ x


@pytest.mark.parametrize("place", [0, -1])
def test_a_row_of_the_mask_without_pads_shows_that_others_lose_theirs(place: int) -> None:
    given = {"x": torch.randn(ROWS, TOKENS, 16), "mask": torch.ones(ROWS, TOKENS, dtype=torch.long)}
    (finding,) = audit(FullRow(place).eval(), inputs=given, laws=["padding"], roles={"mask": "mask"}).findings
    assert finding.verdict == "refuted"


class AtTheNumberOfReal(Reader):
    """The output at the number of real tokens, which is that of the last real one with pads on the right only."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        scores = (x @ self.key(x).transpose(1, 2)).masked_fill(~mask[:, None].bool(), -1e9)
        return (scores.softmax(-1) @ x)[torch.arange(len(x)), mask.sum(1) + self.place]


def test_many_pads_on_the_left_show_that_the_number_of_real_tokens_is_no_place() -> None:
    given = {"x": torch.randn(ROWS, TOKENS, 16), "mask": torch.ones(ROWS, TOKENS, dtype=torch.long)}
    report = audit(AtTheNumberOfReal(-1).eval(), inputs=given, laws=["padding"], roles={"mask": "mask"})
    (finding,) = report.findings
    assert (finding.verdict, finding.call_mode) == ("proved", "padded right")
    assert any("pad its rows on the right" in note for note in report.notes)


class SumOfReal(Counted):
    """The same attention for each token, and no order: a mask of pads on the right is none for other orders."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        real = torch.arange(x.shape[1]) < lengths[:, None]
        return (x @ self.key(x).transpose(1, 2)).masked_fill(~real[:, None], -1e9).softmax(-1) @ x


def test_a_permutation_is_proved_without_pads_only() -> None:
    given = {"x": torch.randn(ROWS, TOKENS, 16), "lengths": torch.tensor([TOKENS, TOKENS - 2])}
    (finding,) = audit(SumOfReal().eval(), inputs=given, laws=["permutation"]).findings
    assert finding.theorem is None or finding.theorem.covers in ((), ("every permutation of the tokens",))
