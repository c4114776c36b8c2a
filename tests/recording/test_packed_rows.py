"""`pack_padded_sequence` cannot be recorded: the reason is a sentence, and laws that call the model decide."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from orderproof import audit


class Encoder(nn.Module):
    """A recurrence in both directions, which reads pads first unless rows are packed."""

    def __init__(self, *, packs: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.packs = packs
        self.words, self.mix = nn.Embedding(50, 8), nn.LSTM(8, 8, bidirectional=True, batch_first=True)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        x = self.words(ids)
        if not self.packs:
            return self.mix(x)[0]
        rows = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.mix(rows)[0], batch_first=True, total_length=ids.shape[1])[0]


def findings(*, packs: bool) -> dict[str, tuple[str, str]]:
    inputs = (torch.randint(50, (2, 8)), torch.tensor([8, 6]))
    report = audit(Encoder(packs=packs), inputs=inputs, kind="encoder", laws=["padding", "batch_composition"])
    return {f.law: (f.verdict, f.reason) for f in report.findings}


def test_the_laws_that_call_the_model_decide_without_a_recording() -> None:
    found = findings(packs=True)
    assert found["batch_composition"][0] == "held"
    assert found["padding"][0] == "undecided"
    assert "pack_padded_sequence reads the lengths as numbers" in found["padding"][1]


def test_a_recurrence_that_reads_pads_first_is_found() -> None:
    found = findings(packs=False)
    assert {law: verdict for law, (verdict, _) in found.items()} == dict.fromkeys(found, "refuted")
