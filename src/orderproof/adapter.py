"""The adapter interface: how measured laws call a model with position ids, masks and caches.

A proof needs one graph. A measured law needs several calls of the model, and every library names the arguments
differently. A `ModelAdapter` states which inputs the model takes, draws tokens and calls the model. For a model of your
own, write a subclass. Two methods are required; each further one makes more laws applicable.

    class MyAdapter(ModelAdapter):
        supported_inputs = frozenset({"positions", "mask", "cache"})  # what the model takes
        def sample_tokens(self, rows, tokens, seed): ...  # ids [row, token] or embeddings [row, token, width]
        def call(self, tokens, *, positions=None, mask=None, past=None, keep=False): ...
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar

import torch
from torch import Tensor, nn

from orderproof.batch_layout import Side
from orderproof.cast_on_use import CastOnUse, LowRank, cast_tensor, is_large
from orderproof.errors import UnsupportedCallError

M = TypeVar("M", bound=nn.Module)


class ModelOutput(NamedTuple):
    """The result of a call."""

    output: Tensor  # [row, token, feature], or [row, feature] of a pooled model
    cache: Any = None


class AttentionPattern(NamedTuple):
    """Dependence of tokens on tokens: booleans [token, token], the dependent token first."""

    allowed: Tensor  # False: must not depend
    required: Tensor  # True: must depend


class Threshold(NamedTuple):
    """A number of tokens at which a model may change its behaviour."""

    name: str  # the configuration value or the module that states it: "sliding_window"
    tokens: int
    default: int | None = None  # the same in the default configuration of the model's class, if it states one


class ModelAdapter(ABC):
    """A model and how to call it.

    Attributes:
        module: The model.
        supported_inputs: Any of "positions", "mask" and "cache".
        probe_failures: For an input that is not supported because a trial call failed, the error as text.
        default_length: Tokens of a default call.
        batch_size: Rows of a default call; 1 for a model that takes no more.
        has_token_axis: Axis 1 of the tokens runs over tokens; False for images and audio.
        max_positions: Most tokens that the position table or the configuration allows.
        config_max_positions: The context length in the configuration; longer inputs may run.
        family_max_positions: The context length in the default configuration of the model's class.
        ignored_kwargs: "positions" or "mask", if the forward does not name it but accepts any keyword.
        has_positions: The model has an encoding of positions.
        causal: A token sees only tokens up to itself.
        first_position_id: The position id of the first token.
        context_spans: Windows, chunks and blocks in the configuration [tokens].
        thresholds: Numbers of tokens around which laws are measured too.
        mechanisms: Any of "recurrence", "window", "rotary", "table" and "attention", as far as they are known.
        pad_token_id: The token id of pads, if tokens are ids.
        supports_generation: `greedy_generation` is implemented.
        repeats_cache: `repeat_cache` is implemented.
        single_tokens_are_real: Its library states that the single token of a call on a cache is never a pad.
        output_name: The name of the output that is compared.
        has_pooled_output: That output has no tokens.
        no_output_rows: Why no output can be compared row by row, as that of a loss of all rows; empty if one can.
        marks_pads_by_id: It takes no mask: calls with one give it the token id of pads instead.
        right_padding_only: Its mask has pads on the right only: it takes lengths.
        padded_sides: The sides on which the rows of its users are padded, as far as an example shows them.
        usual_sides: The sides on which rows are padded for its kind, where no example shows them.

    """

    supported_inputs: frozenset[str] = frozenset()
    probe_failures: Mapping[str, str] = MappingProxyType({})
    module: Any
    default_length = 7
    batch_size = 2
    has_token_axis = True
    max_positions: int | None = None
    config_max_positions: int | None = None
    family_max_positions: int | None = None
    ignored_kwargs: frozenset[str] = frozenset()
    has_positions = True
    causal = False
    first_position_id = 0
    context_spans: tuple[int, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    mechanisms: frozenset[str] = frozenset()
    pad_token_id: int | None = None
    supports_generation = False
    repeats_cache = False
    single_tokens_are_real = False
    output_name = ""
    has_pooled_output = False
    no_output_rows = ""
    marks_pads_by_id = False
    right_padding_only = False
    padded_sides: frozenset[Side] = frozenset()
    usual_sides: frozenset[Side] = frozenset()

    def uses_position_encoding(self) -> bool:
        """False if its encoding of positions is known to change no output: no layer of this configuration reads it."""
        return self.has_positions

    @abstractmethod
    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        """Random token ids [row, token] or embeddings [row, token, width]; another seed differs in every token."""

    @abstractmethod
    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> ModelOutput:  # fmt: skip
        """Call the model once.

        Args:
            tokens: As drawn by `sample_tokens`.
            positions: Position ids [row, token].
            mask: Booleans [row, token], True at real tokens; with ``past`` [row, cached tokens + these].
            past: The cache of an earlier call; it may be modified.
            keep: True to return a cache, False for none, None for the default of the model.

        """

    # ------------------------------------------------------------ optional abilities

    def with_module(self, module: nn.Module) -> Self:
        """The same adapter for another module of the same class."""
        adapter = copy.copy(self)
        adapter.module = module
        return adapter

    def sample_other_call(self, rows: int, tokens: int, seed: int) -> Tensor:
        """As `sample_tokens`; of a model with several inputs, other values of each."""
        return self.sample_tokens(rows, tokens, seed)

    def at_length(self, tokens: int) -> Self:
        """The same adapter with another number of tokens in its default call."""
        adapter = copy.copy(self)
        adapter.default_length = tokens
        return adapter

    def in_float64(self) -> Self:
        """The same model in float64."""
        return self.with_module(_copy_with_parameters_in(self.module, torch.float64).double())  # not complex buffers

    def cast_to(self, dtype: torch.dtype) -> Self:
        """A copy of the model, converted to this dtype by `module.to`."""
        return self.with_module(_copy_with_parameters_in(self.module, dtype).to(dtype))

    def loaded_in(self, dtype: torch.dtype) -> Self:
        """The same weights as the library loads them in this dtype: computed tables are computed in it, not cast.

        A cast copy would round the computed tables, and a wider copy of it would hide the rounding.
        """
        return self.cast_to(dtype)

    def cache_kinds(self) -> tuple[str, ...]:
        """Kinds of caches that `new_cache` builds."""
        return ()

    def new_cache(self, kind: str, rows: int, tokens: int) -> Any:
        """An empty cache with room for this many tokens. Raises `UnsupportedCallError`."""
        raise UnsupportedCallError(f"it has no cache of kind {kind!r}")

    def initial_cache(self, rows: int, tokens: int) -> Any:
        """The cache for the first call of a sequence that prefills this many tokens; None for none.

        Needed if prefilled tokens stay visible and decoded ones do not.
        """
        del rows, tokens

    def crop_cache(self, cache: Any, tokens: int) -> Any:
        """The cache without its last tokens. Raises `UnsupportedCallError`."""
        raise UnsupportedCallError("its cache cannot be cropped")

    def copy_cache(self, cache: Any) -> Any:
        """A cache with the same content that is changed independently."""
        return copy.deepcopy(cache)

    def repeat_cache(self, cache: Any, count: int) -> Any:
        """The cache with each row ``count`` times. Raises `UnsupportedCallError`."""
        raise UnsupportedCallError("the rows of its cache cannot be repeated")

    def reorder_cache(self, cache: Any, rows: Tensor) -> Any:
        """The cache with its rows indexed by ``rows``. Raises `UnsupportedCallError`."""
        raise UnsupportedCallError("the rows of its cache cannot be reordered")

    def hidden_states(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """The input of the first layer, the output of each layer, and the output of the model.

        Each is [row, token, feature]; the last is left out if it equals the output of the last layer. Raises
        `UnsupportedCallError`.
        """
        raise UnsupportedCallError("it does not return the states of its layers")

    def generation_caches(self) -> tuple[str, ...]:
        """Names of caches, other than its default, with which the library generates."""
        return ()

    def greedy_generation(
        self, tokens: Tensor, count: int, mask: Tensor | None = None, *, cache: str = ""
    ) -> tuple[Tensor, Tensor]:
        """The next ``count`` token ids by the library's greedy generation, and computed without a cache.

        The second reads each row without the tokens that ``mask`` hides, if the model takes position ids. ``cache`` is
        one of `generation_caches`. Raises `UnsupportedCallError`.
        """
        raise UnsupportedCallError("it does not generate")

    def attention_backends(self) -> Iterator[tuple[str, Self]]:
        """The same weights with other attention backends, by name."""
        yield from ()

    def square_masks(self, mask: Tensor) -> Mapping[str, Tensor]:
        """A padding mask [row, token] with what else the model hides, as masks [row, 1, token, token] by their kind.

        `call` takes each of them as its mask. Empty if the model takes none, or hides more than pads and later tokens.
        """
        del mask
        return {}

    def reload_methods(self) -> Mapping[str, Callable[[], Self]]:
        """The same model after copying, saving or loading it, by name."""
        copied = copy_sharing_parameters if is_large(self.module) else copy.deepcopy
        return {"copied": lambda: self.with_module(copied(self.module))}

    def config_variants(self) -> Iterator[tuple[str, Self]]:
        """The same weights with one configuration value changed that must change the output, by name."""
        yield from ()

    def pooled_outputs(self) -> Iterator[tuple[str, Self]]:
        """The same model with each output that has rows and no tokens as its output, by name."""
        if self.has_pooled_output:
            yield self.output_name, self

    def attention_pattern(self, tokens: int) -> AttentionPattern | None:
        """The dependence of tokens that the configuration determines; None if it determines none."""
        index = torch.arange(tokens)
        return (
            AttentionPattern(index.unsqueeze(-1) >= index, torch.eye(tokens, dtype=torch.bool)) if self.causal else None
        )

    def sequence_parallel(self, rank: int, world: int, positions: Tensor) -> AbstractContextManager[None]:
        """In this context, calls get the tokens at these global positions and attend to the tokens of all ranks.

        Raises `UnsupportedCallError`.
        """
        raise UnsupportedCallError("its attention cannot be distributed over ranks")


def _is_plain(parameter: nn.Parameter) -> bool:
    """True for a parameter whose copy in another dtype is its numbers in that dtype."""
    strided = parameter.layout is torch.strided and not parameter.is_meta
    return type(parameter) in (nn.Parameter, CastOnUse, LowRank) and strided and parameter.is_floating_point()


def copy_sharing_parameters(module: M) -> M:
    """A copy with the same parameters, which take most of the memory; for calls, which do not change them."""
    return copy.deepcopy(module, {id(p): p for p in module.parameters()})


def _copy_with_parameters_in(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy whose plain parameters are in a dtype: the copy never holds them in the dtype of the module.

    The parameters of a large module are cast where they are used: see `cast_on_use`.
    """
    cast = cast_tensor if is_large(module) else _cast_to
    converted = {
        id(p): nn.Parameter(cast(p, dtype), requires_grad=p.requires_grad) for p in module.parameters() if _is_plain(p)
    }
    return copy.deepcopy(module, converted)  # deepcopy takes these as copied


def _cast_to(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.detach().to(dtype, copy=True)
