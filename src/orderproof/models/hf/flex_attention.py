"""Flex attention without compilation, which takes most of a minute."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch


@contextmanager
def eager_flex_attention(model: Any) -> Iterator[None]:
    """Run flex attention of transformers eagerly; nothing stays patched."""
    if model.config._attn_implementation != "flex_attention":
        yield
        return
    from torch.nn.attention import flex_attention
    from transformers.integrations.flex_attention import WrappedFlexAttention

    with (
        mock.patch.object(torch, "compile", _identity),
        mock.patch.object(flex_attention, "setup_compilation_env", nullcontext, create=True),  # imports Dynamo
        mock.patch.object(WrappedFlexAttention, "_instance", None),  # a singleton that keeps the compiled function
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile", UserWarning)
        yield


def _identity(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    return function
