"""Arguments of `audit` and `prove` that are wrong, as a new user types them: one line, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, prove
from orderproof.errors import SubjectError, UsageError

LAYER = nn.TransformerEncoderLayer(8, 2, batch_first=True)


class OfMapping(nn.Module):
    """Takes one mapping, as collate functions make it."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 8)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Embeddings of the ids."""
        found: Tensor = self.words(batch["input_ids"])
        return found


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (nn.TransformerEncoderLayer, r"got the class TransformerEncoderLayer; make an instance: Transf.*\(\.\.\.\)"),
        ((LAYER, torch.randn(2, 7, 8)), "got a tuple; pass the module alone, and the example inputs as inputs="),
        (lambda: LAYER, "got a function; call it, or name it as file.py:name"),
        (3, "got a int$"),
    ],
)
def test_a_subject_of_another_kind_is_refused(subject: Any, message: str) -> None:
    for decide in (lambda: audit(subject), lambda: prove(subject, "causal")):
        with pytest.raises(UsageError, match=f"expected a torch.nn.Module, a text such as .*; {message}"):
            decide()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"expect": {"causal": "hold"}}, "expected holds, fails, any as the expectation for causal; got 'hold'; did"),
        ({"expect": {"OP201": True}}, "as the expectation for causal; got True$"),
        ({"laws": ["casual"]}, "expected a law; got 'casual'; did you mean 'causal'"),
        ({"laws": ["nothing"]}, "expected a law, one of permutation, .*; got 'nothing'$"),
    ],
)
def test_wrong_laws_and_expectations_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        audit(LAYER, **wrong)
    assert len(str(caught.value).splitlines()) == 1


def test_an_expectation_by_code_is_that_of_the_law() -> None:
    by_code = audit(LAYER, laws=["causal"], expect={"op201": "fails"})
    assert [f.outcome for f in by_code.findings] == ["pass"]
    assert audit(LAYER, laws="OP201").exit_code == 1  # one law as a text


@pytest.mark.parametrize("wrong", [{"expect": "hold"}, {"weights": "none"}])
def test_prove_refuses_values_that_do_not_exist(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected .*; got '(hold|none)'"):
        prove(LAYER, "causal", **wrong)


def test_a_mapping_for_a_module_that_takes_a_mapping_is_explained() -> None:
    inputs = {"input_ids": torch.randint(9, (2, 7))}
    with pytest.raises(SubjectError, match=r"forward\(batch\) has none named 'input_ids'; .* inputs=\(mapping,\)"):
        prove(OfMapping(), "permutation", inputs=inputs)
    assert prove(OfMapping(), "batch", inputs=(inputs,)).verdict == "proved"
