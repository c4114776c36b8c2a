"""A law that is named is expected to hold, a law that otherwise only describes a model too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, prove
from orderproof.models import from_module

X = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0))
PACKED = {"x": X[0], "cu_seqlens": torch.tensor([0, 3, 7])}
Built = Callable[[], tuple[nn.Module, object]]


class Mixer(nn.Module):
    """Attention over all tokens, with or without a table of positions."""

    def __init__(self, *, table: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Parameter(torch.randn(64, 8)) if table else None

    def forward(self, x: Tensor) -> Tensor:
        if self.table is not None:
            x = x + self.table[: x.shape[1]]
        return (x @ x.mT).softmax(-1) @ x


class Nearby(nn.Module):
    """Attention with a bias for the distance of two tokens, with a sign or without."""

    def __init__(self, *, signed: bool) -> None:
        super().__init__()
        self.signed = signed

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        distances = (places[:, None] - places).float()
        return (x @ x.mT + (distances if self.signed else distances.abs())).softmax(-1) @ x


class Documents(nn.Module):
    """Attention among the tokens of one document, or among all tokens."""

    def __init__(self, *, masked: bool) -> None:
        super().__init__()
        self.masked = masked

    def forward(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
        document = torch.bucketize(torch.arange(len(x)), cu_seqlens[1:], right=True)
        other = document[:, None] != document if self.masked else document[:, None] < 0
        return (x @ x.T).masked_fill(other, -torch.inf).softmax(-1) @ x


class Distances(nn.Module):
    """Attention with a bias for position ids: their differences, or each by itself."""

    def __init__(self, *, relative: bool) -> None:
        super().__init__()
        self.relative = relative

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        if position_ids is None:
            position_ids = torch.arange(x.shape[1]).expand(x.shape[:2])
        keys = position_ids[:, None, :].float()
        bias = keys - position_ids[:, :, None].float() if self.relative else keys
        return (x @ x.mT - bias.square()).softmax(-1) @ x


class LastToken(nn.Module):
    """The mean of all tokens, or with more weight on later ones."""

    def __init__(self, *, weighted: bool) -> None:
        super().__init__()
        self.weighted = weighted

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.arange(x.shape[1])[:, None].float() if self.weighted else torch.ones(x.shape[1], 1)
        return (x * weight).sum(1)


PAIRS: dict[str, tuple[str, Built, Built]] = {
    "a table of positions": (
        "permutation", lambda: (Mixer(table=True), X), lambda: (Mixer(table=False), X),
    ),
    "a pooled output": (
        "OP101", lambda: (LastToken(weighted=True), X), lambda: (LastToken(weighted=False), X),
    ),
    "distances": ("reversal", lambda: (Nearby(signed=True), X), lambda: (Nearby(signed=False), X)),
    "documents": (
        "packing",
        lambda: (Documents(masked=False), PACKED),
        lambda: (Documents(masked=True), PACKED),
    ),
    "positions": (
        "position_shift", lambda: (Distances(relative=False), X), lambda: (Distances(relative=True), X),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_a_named_property_fails_or_passes(name: str) -> None:
    law, bad, good = PAIRS[name]
    for build, code, outcome in ((bad, 1, "fail"), (good, 0, "pass")):
        module, inputs = build()
        report = audit(module, inputs=inputs, laws=[law])
        assert (report.exit_code, {f.outcome for f in report.findings}) == (code, {outcome})


@pytest.mark.parametrize("name", PAIRS)
def test_nothing_is_expected_of_it_if_any_is_stated(name: str) -> None:
    law, bad, _ = PAIRS[name]
    module, inputs = bad()
    report = audit(module, inputs=inputs, laws=[law], expect={law: "any"})
    assert report.exit_code == 0
    assert {f.kind for f in report.findings} == {"property"}


def test_prove_expects_the_same() -> None:
    assert prove(Mixer(table=True), "permutation", inputs=X).outcome == "fail"
    assert prove(Mixer(table=True), "permutation", inputs=X, expect="any").outcome == "yes"
    assert prove(Mixer(table=True), "permutation", inputs=X, expect="fails").outcome == "pass"


def test_without_a_name_the_same_laws_describe_the_model() -> None:
    report = audit(from_module(Mixer(table=True), X))
    assert report.exit_code == 0
    assert {f.kind for f in report.findings if f.law == "permutation"} == {"property"}
