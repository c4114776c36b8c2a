"""How plain modules are called by measured laws: one input of tokens, and what their forward names beside it."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.blocks import Decoder, Transformer
from orderproof.blocks.driving import TransformerDriver
from orderproof.driver import Answer, Driver
from orderproof.errors import SubjectError, Unsupported
from orderproof.subjects.settings import CALLED, converted
from orderproof.subjects.subject import Sample, Subject, parameters_of, prime_length, sizes_of


class ModuleDriver(Driver):
    """A module of one input [row, token, ...]."""

    output = "output"

    def __init__(self, subject: Subject) -> None:
        self.module = subject.module
        self.subject = subject
        self.length, self.longest = subject.length, subject.max_length
        accepted = inspect.signature(subject.module.forward).parameters
        self.mask_name = next((n for n in CALLED["attention_mask"] if n in accepted), None)
        self.positions_name = next((n for n in CALLED["position_ids"] if n in accepted), None)
        self.takes = frozenset(
            {*["mask"] * (self.mask_name is not None), *["positions"] * (self.positions_name is not None)}
        )

    def draw(self, rows: int, tokens: int, seed: int) -> Tensor:
        drawn: list[Tensor] = []
        while sum(map(len, drawn)) < rows:
            drawn.append(self.subject.sample(tokens, seed + 1000 * len(drawn)).inputs[0])
        return torch.cat(drawn)[:rows]

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> Answer:  # fmt: skip
        given = {}
        if mask is not None and self.mask_name is not None:
            given[self.mask_name] = converted(self.mask_name, mask.long())
        if positions is not None and self.positions_name is not None:
            given[self.positions_name] = positions
        return Answer(_first_tensor(self.module(tokens, **given)))


def _first_tensor(made: Any) -> Tensor:
    """The first tensor of what a module gives."""
    if isinstance(made, Tensor):
        return made
    leaves = made.values() if isinstance(made, dict) else made if isinstance(made, (tuple, list)) else ()
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            return leaf
    raise Unsupported(f"it gives {type(made).__name__}, and no tensor")


def driver_of(subject: Subject, original: nn.Module) -> Driver:
    """The driver of a plain module. Raises `Unsupported`."""
    if isinstance(original, Transformer):
        words = None if original.embedding is None else original.embedding.num_embeddings
        causal = isinstance(original.stack, Decoder)
        return TransformerDriver(original, causal=causal, length=subject.length, vocabulary=words)
    if subject.token_axes != (1,):
        raise Unsupported("it is not called with one input [row, token, ...]")
    return ModuleDriver(subject)


def from_driver(driver: Driver, name: str | None = None) -> Subject:
    """The subject that a driver of one's own calls: measured by it, and proved on its module."""
    module = driver.module
    if not isinstance(module, nn.Module):
        raise SubjectError(f"driver: expected its module to be a torch.nn.Module, got {type(module).__name__}")
    module.eval()
    kind = "causal_lm" if driver.causal else "module"

    def draw(tokens: int, seed: int) -> Sample:
        made = driver.draw(2, tokens, seed)
        return Sample((made,), tuple(f"x{i}" for i in range(tokens)))

    return Subject(
        name=name or type(module).__name__, kind=kind, module=_Called(driver), token_axes=(1,),
        parameters=parameters_of(module), layers=None, length=prime_length(driver.length, sizes_of(module) | {2}),
        max_length=driver.longest, device="cpu", draw=draw, detail=f"as {type(driver).__name__} calls it",
        driver=lambda: driver, inside="module",
    )  # fmt: skip


class _Called(nn.Module):
    """A driver's plain call, as a module."""

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self.module = driver.module
        self.driver = driver

    def forward(self, tokens: Tensor) -> Tensor:
        """The output of the plain call."""
        return self.driver.call(tokens, keep=False).output
