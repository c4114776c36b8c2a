"""A training run that an audit leaves as it is: random generators, modes, buffers, gradients, counters."""

from __future__ import annotations

import copy
import random
import sys
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from orderproof.errors import SubjectError

_CONTAINERS: tuple[type, ...] = (dict, list, tuple, set, defaultdict, deque)
_SHARDED = ("FullyShardedDataParallel", "DistributedDataParallel", "DeepSpeedEngine", "DataParallel")


@contextmanager
def kept_run(model: nn.Module, *holders: object) -> Iterator[None]:
    """A block after which the run goes on as without it; `holders` have counters and lists that a call may change.

    The model is in evaluation mode in the block, and calls of its `train` and `eval` do not change that.
    """
    modes = {module: module.training for module in model.modules()}
    buffers = [(module._buffers, dict(module._buffers)) for module in model.modules()]
    values = {id(x): (x, x.detach().clone()) for _, held in buffers for x in held.values() if x is not None}
    gradients = {parameter: parameter.grad for parameter in model.parameters()}
    counters = [(vars(holder), _plain_values(holder)) for holder in holders]
    try:
        with _kept_generators():
            for module in modes:
                module.training = False
            for name in ("train", "eval"):
                model.__dict__[name] = lambda *_, **__: model
            for parameter in gradients:
                parameter.grad = None
            yield
    finally:
        for parameter, gradient in gradients.items():
            parameter.grad = gradient
        for name in ("train", "eval"):
            model.__dict__.pop(name, None)
        for module, mode in modes.items():
            module.training = mode
        for held, before in buffers:
            held.clear()
            held.update(before)
        with torch.no_grad():
            for buffer, value in values.values():
                buffer.copy_(value)
        for variables, plain in counters:
            variables.update(plain)


def check_is_whole(model: nn.Module, wrapped: object) -> None:
    """Raises `SubjectError` for a model whose parameters are in several processes."""
    kind = type(wrapped).__name__
    parts = [name for name, x in model.named_parameters() if hasattr(x, "device_mesh") or not x.numel()]
    if kind in _SHARDED or parts:
        raise SubjectError(
            f"expected a model in one process; got {kind if kind in _SHARDED else parts[0] + ' in parts'}"
        )


@contextmanager
def _kept_generators() -> Iterator[None]:
    """The random generators of Python, of numpy and of torch, on all devices that are used, as they were."""
    state, numpy = random.getstate(), sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy is not None else None
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(state)
        if numpy is not None:
            numpy.random.set_state(of_numpy)


def _plain_values(holder: object) -> dict[str, Any]:
    """Copies of the numbers, texts and containers of these that an object has."""
    return {name: copy.deepcopy(value) for name, value in vars(holder).items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    if isinstance(value, _CONTAINERS):
        parts = [*value, *value.values()] if isinstance(value, dict) else list(value)  # type: ignore[call-overload]
        return all(_is_plain(part) for part in parts)
    return value is None or isinstance(value, (bool, int, float, str, bytes))
