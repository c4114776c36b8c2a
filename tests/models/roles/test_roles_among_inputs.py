"""Masks, position ids and companions among the example inputs: their roles, and the faults that they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.models import from_module
from orderproof.subject_spec import StatedMask, parse_layout

IDS = torch.randint(0, 60, (2, 9), generator=torch.Generator().manual_seed(0))
ONES = torch.ones(2, 9, dtype=torch.long)


class Encoder(nn.Module):
    """Attention with positions; `drops` leaves its mask out."""

    def __init__(self, *, drops: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.drops = drops
        self.words, self.places, self.types = nn.Embedding(60, 16), nn.Embedding(512, 16), nn.Embedding(2, 16)
        self.qkv = nn.Linear(16, 48)

    def attend(self, x: Tensor, bias: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.mT / 4
        return x + (scores if self.drops else scores + bias).softmax(-1) @ v

    def embed(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        return self.words(ids) + self.places(torch.arange(ids.shape[1]) if positions is None else positions)


class PadsMarked(Encoder):
    """A second positional input, True at pads, whose name says nothing."""

    def forward(self, ids: Tensor, ignored: Tensor) -> Tensor:
        bias = torch.zeros(ids.shape).masked_fill(ignored, -torch.inf)
        return self.attend(self.embed(ids), bias[:, None])


class AddedInABatch(Encoder):
    """A mask of four axes in a mapping, which is added to scores."""

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return self.attend(self.embed(batch["tokens"]), batch["bias"][:, 0])


class WithTypes(Encoder):
    """The tokenizer's output with types of tokens, and position ids."""

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor, position_ids: Tensor
    ) -> Tensor:
        x = self.embed(input_ids, position_ids) + self.types(token_type_ids)
        return self.attend(x, (1.0 - attention_mask[:, None].float()) * torch.finfo(torch.float32).min)


class Convolution(Encoder):
    """A convolution over tokens that are set to zero at pads; the mask has three axes and the first place."""

    def __init__(self, *, drops: bool) -> None:
        super().__init__(drops=drops)
        self.mix = nn.Conv1d(16, 16, 3, padding=1)

    def forward(self, kept: Tensor, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        x = x if self.drops else x * kept.mT.to(x.dtype)
        return x + self.mix(x.mT).mT


class Flags(Encoder):
    """A float mask among keyword arguments, with a number and a flag."""

    def forward(self, *, x: Tensor, pad_mask: Tensor, scale: float, training: bool) -> Tensor:
        return self.attend(x * scale, torch.log(pad_mask)[:, None])


CASES: dict[str, tuple[Callable[..., nn.Module], Any]] = {
    "pads marked": (PadsMarked, (IDS, torch.zeros(2, 9, dtype=torch.bool))),
    "added, in a mapping": (AddedInABatch, ({"tokens": IDS, "bias": torch.zeros(2, 1, 1, 9)},)),
    "with types and positions": (
        WithTypes,
        {
            "input_ids": IDS,
            "token_type_ids": (torch.arange(9) > 4).long().expand(2, -1).clone(),
            "attention_mask": ONES,
            "position_ids": torch.arange(9).expand(2, -1).clone(),
        },
    ),
    "flags": (Flags, {"x": torch.randn(2, 9, 16), "pad_mask": torch.ones(2, 9), "scale": 2.0, "training": False}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mask_among_the_inputs_that_is_dropped_fails_padding(name: str) -> None:
    build, inputs = CASES[name]
    roles = {} if name == "with types and positions" else {"roles": {_mask_of(inputs): "mask"}}
    if name in ("pads marked", "added, in a mapping"):  # a dropped mask hides nothing, and its name does not tell
        roles = {"roles": {_mask_of(inputs): "mask:pads" if name == "pads marked" else "mask"}}
    report = audit(build(drops=True), laws=["padding"], inputs=inputs, **roles)
    assert [f.outcome for f in report.findings] == ["fail"]
    assert report.exit_code == 1


@pytest.mark.parametrize("name", CASES)
def test_a_mask_among_the_inputs_that_is_applied_passes(name: str) -> None:
    build, inputs = CASES[name]
    report = audit(build(drops=False), laws=["padding", "batch_composition", "stateless"], inputs=inputs)
    assert [f.outcome for f in report.findings] == ["pass"] * 3, [f.reason for f in report.findings]
    assert any(
        role.name == _mask_of(inputs) and role.role.startswith("padding mask") and role.known_by.startswith("calls")
        for role in report.subject.inputs
    )


def _mask_of(inputs: Any) -> str:
    if isinstance(inputs, Mapping):
        return next(name for name in inputs if "mask" in name)
    return "bias" if isinstance(inputs[0], Mapping) else "ignored"


def test_no_law_waits_for_a_single_input() -> None:
    build, inputs = CASES["with types and positions"]
    report = audit(build(drops=False), inputs=inputs, kind="encoder")
    assert not [f for f in report.findings if f.verdict == "undecided"], report.findings
    roles = {role.name: role.role for role in report.subject.inputs}
    assert roles["input_ids"] == "tokens: ids"
    assert roles["token_type_ids"] == "moves and grows with the tokens"
    assert roles["position_ids"] == "position ids"


def test_a_mask_that_comes_first_is_no_token() -> None:
    subject = from_module(Convolution(drops=False), {"kept": torch.ones(2, 1, 9), "ids": IDS}, roles={"kept": "mask"})
    assert [x.shape for x in subject.sample(9).inputs] == [(2, 9)]


def test_the_role_of_an_input_can_be_stated() -> None:
    build, inputs = CASES["pads marked"]
    held = from_module(build(drops=False), inputs, length=9, roles={"ignored": "held"})
    assert held.token_axes == (1, None)
    assert [(r.name, r.known_by) for r in held.input_roles if r.name == "ignored"] == [("ignored", "stated")]
    moving = from_module(build(drops=False), inputs, roles={"ignored": "companion"})
    assert moving.token_axes == (1, 1)
    layout = parse_layout(None, None, roles=["ignored=mask:pads", "where=positions", "x=held"])
    assert layout.mask == StatedMask("ignored", marks_pads=True)
    assert (layout.position_ids, layout.roles) == ("where", {"x": "held"})


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"ignored": "masks"}, "expected a role, one of mask, mask:real, .*got 'masks'; did you mean 'mask'"),
        ({"ignore": "held"}, "expected the name of an input, one of ids, ignored; got 'ignore'; did you mean"),
        ({"ids": "held"}, "expected tokens in the first input"),
    ],
)
def test_roles_that_do_not_fit_are_refused(roles: dict[str, str], message: str) -> None:
    build, inputs = CASES["pads marked"]
    with pytest.raises(UsageError, match=message):
        from_module(build(drops=False), inputs, roles=roles)


class TorchEncoder(nn.Module):
    """torch's own encoder, which takes its fast path with nested tensors where a mask is given."""

    def __init__(self, *, drops: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.words, self.places, self.layers = (
            nn.Embedding(60, 16),
            nn.Embedding(512, 16),
            nn.TransformerEncoder(layer, 2),
        )
        self.drops = drops

    def forward(self, ids: Tensor, key_padding_mask: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.layers(x, src_key_padding_mask=None if self.drops else key_padding_mask)


@pytest.mark.parametrize(("drops", "outcome", "verdict"), [(False, "pass", "proved"), (True, "fail", "refuted")])
def test_padding_of_the_encoder_of_torch_is_proved_with_a_mask(*, drops: bool, outcome: str, verdict: str) -> None:
    inputs = (IDS, torch.zeros(2, 9, dtype=torch.bool))
    (found,) = audit(TorchEncoder(drops=drops), laws=["padding"], inputs=inputs).findings
    assert (found.outcome, found.verdict) == (outcome, verdict), found.reason
