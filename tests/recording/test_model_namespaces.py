"""Loops and caches in functions that a model calls, wherever they are written, are recorded for every length."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.records.audit import Finding
from tests.recording import functions_of_another_file
from tests.recording.functions_of_another_file import kept_mask, running

CACHE = "what functools.lru_cache keeps is what the function computes: kept_mask"


class Model(nn.Module):
    """Calls a function of another file."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)  # type: ignore[operator, no-any-return]


def _imported(x: Tensor) -> Tensor:
    return running(x)


def _of_a_module(x: Tensor) -> Tensor:
    return functions_of_another_file.running(x)


def _masked(x: Tensor, diagonal: int = 1) -> Tensor:
    return (x @ x.mT + kept_mask(x.shape[1], diagonal)).softmax(-1) @ x


def _causal(function: object) -> Finding:
    return prove(Model(function), "causal", inputs=torch.randn(2, 7, 4))


def test_a_loop_in_a_function_of_another_file_is_proved_for_every_length() -> None:
    for function in (_imported, _of_a_module):
        finding = _causal(function)
        assert finding.theorem is not None
        assert finding.theorem.proved, finding.theorem.reason
        assert functions_of_another_file.__dict__.get("range") is None


def test_a_mask_that_is_kept_by_its_length_is_proved_for_every_length_and_the_proof_says_what_it_assumes() -> None:
    kept = functions_of_another_file.kept_mask
    finding = _causal(_masked)
    assert finding.theorem is not None
    assert finding.theorem.proved, finding.theorem.reason
    assert CACHE in finding.theorem.assumptions
    assert functions_of_another_file.kept_mask is kept is kept_mask


def _writes_to_what_is_kept(x: Tensor) -> Tensor:
    mask = kept_mask(x.shape[1])
    mask += torch.arange(x.shape[1]) * 0.1  # once more in each call
    return (x @ x.mT + mask).softmax(-1) @ x


def test_a_mask_that_is_kept_with_what_a_call_writes_to_it_has_no_theorem() -> None:
    finding = _causal(_writes_to_what_is_kept)
    assert finding.theorem is not None
    assert not finding.theorem.proved
    assert "it writes to what functools.lru_cache keeps of kept_mask" in finding.theorem.reason
    kept_mask.cache_clear()


def test_a_mask_that_is_kept_and_off_by_one_is_refuted() -> None:
    assert _causal(lambda x: _masked(x, diagonal=2)).verdict == "refuted"
