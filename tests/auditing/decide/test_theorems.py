"""Theorems of an audit: a theorem about calls with and without a mask holds for both."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.auditing.api import as_subject, audit_context, report_on_law
from orderproof.auditing.decide import verdict
from orderproof.auditing.decide.theorem_certificates import theorem_certificate
from orderproof.auditing.decide.theorems import EVERY_DEPTH_ASSUMPTION
from orderproof.auditing.record import open_calls
from orderproof.auditing.record.assumptions import TWIN_ASSUMPTION
from orderproof.logic.terms import FALSE
from orderproof.models import load
from orderproof.records.audit import Theorem
from orderproof_recheck.theorem import check_theorem

TURN = 40  # [tokens] up to which the module keeps the order


class ReversesLongInputs(nn.Module):
    """A map of each token; more than `TURN` tokens are reversed first, in calls with or without a mask."""

    def __init__(self, *, masked: bool) -> None:
        super().__init__()
        self.masked = masked
        self.map = nn.Linear(8, 8)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The outputs."""
        reverses = (attention_mask is not None) == self.masked and x.shape[1] > TURN
        return self.map(x.flip(1) if reverses else x)


@pytest.fixture
def without_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the runs at other lengths, which refute a law that no theorem covers there."""
    monkeypatch.setattr(verdict, "compare_other_calls", lambda _context, _law, finding, _prove, **_: finding)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.usefixtures("without_other_calls")
def test_the_range_of_lengths_is_that_of_the_calls_with_and_without_a_mask(masked: bool) -> None:
    module, x = ReversesLongInputs(masked=masked).eval(), torch.randn(2, TURN + 1, 8)
    finding = prove(module, "causal", inputs=x[:, :7])
    mask = (torch.ones(2, TURN + 1),) if masked else ()
    kept = (torch.arange(TURN + 1) < TURN)[:, None]
    first, second = module(x, *mask), module(torch.where(kept, x, 0.0), *mask)
    assert not torch.allclose(first[:, :TURN], second[:, :TURN])  # the law fails at this length
    theorem = finding.theorem
    assert theorem is not None
    assert theorem.proved
    assert (theorem.least_length, theorem.greatest_length) == (2, TURN)
    assert theorem.covers[0] == "no attention mask"
    assert theorem.covers[1].startswith("every attention mask")


def test_nothing_follows_from_conditions_that_contradict_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    original = open_calls.record_open
    monkeypatch.setattr(
        open_calls,
        "record_open",
        lambda *a, **k: [dataclasses.replace(g, conditions=(FALSE,)) for g in original(*a, **k)],
    )
    theorem = prove(nn.Linear(8, 8).eval(), "causal", inputs=torch.randn(2, 7, 8)).theorem
    assert theorem is not None
    assert not theorem.proved
    assert "do not hold for the length at which it was made" in theorem.reason


class ScansInChunks(nn.Module):
    """A running sum in chunks of four. The last chunk is filled with zeros if the length is no multiple of four."""

    def __init__(self, *, own: bool) -> None:
        super().__init__()
        self.own = own
        self.map = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs; with `own`, each token also gets the total of its own chunk."""
        filled = nn.functional.pad(self.map(x), (0, 0, 0, -x.shape[1] % 4))
        within = filled.reshape(x.shape[0], -1, 4, 8).cumsum(2)
        totals = within[:, :, -1].cumsum(1)
        before = totals if self.own else torch.cat([torch.zeros_like(totals[:, :1]), totals], 1)[:, :-1]
        return (within + before[:, :, None]).reshape(x.shape[0], -1, 8)[:, : x.shape[1]]


class DoublesFourTokens(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x if x.shape[1] == 4 else x


class CopiesFourTokens(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x[:, :2], x[:, 2:4]], 1) if x.shape[1] == 4 else x


class DoublesOddLengths(nn.Module):
    """A map of each token, and twice that if their number is odd; with `flips`, their order reversed then too."""

    def __init__(self, *, flips: bool) -> None:
        super().__init__()
        self.flips = flips
        self.map = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        if x.shape[1] % 2 == 0:
            return self.map(x)
        return 2 * self.map(x.flip(1) if self.flips else x)


def causal_theorem(module: nn.Module, tokens: int) -> tuple[Theorem | None, str]:
    """The theorem about causality, and the sentence of its certificate."""
    context = audit_context(as_subject(module.eval(), inputs=torch.randn(2, tokens, 8)), length=tokens)
    (finding,) = report_on_law(context, "causal").findings
    made = theorem_certificate(context, finding)
    return finding.theorem, "" if made is None else check_theorem(made).theorem


def test_a_scan_in_chunks_is_causal_at_every_length() -> None:
    theorem, sentence = causal_theorem(ScansInChunks(own=False), 7)
    assert theorem is not None
    assert theorem.proved
    assert (theorem.least_length, theorem.greatest_length, theorem.conditions) == (2, None, ())
    assert sentence == "causal: for every length from 2 on, every batch size of at least 2 and every weight"


def test_a_scan_that_adds_the_total_of_the_own_chunk_is_not_causal() -> None:
    assert prove(ScansInChunks(own=True).eval(), "causal", inputs=torch.randn(2, 7, 8)).verdict == "refuted"


def test_recordings_with_conditions_are_joined_where_they_cover_every_length() -> None:
    theorem, sentence = causal_theorem(DoublesOddLengths(flips=False), 7)
    assert theorem is not None
    assert (theorem.least_length, theorem.greatest_length, theorem.conditions) == (2, None, ())
    assert sentence == "causal: for every length from 2 on, every batch size of at least 2 and every weight"


class AttendsInBlocks(nn.Module):
    """Causal attention within blocks of four tokens; the last block is filled with zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        batch, tokens, width = x.shape
        filled = nn.functional.pad(x, (0, 0, 0, -tokens % 4)).view(batch, -1, 4, width)
        scores = self.query(filled) @ self.key(filled).transpose(-1, -2)
        hidden = ~torch.ones(4, 4, dtype=torch.bool).tril()
        mixed = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ self.value(filled)
        return mixed.reshape(batch, tokens + -tokens % 4, width)[:, :tokens]


def test_conditions_of_recordings_for_other_lengths_do_not_contradict() -> None:
    """One block is recorded apart from several, and the number of blocks is asked as a multiple of the rows."""
    theorem, sentence = causal_theorem(AttendsInBlocks(), 7)
    assert theorem is not None
    assert theorem.proved
    assert (theorem.least_length, theorem.greatest_length, theorem.conditions) == (2, None, ())
    assert sentence == "causal: for every length from 2 on, every batch size of at least 2 and every weight"


def test_a_length_at_which_the_call_takes_another_branch_is_covered() -> None:
    theorem, sentence = causal_theorem(DoublesFourTokens(), 7)
    assert theorem is not None
    assert (theorem.least_length, theorem.greatest_length, theorem.conditions) == (2, None, ())
    assert sentence == "causal: for every length from 2 on, every batch size of at least 2 and every weight"


def test_a_length_at_which_the_output_shows_a_number_is_not_covered() -> None:
    theorem, _ = causal_theorem(CopiesFourTokens(), 7)
    assert theorem is not None
    assert theorem.proved
    assert theorem.conditions == ("!(tokens - 4 == 0)",)


class MixesLongInputs(nn.Module):
    """A running sum, to which inputs of more than a hundred million tokens add the mean."""

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        return x.mean(1, keepdim=True) + x if x.shape[1] > 100_000_000 else x.cumsum(1)


def test_a_theorem_ends_where_no_call_could_be_compared() -> None:
    theorem, _ = causal_theorem(MixesLongInputs(), 7)
    assert theorem is not None
    assert theorem.proved
    assert (theorem.least_length, theorem.greatest_length) == (2, 100_000_000)


class AsksOnes(nn.Module):
    """A running sum; its mask of ones is made in float32, and the other branch is never taken."""

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        mask = torch.ones(x.shape[0], x.shape[1]).to(torch.int64)
        return x.cumsum(1) if mask.bool().all() else x + x.mean(1, keepdim=True)


def test_a_mask_of_ones_is_known_after_a_conversion() -> None:
    theorem, sentence = causal_theorem(AsksOnes(), 7)
    assert theorem is not None
    assert theorem.proved
    assert theorem.greatest_length is None
    assert sentence.startswith("causal: for every length")


class CachesARow(nn.Module):
    """A running sum; a function with a cache makes the row that is added to it."""

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        return x.cumsum(1) + scale(x.shape[2])


@cache
def scale(width: int) -> float:
    return 1.0 / width


def test_a_cache_that_a_recording_fills_does_not_cost_a_theorem() -> None:
    scale.cache_clear()
    theorem, _ = causal_theorem(CachesARow(), 7)
    assert theorem is not None
    assert theorem.proved


@pytest.mark.usefixtures("without_other_calls")
def test_lengths_at_which_a_law_fails_are_not_covered() -> None:
    theorem, sentence = causal_theorem(DoublesOddLengths(flips=True), 8)
    assert theorem is not None
    assert not theorem.proved
    assert not sentence


def test_call_modes_with_the_same_inputs_share_their_recordings() -> None:
    calls = open_calls.OpenCalls(load("arch:llama", tiny=True))
    assert calls.recorded("labelled") is calls.recorded("blocked")
    assert calls.roles("labelled") == calls.roles("blocked") == ("tokens", "position_ids", "block_mask")
    assert calls.disagreement("labelled") == calls.disagreement("blocked") == ""
    assert calls.recorded("packed") is not calls.recorded("blocked")


@pytest.mark.parametrize("law", ["causal", "padding"])
def test_a_model_without_weights_has_theorems(law: str) -> None:
    """The values of its buffers are known: those of its frequencies bound the scores."""
    subject = load("arch:llama?num_hidden_layers=2")
    theorem = prove(subject, law).theorem
    assert theorem is not None
    assert theorem.proved
    assert (theorem.least_length, theorem.greatest_length, theorem.every_depth) == (2, None, True)
    assert {TWIN_ASSUMPTION, EVERY_DEPTH_ASSUMPTION} <= set(theorem.assumptions)
    assert {x.device.type for x in subject.module.buffers()} == {"meta"}


def test_only_a_proof_for_every_number_of_layers_assumes_something_of_other_numbers() -> None:
    for layers in (1, 2):
        theorem = prove(load(f"arch:gpt2?n_layer={layers}", tiny=True), "causal").theorem
        assert theorem is not None
        assert theorem.every_depth == (layers == 2) == (EVERY_DEPTH_ASSUMPTION in theorem.assumptions)


@pytest.mark.slow
def test_a_model_without_weights_has_no_theorem_if_the_calls_of_its_twin_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []

    def differs(calls: open_calls.OpenCalls, call_mode: str) -> str:
        compared.append((calls.subject.device, call_mode))
        return "another branch"

    monkeypatch.setattr(open_calls.OpenCalls, "disagreement", differs)
    theorem = prove(load("arch:llama?num_hidden_layers=2"), "causal").theorem
    assert theorem is not None
    assert not theorem.proved
    assert "the open recording is not the program that runs: another branch" in theorem.reason
    assert compared[0] == ("cpu", "plain")


class ReturnsNothing(nn.Module):
    """A map of each token; nothing if every token is real."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(8, 8)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor | None:
        """The outputs."""
        return None if attention_mask is not None and attention_mask.all() else self.map(x)


class AsksAgainAfterAWrite(ReturnsNothing):
    """The same; a mask that was not all real before a write, and is after it, reverses the tokens."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The outputs."""
        mask = torch.ones(x.shape[:2]) if attention_mask is None else attention_mask.clone()
        if not mask.all():
            mask[:, :1] = 1
            x = x.flip(1) if mask.all() else x
        outputs: Tensor = self.map(x)
        return outputs


@pytest.mark.parametrize("kind", [ReturnsNothing, AsksAgainAfterAWrite])
def test_no_branch_that_calls_take_is_left_out(kind: type[nn.Module]) -> None:
    context = audit_context(as_subject(kind().eval(), inputs=torch.randn(2, 7, 8)))
    calls = context.open_calls
    graphs = [graph for piece in calls.recorded("padded") for graph in piece.graphs]
    assert len(graphs) == (2 if kind is ReturnsNothing else 3)
    assert not any(graph.is_cut_off for graph in graphs)
    theorem = prove(kind().eval(), "causal", inputs=torch.randn(2, 7, 8)).theorem
    assert theorem is not None
    assert "every attention mask (at its real tokens)" not in theorem.covers


class KeepsNoMemory(nn.Module):
    """Sums of the tokens up to each, and a memory that is still empty."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs, and no tokens of a memory."""
        return x.cumsum(1), x[:, :0]


def test_an_output_without_elements_is_finite() -> None:
    finding = prove(KeepsNoMemory(), "causal", inputs=torch.randn(2, 7, 8))
    assert finding.verdict == "proved"
