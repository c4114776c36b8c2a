"""Defects of this package are raised again; refusals by a model are not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from orderproof.errors import PositionError, UnsupportedCallError, UsageError
from orderproof.models import from_module
from orderproof.models.own_errors import raise_own_error
from orderproof.models.roles.named_arguments import NamedArguments
from orderproof.models.settings import apply_setting


def caught(error: Exception) -> Exception:
    try:
        raise error
    except Exception as again:
        return again


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("x"), UnsupportedCallError("x"), PositionError("x")])
def test_a_refusal_of_the_model_is_not_raised(error):
    assert raise_own_error(caught(error)) is None


def test_an_error_of_this_package_is_raised():
    with pytest.raises(UsageError):
        raise_own_error(caught(UsageError("x")))


def test_a_type_error_in_this_package_is_raised():
    try:
        NamedArguments().with_inputs(nn.Identity(), 3)
    except TypeError as error:
        with pytest.raises(TypeError):
            raise_own_error(error)


class _Refuses(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x, attention_mask=None):
        if attention_mask is not None:
            raise self.error
        return x


def test_a_setting_that_the_model_refuses_is_not_applicable_with_its_error():
    subject = from_module(_Refuses(ValueError("no masks")), torch.randn(2, 7, 8))
    assert apply_setting(subject, "padded") == "it takes no attention mask (ValueError: no masks)"


def test_an_error_of_this_package_in_a_setting_is_raised():
    module = _Refuses(ValueError("no masks"))
    subject = from_module(module, torch.randn(2, 7, 8))
    module.error = UsageError("a defect")
    with pytest.raises(UsageError, match="a defect"):
        apply_setting(subject, "padded")


def test_a_plain_module_can_be_assumed_to_be_causal():
    subject = from_module(nn.Identity(), torch.randn(2, 7, 8), assume={"model_kind": "causal_lm"})
    assert subject.model_kind == "causal_lm"
    assert subject.build_adapter().causal
    with pytest.raises(UsageError, match="expected assume="):
        from_module(nn.Identity(), torch.randn(2, 7, 8), assume={"has_positions": True})


def test_a_length_fixed_by_a_failed_call_leaves_a_note():
    class Fixed(nn.Module):
        def forward(self, x):
            return x + torch.zeros(5, 8)

    (note,) = from_module(Fixed(), torch.randn(2, 5, 8)).notes
    assert note.startswith("length fixed at 5: a call with 7 tokens failed (RuntimeError: ")


def test_a_token_axis_found_by_its_size_leaves_a_note():
    class Add(nn.Module):
        def forward(self, x, y):
            return x + y.mT

    subject = from_module(Add(), (torch.randn(2, 7, 8), torch.randn(2, 8, 7)))
    assert subject.token_axes == (1, 2)
    assert subject.notes == ("input 1: axis 2 counts as token axis because of its size; override with token_axis",)
