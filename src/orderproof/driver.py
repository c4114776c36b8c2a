"""How a model is called in the ways that measured laws need: with positions, with a mask, on from a cache.

A proof needs one graph. A measured law needs several calls of the real model, and every library names their
arguments differently. A `Driver` is the one way in: it says what the model takes, draws tokens for it and calls it.
For a model of your own, subclass it; two methods are enough, and each further one makes more laws applicable.

    class Mine(Driver):
        def draw(self, rows, tokens, seed): ...            # [row, token] numbers, or [row, token, width] vectors
        def call(self, tokens, *, positions=None, mask=None, past=None, keep=False): ...
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from orderproof.errors import Unsupported


class Answer(NamedTuple):
    """What a call gives: an output [row, token, feature] (or [row, feature] of a pooled model), and a cache."""

    output: Tensor
    cache: Any = None


class Sight(NamedTuple):
    """Which token may depend on which, and which must: [token, token] booleans, the one that depends first."""

    most: Tensor  # where False, the first must not depend on the second
    least: Tensor  # where True, the first must depend on the second


class Driver(ABC):
    """A model and how it is called. `takes` holds any of "positions", "mask" and "cache"."""

    takes: frozenset[str] = frozenset()
    module: Any
    length = 7  # tokens of a usual call
    rows = 2  # rows of a usual call; 1 where it takes no more
    tokens_run = True  # whether axis 1 of what `draw` gives runs over tokens; an image has them within
    longest: int | None = None  # most tokens its position table, or its configuration, states
    stated: int | None = None  # the length that its configuration states, which it may go past
    reach: int | None = None  # the length that models of its kind state, where this one is a shrunken one
    swallows: frozenset[str] = frozenset()  # of "positions" and "mask": what it does not name but would let pass
    placed = True  # whether it has an encoding of positions at all, as far as its configuration tells
    causal = False  # whether a token sees only tokens up to its own
    first_position = 0  # the position id of the first token
    stretches: tuple[int, ...] = ()  # windows, chunks and blocks that its configuration names [tokens]
    pad: int | None = None  # the number of the pad token, where tokens are numbers
    generates = False  # whether its library continues a text with it
    output = ""  # the name of the output that is compared

    @abstractmethod
    def draw(self, rows: int, tokens: int, seed: int) -> Tensor:
        """Tokens to call it with; another seed gives others in every place."""

    @abstractmethod
    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> Answer:  # fmt: skip
        """Call the model once.

        ``positions``: [row, token] integers. ``mask``: [row, token] booleans, True at real tokens; with ``past``
        [row, tokens in the cache and these]. ``past``: a cache that an earlier call gave; it may be written to.
        ``keep``: True asks for a cache, False for none, None leaves it to the model.
        """

    # ------------------------------------------------------------ what more a driver may be able to do

    def with_module(self, module: nn.Module) -> Self:
        """The same way of calling another module of the same class."""
        made = copy.copy(self)
        made.module = module
        return made

    def widened(self) -> Self:
        """The same model in float64."""
        return self.with_module(copy.deepcopy(self.module).double())

    def loaded(self, dtype: torch.dtype) -> Self:
        """The same weights as its library loads them in this dtype: tables and frequencies made anew, not rounded.

        A copy that is cast is not that: it rounds what was worked out, and a wider copy of a rounded one hides it.
        """
        return self.with_module(copy.deepcopy(self.module).to(dtype))

    def caches(self) -> tuple[str, ...]:
        """The kinds of caches it can be given, beside the one that it makes itself."""
        return ()

    def new_cache(self, kind: str, rows: int, tokens: int) -> Any:
        """An empty cache of a kind, with room for so many tokens. Raises `Unsupported`."""
        raise Unsupported(f"it has no cache of kind {kind!r}")

    def begun(self, rows: int, tokens: int) -> Any:
        """What a series of calls that reads so many tokens begins with: None, or an empty cache told of their number.

        Where what is prefilled stays visible and what is decoded does not, a model must know which is which.
        """
        del rows, tokens

    def cropped(self, cache: Any, tokens: int) -> Any:
        """The cache with its last tokens taken out. Raises `Unsupported`."""
        raise Unsupported("its cache cannot be cropped")

    def reordered(self, cache: Any, rows: Tensor) -> Any:
        """The cache with its rows chosen anew. Raises `Unsupported`."""
        raise Unsupported("the rows of its cache cannot be reordered")

    def hidden(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """What goes into its first layer, what comes out of each, and last its output. Raises `Unsupported`.

        Each is [row, token, feature]; the output is left out where it is what the last layer gives.
        """
        raise Unsupported("it does not give out the states of its layers")

    def generated(self, tokens: Tensor, count: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """So many tokens by the library's own greedy generation, and by hand without a cache. Raises `Unsupported`.

        By hand each row is read without the tokens that ``mask`` hides, where the model takes positions.
        """
        raise Unsupported("it does not generate")

    def backends(self) -> Iterator[tuple[str, Self]]:
        """The same weights on other implementations of attention, by name."""
        yield from ()

    def remade(self) -> Mapping[str, Callable[[], Self]]:
        """The same model after a way of storing, loading or copying it, by name."""
        return {"copied": lambda: self.with_module(copy.deepcopy(self.module))}

    def altered(self) -> Iterator[tuple[str, Self]]:
        """The same weights with one setting changed that must show: base, window, scaling; by name."""
        yield from ()

    def sees(self, tokens: int) -> Sight | None:
        """Which token may and which must depend on which, by what its configuration says; None: it does not tell."""
        place = torch.arange(tokens)
        return Sight(place.unsqueeze(-1) >= place, torch.eye(tokens, dtype=torch.bool)) if self.causal else None

    def sharded(self, rank: int, world: int, places: Tensor) -> AbstractContextManager[None]:
        """Within it, calls get the tokens at these places of the whole and attend to all. Raises `Unsupported`."""
        raise Unsupported("its attention cannot be spread over ranks")
