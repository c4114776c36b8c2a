"""Flex attention as it is, without compiling it: that takes most of a minute, and its compiler seconds to import."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch


@contextmanager
def uncompiled(model: Any) -> Iterator[None]:
    """Within it, what transformers would compile for flex attention is run as it is; nothing of it stays."""
    if model.config._attn_implementation != "flex_attention":
        yield
        return
    from transformers.integrations.flex_attention import WrappedFlexAttention

    with (
        mock.patch.object(torch, "compile", _as_it_is),
        mock.patch.object(WrappedFlexAttention, "_instance", None),  # which keeps what it was told to compile
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile", UserWarning)
        yield


def _as_it_is(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    return function
