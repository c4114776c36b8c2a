"""Samples and default lengths of subjects."""

import sys

import pytest
import torch
from torch import nn

from orderproof.errors import UsageError
from orderproof.models import Sample, Subject, load, prime_length


def _subject(max_length: int | None) -> Subject:
    return Subject(
        name="toy",
        model_kind="module",
        module=nn.Identity(),
        token_axes=(1,),
        parameter_count=0,
        layer_count=None,
        default_length=7,
        max_length=max_length,
        device="cpu",
        draw=lambda length, seed: Sample((torch.zeros(2, length),), tuple("abcdefghij"[:length])),
    )


@pytest.mark.parametrize(
    ("minimum", "avoid", "expected"), [(7, set(), 7), (7, {7, 11}, 13), (8, set(), 11), (0, set(), 2), (4, {5}, 7)]
)
def test_prime_length_is_the_first_free_prime(minimum, avoid, expected):
    assert prime_length(minimum, avoid) == expected


def test_samples_up_to_the_maximal_length():
    assert _subject(9).sample(9).inputs[0].shape == (2, 9)
    assert _subject(None).sample(3).labels == ("a", "b", "c")


def test_a_length_out_of_range_names_the_limit():
    with pytest.raises(
        UsageError,
        match=r"toy: length must be at most 9, as its position table .* allow no more; got 10",
    ):
        _subject(9).sample(10)
    with pytest.raises(UsageError, match="length must be at least 1; got 0"):
        _subject(9).sample(0)


def test_the_default_length_is_no_other_size():
    subject = load("arch:bert?num_hidden_layers=7&intermediate_size=11", tiny=True)
    sizes = {size for tensor in subject.module.parameters() for size in tensor.shape}
    assert subject.default_length == 13
    assert subject.default_length not in sizes


def test_missing_transformers_says_what_to_install(monkeypatch):
    from orderproof.errors import SubjectError

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(SubjectError, match=r"pip install .*\[hf\]"):
        load("arch:bert", tiny=True)
