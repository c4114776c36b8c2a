"""Pads that a module finds by their id: rows of several lengths are given to modules that take no mask."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.models import from_module
from orderproof.records.audit import Report

IDS = torch.arange(1, 19).view(2, 9)


class Encoder(nn.Module):
    """Attention over ids, of which some are pads."""

    def __init__(self, pad: int | None = 0, *, masks: bool = True) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16, padding_idx=pad), nn.Embedding(64, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True)
        self.masks = masks

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.layer(x, src_key_padding_mask=ids == 0 if self.masks else None)


class Classifier(nn.Module):
    """The mean of the states of an encoder, of real tokens or of all."""

    def __init__(self, *, real: bool) -> None:
        super().__init__()
        self.encoder, self.real = Encoder(), real

    def forward(self, ids: Tensor) -> Tensor:
        x = self.encoder(ids)
        if not self.real:
            return x.mean(1)
        real = (ids != 0)[..., None]
        return (x * real).sum(1) / real.sum(1)


class LastState(nn.Module):
    """The last state of an LSTM, which it may have read from pads."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm = nn.Embedding(50, 16, padding_idx=0), nn.LSTM(16, 16, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.lstm(self.words(ids))[0][:, -1]


class LastReal(nn.Module):
    """The state of the last real token, for pads on the right."""

    def __init__(self) -> None:
        super().__init__()
        self.causal = Causal()

    def forward(self, ids: Tensor) -> Tensor:
        return self.causal(ids)[torch.arange(len(ids)), (ids != 0).sum(1) - 1]


class Causal(nn.Module):
    """A decoder without a mask for pads, which it never reads if they are on the right."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.layer(self.words(ids), src_mask=torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool())


def _outcomes(report: Report) -> dict[str, str]:
    return {f.law: f.outcome for f in report.findings if f.law in ("batch_composition", "pooled_padding")}


@pytest.mark.parametrize(
    ("module", "outcomes"),
    [
        (Encoder(), ("pass", "undecided")),
        (Encoder(masks=False), ("fail", "undecided")),
        (Classifier(real=True), ("pass", "pass")),
        (Classifier(real=False), ("pass", "fail")),
        (LastState(), ("pass", "fail")),
        (Causal(), ("pass", "undecided")),
        (LastReal(), ("pass", "pass")),
    ],
    ids=["masked", "not masked", "mean of real", "mean of all", "last state", "causal", "last real"],
)
def test_rows_are_padded_with_the_id(module: nn.Module, outcomes: tuple[str, str]) -> None:
    subject = from_module(module.eval(), IDS)
    report = audit(subject, laws=["batch_composition", "pooled_padding"])
    assert _outcomes(report) == dict(zip(("batch_composition", "pooled_padding"), outcomes, strict=True))
    assert any(note.startswith("id 0 marks pads (padding_idx of ") for note in subject.notes)


def test_pads_in_the_example_are_no_real_tokens() -> None:
    ids = IDS.clone()
    ids[1, 6:] = 0
    subject = from_module(Encoder().eval(), ids)
    adapter = subject.build_adapter()
    assert not (adapter.sample_tokens(8, 9, 0) == 0).any()
    assert adapter.padded_sides == {"right"}
    assert _outcomes(audit(subject, laws=["batch_composition"])) == {"batch_composition": "pass"}


def test_an_id_of_pads_is_no_mask_that_may_be_ignored() -> None:
    (finding,) = audit(from_module(Causal().eval(), IDS), laws=["ignored_arguments"]).findings
    assert "it takes no position ids and no mask" in finding.reason


@pytest.mark.parametrize(
    ("name", "value"),
    [("pad_id", 0), ("src_pad_idx", 0), ("config", SimpleNamespace(pad_token_id=0)), ("args", {"padding_idx": 0})],
)
def test_an_attribute_may_name_the_id(name: str, value: object) -> None:
    module = Encoder(None, masks=False).eval()
    setattr(module, name, value)
    assert _outcomes(audit(from_module(module, IDS), laws=["batch_composition"])) == {"batch_composition": "fail"}


def test_the_id_can_be_stated() -> None:
    module = Encoder(None, masks=False).eval()
    stated = from_module(module, IDS, roles={"ids": "pads:0"})
    assert _outcomes(audit(stated, laws=["batch_composition"])) == {"batch_composition": "fail"}
    without = from_module(Encoder(masks=False).eval(), IDS, roles={"ids": "pads:none"})
    assert _outcomes(audit(without, laws=["batch_composition"])) == {"batch_composition": "pass"}


@pytest.mark.parametrize("attributes", [{"pad_id": 0, "trg_pad_id": 1}, {"padding": 0, "pad": 0, "pad_width_id_": 0}])
def test_two_ids_and_widths_of_padding_say_nothing(attributes: dict[str, int]) -> None:
    module = Encoder(None, masks=False).eval()
    vars(module).update(attributes)
    assert not any("marks pads" in note for note in from_module(module, IDS).notes)


@pytest.mark.parametrize(
    ("inputs", "roles", "message"),
    [
        (IDS, {"words": "pads:0"}, "expected the first input, ids, with the id of its pads; got 'words'"),
        (IDS, {"ids": "pads:x"}, "expected a role, one of "),
        (torch.randn(2, 7, 16), {"src": "pads:0"}, r"expected ids \[row, token\] in 'src'"),
    ],
    ids=["another input", "no id", "vectors"],
)
def test_a_wrong_statement_gets_one_line(inputs: Tensor, roles: dict[str, str], message: str) -> None:
    module = nn.TransformerEncoderLayer(16, 2, batch_first=True) if inputs.is_floating_point() else Encoder()
    with pytest.raises(UsageError, match=message):
        from_module(module.eval(), inputs, roles=roles)
