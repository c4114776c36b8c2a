"""Models of two sequences, as those that translate: their square masks, masks given twice, and their causality."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.models import Subject, from_module

CAUSAL = nn.Transformer.generate_square_subsequent_mask
ROWS, SOURCE, TARGET = 2, 7, 5


class Translator(nn.Module):
    """Tokens along axis 0, which is the layout of `nn.Transformer` unless another is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = nn.Embedding(50, 16)
        self.positions = nn.Parameter(torch.randn(64, 1, 16))
        self.model = nn.Transformer(16, 2, 1, 1, 32, 0.0)

    def embedded(self, ids: Tensor) -> Tensor:
        return self.ids(ids) + self.positions[: len(ids)]

    def forward(self, src: Tensor, trg: Tensor, src_mask: Tensor, tgt_mask: Tensor, src_pads: Tensor, tgt_pads: Tensor,
                memory_pads: Tensor) -> Tensor:  # fmt: skip
        masks = (src_mask, tgt_mask, None, src_pads, tgt_pads, memory_pads)
        return self.model(self.embedded(src), self.embedded(trg), *masks)


class Decoder(nn.Module):
    """Tokens along axis 1, and no masks among the inputs."""

    def __init__(self, ahead: int = 0) -> None:
        super().__init__()
        self.model = nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True)
        self.ahead = ahead

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        seen = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril(self.ahead)
        return self.model(source, target, tgt_mask=~seen)


class Placed(nn.Module):
    """Memory with positions of its own, as in DETR, and outputs of all rows in one axis."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: Tensor, memory: Tensor, memory_pads: Tensor, places: Tensor) -> Tensor:
        keys = memory + places
        return self.model(x, keys, memory, key_padding_mask=memory_pads)[0].flatten(0, 1)


class OfImage(nn.Module):
    """Queries of its own to a memory, whose positions come after it, with a mask that may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(3, 16))
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, memory: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
        queries = self.query.expand(len(memory), 3, 16)
        return self.attention(queries, memory + places, memory, key_padding_mask=mask)[0]


class Loss(nn.Module):
    """One number of a batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(1).square().mean()


class Joined(nn.Module):
    """One sequence in two parts: the output grows with both."""

    def forward(self, image: Tensor, text: Tensor) -> Tensor:
        return torch.cat((image, text), 1).cumsum(1)


def _inputs(target: int = TARGET) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    draw = lambda n: torch.randint(1, 50, (n, ROWS), generator=generator)  # noqa: E731
    pads = lambda n: torch.zeros(ROWS, n, dtype=torch.bool)  # noqa: E731
    return {
        "src": draw(SOURCE), "trg": draw(target), "src_mask": torch.zeros(SOURCE, SOURCE, dtype=torch.bool),
        "tgt_mask": CAUSAL(target), "src_pads": pads(SOURCE), "tgt_pads": pads(target), "memory_pads": pads(SOURCE),
    }  # fmt: skip


def _vectors(rows: int, tokens: int) -> Tensor:
    return torch.randn(rows, tokens, 16, generator=torch.Generator().manual_seed(tokens))


def _roles(subject: Subject) -> dict[str, str]:
    return {one.name: one.role for one in subject.input_roles}


@pytest.fixture(scope="module")
def translator() -> nn.Module:
    torch.manual_seed(0)
    return Translator().eval()


@pytest.mark.parametrize("target", [TARGET, SOURCE], ids=["two lengths", "one length"])
@pytest.mark.filterwarnings("ignore")
def test_each_mask_belongs_to_its_sequence(translator: nn.Module, target: int) -> None:
    subject = from_module(translator, _inputs(target))
    roles = _roles(subject)
    assert "tokens run along axis 0 of the first input, as a mask shows" in subject.notes
    assert roles["src_mask"] == "square mask of one value"
    assert roles["tgt_mask"] == "triangular mask of trg"
    assert roles["src_pads"] == roles["memory_pads"] == "padding mask, True at pads"
    assert roles["tgt_pads"] == "padding mask of trg, True at pads"
    again = next(one for one in subject.input_roles if one.name == "memory_pads")
    assert again.known_by.startswith("calls: it and src_pads hide a token together")


def _causal(module: nn.Module, inputs: Any) -> dict[str, Any]:
    report = audit(module, inputs=inputs, laws=["causal", "padding"])
    return {f"{f.law} {f.call_mode}": f for f in report.findings}


@pytest.mark.filterwarnings("ignore")
def test_causality_of_the_target_is_a_theorem_and_its_absence_a_witness(translator: nn.Module) -> None:
    found = _causal(translator, _inputs())
    assert {k for k, f in found.items() if f.theorem and f.theorem.proved} == {
        "causal tokens of trg", "padding padded", "padding pads of trg",
    }  # fmt: skip
    one_ahead = _inputs() | {"tgt_mask": torch.full((TARGET, TARGET), -torch.inf).triu(2)}
    found = _causal(translator, one_ahead)
    assert found["causal tokens of trg"].verdict == "refuted"


@pytest.mark.parametrize(("ahead", "verdict"), [(0, "proved"), (1, "refuted")])
def test_a_target_without_masks_is_a_sequence_since_the_output_grows_with_it(ahead: int, verdict: str) -> None:
    torch.manual_seed(0)
    decoder = Decoder(ahead).eval()
    inputs = (_vectors(ROWS, SOURCE), _vectors(ROWS, TARGET))
    roles = {one.name: one.known_by for one in from_module(decoder, inputs).input_roles}
    assert roles["target"] == "calls: an output grows with it"
    assert _causal(decoder, inputs)["causal tokens of target"].verdict == verdict


def test_positions_of_the_memory_go_with_it() -> None:
    memory = _vectors(ROWS, SOURCE)
    inputs = {
        "x": _vectors(ROWS, TARGET),
        "memory": memory,
        "memory_pads": torch.zeros(ROWS, SOURCE).bool(),
        "places": memory,
    }
    torch.manual_seed(0)
    module = Placed().eval()
    subject = from_module(module, inputs)
    roles = _roles(subject)
    assert list(subject.other_sequences) == ["memory"]
    assert roles["places"] == "moves and grows with memory"
    assert roles["memory_pads"] == "padding mask of memory, True at pads"
    assert _causal(module, inputs)["padding pads of memory"].verdict == "proved"


def test_positions_of_the_tokens_are_no_sequence_of_their_own() -> None:
    subject = from_module(OfImage().eval(), {"memory": _vectors(ROWS, SOURCE), "places": _vectors(ROWS, SOURCE)})
    roles = _roles(subject)
    assert not subject.other_sequences
    assert subject.max_length is None
    assert roles["places"] == "moves and grows with the tokens"
    assert roles["mask"].startswith("padding mask, True at pads")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("side", ["right", "no", "left"])
def test_pads_on_the_left_that_give_nan_are_left_out_unless_the_example_has_them(side: str) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()  # its fast path gives NaN
    pads = torch.zeros(ROWS, SOURCE, dtype=torch.bool)
    pads[1, {"right": slice(-2, None), "no": slice(0), "left": slice(2)}[side]] = True
    inputs = {"src": _vectors(ROWS, SOURCE), "src_mask": CAUSAL(SOURCE) < 0, "src_key_padding_mask": pads}
    (finding,) = audit(layer, inputs=inputs, laws=["padding"]).findings
    assert finding.verdict == ("undecided" if side == "left" else "proved")
    assert finding.call_mode == ("padded" if side == "left" else "padded right")
    role = _roles(from_module(layer, inputs))["src_key_padding_mask"]
    assert ("with pads on the left the output is NaN" in role) is (side != "left")


@pytest.mark.filterwarnings("ignore")
def test_pads_on_the_right_only_have_theorems_that_say_so() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).eval()
    pads = torch.zeros(ROWS, SOURCE, dtype=torch.bool)
    inputs = {"src": _vectors(ROWS, SOURCE), "mask": CAUSAL(SOURCE) < 0, "src_key_padding_mask": pads}
    for finding in audit(encoder, inputs=inputs, laws=["causal", "padding", "batch"]).findings:
        assert finding.theorem is not None
        assert finding.theorem.covers[-1].startswith("every attention mask with pads on the right")


def test_a_loss_has_no_rows_to_compare() -> None:
    (finding,) = audit(Loss(), inputs=_vectors(ROWS, SOURCE), laws=["batch_composition"]).findings
    assert finding.reason.endswith("its output has no axis of rows")


def test_a_part_of_the_sequence_is_no_sequence_of_its_own() -> None:
    subject = from_module(Joined(), (_vectors(ROWS, SOURCE), _vectors(ROWS, TARGET)))
    assert not subject.other_sequences


def test_a_square_mask_is_held_if_it_is_stated(translator: nn.Module) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    inputs = {"src": _vectors(ROWS, SOURCE), "src_mask": torch.zeros(SOURCE, SOURCE)}
    assert _roles(from_module(layer, inputs))["src_mask"] == "square mask of one value"
    held = from_module(layer, inputs, roles={"src_mask": "held"})
    assert _roles(held)["src_mask"].startswith("held")
    assert held.max_length == SOURCE
