"""Calls of one model in one precision; what several laws ask for is worked out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor

from orderproof.driver import Answer, Driver

T = TypeVar("T")


class Bench:
    """One driver, and the calls that were made of it."""

    def __init__(
        self, driver: Driver, seed: int = 0, *, double: bool = False, floats: torch.dtype | None = None
    ) -> None:
        self.driver = driver
        self.seed = seed
        self.double = double
        self.floats = torch.float64 if double else floats  # the dtype of tokens that are vectors
        self._made: dict[tuple[Any, ...], Tensor] = {}
        self._kept: dict[str, Any] = {}

    @property
    def length(self) -> int:
        """How many tokens the usual call has."""
        return self.driver.length

    @cached_property
    def tokens(self) -> Tensor:
        """The tokens of the usual call."""
        return self.draw()

    @cached_property
    def whole(self) -> Tensor:
        """The output of the usual call: no cache, no mask, no positions."""
        return self.forward(self.tokens)

    def draw(self, tokens: int | None = None, *, rows: int | None = None, other: int = 0) -> Tensor:
        """Tokens; another number gives others in every place."""
        drawn = self.driver.draw(rows or self.driver.rows, tokens or self.length, self.seed + other)
        return drawn if self.floats is None or not drawn.is_floating_point() else drawn.to(self.floats)

    def positions(self, tokens: int, *, rows: int | None = None, start: int = 0) -> Tensor:
        """The position ids that the model documents, from this token on."""
        first = self.driver.first_position + start
        return torch.arange(first, first + tokens).expand(rows or self.driver.rows, tokens)

    def forward(self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """The output of one call without a cache."""
        key = tuple(None if x is None else (tuple(x.shape), _bytes(x)) for x in (tokens, positions, mask))
        if key not in self._made:
            self._made[key] = self.call(tokens, positions=positions, mask=mask, keep=False).output
        return self._made[key]

    def at(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The output at stated positions.

        A mask that hides nothing goes with them: without one some libraries take ids with gaps for packed documents.
        """
        return self.forward(tokens, positions=positions, mask=self.open_mask(tokens))

    def open_mask(self, tokens: Tensor) -> Tensor | None:
        """A mask that hides nothing, where the model takes one."""
        return torch.ones(tokens.shape[:2], dtype=torch.bool) if "mask" in self.driver.takes else None

    def call(self, tokens: Tensor, **given: Any) -> Answer:
        """One call, anew. The model gets tensors of its own."""
        own: dict[str, Any] = {k: v.clone() if isinstance(v, Tensor) else v for k, v in given.items()}
        with torch.no_grad():
            return self.driver.call(tokens.clone(), **own)

    def steps(self, tokens: Tensor, sizes: list[int], past: Any = None, **given: Any) -> tuple[Tensor, Any]:
        """The outputs of calls of so many tokens each, every one on from the cache of those before it, and the cache.

        Of ``given``, ``positions`` are those of all tokens, and ``mask`` covers what was in the cache too.
        """
        outputs, start, before = [], 0, 0
        past = self.driver.begun(*tokens.shape[:2]) if past is None else past
        mask: Tensor | None = given.get("mask")
        if mask is not None:
            before = mask.shape[1] - tokens.shape[1]
        for size in sizes:
            end = start + size
            more: dict[str, Any] = {} if mask is None else {"mask": mask[:, : before + end]}
            if given.get("positions") is not None:
                more["positions"] = given["positions"][:, start:end]
            answer = self.call(tokens[:, start:end], past=past, keep=True, **more)
            shape = list(answer.output.shape)
            if shape[:2] != [len(tokens), size]:
                raise ValueError(
                    f"a call with {size} token{'s' * (size > 1)} on a cache gave an output of shape {shape}"
                )
            outputs.append(answer.output)
            past, start = answer.cache, end
        return torch.cat(outputs, dim=1), past

    @cached_property
    def wide(self) -> Bench:
        """The same model in float64."""
        return Bench(self.driver.widened(), self.seed, double=True)

    @cached_property
    def backends(self) -> dict[str, Bench]:
        """The same calls on other implementations of attention."""
        return {name: self.of(driver) for name, driver in self.driver.backends()}

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """What was worked out under this name, or is now."""
        if name not in self._kept:
            self._kept[name] = make()
        found: T = self._kept[name]
        return found

    def remade(self, name: str) -> Bench:
        """The same calls of the model after a way of storing, loading or copying it."""
        return self.kept(f"remade: {name}", lambda: self.of(self.driver.remade()[name]()))

    def loaded(self, dtype: torch.dtype) -> Bench:
        """The same model as its library loads it in this dtype."""
        return self.kept(f"loaded: {dtype}", lambda: Bench(self.driver.loaded(dtype), self.seed, floats=dtype))

    def of(self, driver: Driver) -> Bench:
        """The same calls of another driver."""
        return Bench(driver, self.seed, double=self.double, floats=self.floats)


def _bytes(x: Tensor) -> bytes:
    """What it holds; numpy has no bfloat16."""
    return bytes(x.contiguous().view(torch.uint8).numpy().tobytes())
