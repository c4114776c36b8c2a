"""Calls of transformers models for measured laws: position ids, masks, caches, backends, loading and copying."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn

from orderproof.adapter import AttentionPattern, ModelAdapter, ModelOutput, copy_sharing_parameters
from orderproof.batch_layout import Side
from orderproof.cast_on_use import is_large
from orderproof.errors import UnsupportedCallError, first_line
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.attention_pattern import attention_pattern, causal_padding_mask
from orderproof.models.hf.config_changes import models_with_changed_config
from orderproof.models.hf.describe import ModelDescription
from orderproof.models.hf.extra_inputs import ExtraInputs
from orderproof.models.hf.flex_attention import eager_flex_attention
from orderproof.models.hf.generation import causal_lm_class, greedy_tokens
from orderproof.models.hf.mechanisms import single_tokens_are_real
from orderproof.models.hf.outputs import audited_outputs, prefix_token_count
from orderproof.models.hf.quantised_cache import exact_quantised_cache, has_quantised_cache
from orderproof.models.hf.rotary_angles import uses_rotary_angles
from orderproof.models.hf.saved_checkpoint import SavedCheckpoint
from orderproof.models.hf.sequence_parallel import sequence_parallel_attention
from orderproof.models.hf.shared_weights import built_from_meta, loaded_with_weights_of, saved_and_loaded
from orderproof.models.input_spec import InputSpec
from orderproof.models.own_errors import raise_own_error
from orderproof.models.sample import seeded_generator
from orderproof.recording.low_rank import of_any_weights

CACHE_ARGUMENTS = ("past_key_values", "cache_params", "state", "mems")  # names of the cache among models
ATTENTION_BACKENDS = ("eager", "sdpa", "flex_attention")
BACKEND_FLAGS = {"sdpa": "_supports_sdpa", "flex_attention": "_supports_flex_attn"}
PREFILL_LENGTH_METHOD = "set_prefill_length"
FROM_META = "built on meta, materialised by to_empty and init_weights, and loaded by load_state_dict"
ARGUMENT_NAMES = {"positions": "position_ids", "mask": "attention_mask"}


class HFAdapter(ModelAdapter):
    """A transformers model, called with its description, its input and its extra inputs."""

    def __init__(
        self, model: Any, description: ModelDescription, tokens: InputSpec, extra_inputs: ExtraInputs,
        *, length: int, max_positions: int | None,
    ) -> None:  # fmt: skip
        self.module, self.description, self.extra_inputs = model, description, extra_inputs
        self.argument, self._draw, self.patch_count = tokens.argument, tokens.draw, tokens.patch_count
        self.default_length, self.max_positions = length, max_positions
        self.causal = description.causal
        self.has_token_axis = self.patch_count is None and description.audio_argument is None
        self.first_position_id, self.pad_token_id = description.first_position_id, description.pad_token_id
        self.config_max_positions = description.config_max_positions
        self.family_max_positions = description.family_max_positions
        self.has_positions = description.has_positions or not self.has_token_axis
        self.context_spans = tuple(sorted({size for size in description.context_spans.values() if size < length}))
        self.thresholds, self.mechanisms = description.thresholds, description.mechanisms
        self.forward_arguments = description.forward_arguments
        self.repeats_cache = "past_key_values" in self.forward_arguments
        self.single_tokens_are_real = single_tokens_are_real(model)
        silent = description.accepts_kwargs and self.has_token_axis
        self.ignored_kwargs = frozenset(
            name for name, argument in ARGUMENT_NAMES.items() if silent and argument not in self.forward_arguments
        )
        self.probe_failures: dict[str, str] = {}
        self._saved = SavedCheckpoint()  # shared with the copies of this adapter

    def at_length(self, tokens: int) -> Self:
        adapter = super().at_length(tokens)
        adapter.context_spans = tuple(sorted({n for n in self.description.context_spans.values() if n < tokens}))
        return adapter

    def _cache_option(self, *, use_cache: bool | None) -> dict[str, Any]:
        """`use_cache`, if the model has that argument and a value is wanted."""
        return {} if use_cache is None or "use_cache" not in self.forward_arguments else {"use_cache": use_cache}

    @cached_property
    def cache_argument(self) -> str | None:
        """The argument for the cache; None if no call returns a cache that the model takes back."""
        if not self.has_token_axis or not self.causal:
            return None
        try:
            outputs = self._trial_outputs(self.sample_tokens(1, 2, 0), self._cache_option(use_cache=True))
        except Exception as error:  # noqa: BLE001 - third-party code: a call with a cache may fail in any way
            raise_own_error(error)
            self.probe_failures["cache"] = (
                f"a call with use_cache raised {first_line(error)}: make it work, or set use_cache to False in the "
                "configuration if the model has no cache"
            )
            return None
        accepted = [name for name in CACHE_ARGUMENTS if name in self.forward_arguments]
        return next((name for name in accepted if getattr(outputs, name, None) is not None), None)

    def uses_position_encoding(self) -> bool:
        tokens = self.sample_tokens(self.batch_size, self.default_length, 0)
        return self.has_positions and uses_rotary_angles(self.module, lambda: self.call(tokens, keep=False).output)

    @cached_property
    def usual_sides(self) -> frozenset[Side]:  # type: ignore[override]
        """Left for a decoder, which generates after its prompts; none for one that reads the output of an encoder."""
        return frozenset({"left"} if self.causal and not self._reads_an_encoder() else ())

    def _reads_an_encoder(self) -> bool:
        """True if a call with the output of an encoder is another one: it decodes from one start token."""
        width = getattr(self.module.config, "hidden_size", None)
        if "encoder_hidden_states" not in self.forward_arguments or not isinstance(width, int):
            return False
        tokens = self.sample_tokens(1, 2, 0)
        states = torch.randn((1, 3, width), generator=seeded_generator(0)).to(next(self.module.parameters()).dtype)
        try:
            with torch.no_grad():
                without = self._audited_outputs(self._outputs(tokens, {}), tokens)
                given = self._audited_outputs(self._outputs(tokens, {"encoder_hidden_states": states}), tokens)
        except Exception as error:  # noqa: BLE001 - third-party code: a model without cross-attention may refuse it
            raise_own_error(error)
            return False
        return not all(map(torch.equal, without.values(), given.values()))

    @cached_property
    def batch_size(self) -> int:  # type: ignore[override]
        """One for an image model that packs its patches and takes a single image, else two."""
        if self.patch_count is None:
            return super().batch_size
        return 1 if len(self.sample_tokens(2, self.default_length, 0)) == self.patch_count else 2

    @cached_property
    def needs_square_mask(self) -> bool:
        """True if the model refuses a padding mask [batch, token] and takes a mask [batch, 1, token, token].

        Such a model is a component that builds no mask; its caller passes one in every call.
        """
        if not self.has_token_axis or not self.causal or self._accepts_mask:
            return False
        return self._accepts_argument("mask", lambda tokens: causal_padding_mask(_last_token_mask(tokens) > 0))

    def _accepts_argument(self, name: str, build_value: Callable[[Tensor], Tensor]) -> bool:
        """True if the model names an argument and takes this value; True if it cannot be called without it either."""
        argument = ARGUMENT_NAMES[name]
        if argument not in self.forward_arguments:
            return False
        if self._plain_call_fails:
            return True
        tokens = self.sample_tokens(1, self.default_length, 0)
        try:
            self._trial_outputs(tokens, {argument: build_value(tokens)} | self._cache_option(use_cache=False))
        except Exception as error:  # noqa: BLE001 - third-party code: an argument may be refused in any way
            raise_own_error(error)
            self.probe_failures[name] = f"a call with {argument} raised {first_line(error)}"
            return False
        return True

    @cached_property
    def _plain_call_fails(self) -> bool:
        try:
            self._trial_outputs(self.sample_tokens(1, self.default_length, 0), self._cache_option(use_cache=False))
        except Exception as error:  # noqa: BLE001 - third-party code: the measurement itself reports the error
            raise_own_error(error)
            return True
        return False

    @cached_property
    def _accepts_mask(self) -> bool:
        return self._accepts_argument("mask", _last_token_mask)

    @cached_property
    def supported_inputs(self) -> frozenset[str]:  # type: ignore[override]
        """The arguments that `forward` names and takes, and "cache" if calls return one."""
        if not self.has_token_axis:
            return frozenset()
        accepted = {
            "mask": self.needs_square_mask or self._accepts_mask,
            "positions": self._accepts_argument("positions", self._default_position_ids),
            "cache": self.cache_argument is not None,
        }
        ignored = {name for name, argument in ARGUMENT_NAMES.items() if argument in self.description.ignored_arguments}
        self.probe_failures.update(dict.fromkeys(ignored, "its source warns that it ignores them"))
        return frozenset(name for name, taken in accepted.items() if taken and name not in ignored)

    def _default_position_ids(self, tokens: Tensor) -> Tensor:
        return self.first_position_id + _full_mask(tokens).cumsum(1) - 1

    @cached_property
    def output_name(self) -> str:  # type: ignore[override]
        """The name of the first output; empty if the model cannot be called."""
        tokens = self.sample_tokens(1, self.default_length, 0)
        try:
            outputs = self._trial_outputs(tokens, self._cache_option(use_cache=False))
            return next(iter(self._audited_outputs(outputs, tokens)))
        except Exception as error:  # noqa: BLE001 - third-party code: the measurement itself reports the error
            raise_own_error(error)
            return ""

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        first = self._draw(tokens, seed).inputs[0]
        if self.patch_count is not None and len(first) == self.patch_count:
            return first  # packed patches have no batch axis
        samples = [self._draw(tokens, seed + 1000 * k).inputs[0] for k in range(-(-rows // 2))]
        return torch.cat(samples)[:rows]

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> ModelOutput:  # fmt: skip
        options = self._cache_option(use_cache=keep)
        if positions is not None:
            options["position_ids"] = positions
        if past is not None:
            assert self.cache_argument is not None
            options[self.cache_argument] = past
            if mask is not None and self.cache_argument != "past_key_values":
                mask = mask[:, -tokens.shape[1] :]  # a recurrence takes the mask of the tokens of the call
        if self.needs_square_mask:
            options["attention_mask"] = causal_padding_mask(torch.ones(tokens.shape[:2]) > 0 if mask is None else mask)
        elif mask is not None:
            options["attention_mask"] = mask if mask.dim() == 4 else mask.long()
        outputs = self._outputs(tokens, options)
        audited = self._audited_outputs(outputs, tokens)
        cache = None if self.cache_argument is None else getattr(outputs, self.cache_argument, None)
        return ModelOutput(next(iter(audited.values())), cache)

    def _outputs(self, tokens: Tensor, options: dict[str, Any]) -> Any:
        as_dict = {"return_dict": True} if "return_dict" in self.forward_arguments else {}
        with eager_flex_attention(self.module):
            return self.module(**{self.argument: tokens}, **self.extra_inputs(tokens), **options, **as_dict)

    def _trial_outputs(self, tokens: Tensor, options: dict[str, Any]) -> Any:
        """The outputs of a call that shows what the model takes and returns, whatever its weights are."""
        return of_any_weights(self.module, lambda: self._outputs(tokens, options))

    def _audited_outputs(self, outputs: Any, tokens: Tensor) -> dict[str, Tensor]:
        prefix = prefix_token_count(self.module.config)
        audited = self.extra_inputs.text_outputs(audited_outputs(outputs, self.patch_count, prefix=prefix), tokens)
        if not self.has_token_axis:
            return audited
        return {name: x.unsqueeze(-1) if x.shape == tokens.shape[:2] else x for name, x in audited.items()}

    def hidden_states(self, tokens: Tensor) -> tuple[Tensor, ...]:
        outputs = self._outputs(tokens, {"output_hidden_states": True} | self._cache_option(use_cache=False))
        last = next(iter(self._audited_outputs(outputs, tokens).values()))
        states = (*(getattr(outputs, "hidden_states", None) or ()), last)
        if len(states) < 3 or any(s.dim() != 3 or s.shape[:2] != tokens.shape[:2] for s in states):
            raise UnsupportedCallError("it does not return the states of its layers as [row, token, feature]")
        return states[:-1] if torch.equal(states[-1], states[-2]) else states

    # ------------------------------------------------------------ caches

    @cached_property
    def supports_generation(self) -> bool:  # type: ignore[override]
        return self.causal and self.argument == "input_ids" and causal_lm_class(self.module) is not None

    def cache_kinds(self) -> tuple[str, ...]:
        """Static, quantised; and with sliding layers, one that keeps every token and one that can be rolled back."""
        if self.cache_argument != "past_key_values":
            return ()
        from transformers import DynamicCache

        slides = any(DynamicCache(config=self.module.config).is_sliding)
        static = ("static",) if getattr(self.module, "_can_compile_fullgraph", False) else ()
        quantised = ("quantised",) if has_quantised_cache(self.module.config) else ()
        return (*static, *quantised, *(("full", "recording") if slides else ()))

    def new_cache(self, kind: str, rows: int, tokens: int) -> Any:
        from transformers import DynamicCache, StaticCache

        if kind == "static":
            return set_prefill_length(StaticCache(config=self.module.config, max_cache_len=tokens), tokens)
        if kind == "quantised":
            return exact_quantised_cache(self.module.config)
        cache = DynamicCache(config=self.module.config if kind == "recording" else None)
        if kind == "recording":
            cache.activate_past_recording()
        return set_prefill_length(cache, tokens)

    def initial_cache(self, rows: int, tokens: int) -> Any:
        if self.cache_argument != "past_key_values":
            return None
        from transformers import DynamicCache

        cache = DynamicCache(config=self.module.config)
        needed = any(hasattr(layer, PREFILL_LENGTH_METHOD) for layer in cache.layers)
        return set_prefill_length(cache, tokens) if needed else None

    def generation_caches(self) -> tuple[str, ...]:
        if self.cache_argument != "past_key_values":
            return ()
        static = ("static",) if getattr(self.module, "_can_compile_fullgraph", False) else ()
        return (*static, "offloaded") if self.module.device.type == "cuda" else static

    def greedy_generation(
        self, tokens: Tensor, count: int, mask: Tensor | None = None, *, cache: str = ""
    ) -> tuple[Tensor, Tensor]:
        takes_positions = "positions" in self.supported_inputs
        return greedy_tokens(
            self.module, tokens, count, mask, pad_token_id=self.pad_token_id, takes_positions=takes_positions,
            cache=cache,
        )  # fmt: skip

    def repeat_cache(self, cache: Any, count: int) -> Any:
        if not hasattr(cache, "batch_repeat_interleave"):
            raise UnsupportedCallError("the rows of its cache cannot be repeated")
        cache = copy.deepcopy(cache)
        cache.batch_repeat_interleave(count)
        return cache

    def crop_cache(self, cache: Any, tokens: int) -> Any:
        if not hasattr(cache, "crop"):
            raise UnsupportedCallError("its cache cannot be cropped")
        cache = copy.deepcopy(cache)
        cache.crop(-tokens)
        return cache

    def reorder_cache(self, cache: Any, rows: Tensor) -> Any:
        if not hasattr(cache, "reorder_cache"):
            raise UnsupportedCallError("the rows of its cache cannot be reordered")
        cache = copy.deepcopy(cache)
        cache.reorder_cache(rows)
        return cache

    def attention_pattern(self, tokens: int) -> AttentionPattern | None:
        return attention_pattern(self.description.attention_layers, tokens, causal=self.causal)

    # ------------------------------------------------------------ the same weights elsewhere

    def sequence_parallel(self, rank: int, world: int, positions: Tensor) -> AbstractContextManager[None]:
        if not self.description.has_full_attention:
            raise UnsupportedCallError("only full attention can be distributed over ranks")
        return sequence_parallel_attention(self.module, self.first_position_id + positions, causal=self.causal)

    def square_masks(self, mask: Tensor) -> Mapping[str, Tensor]:
        plain = self.causal and self.description.has_full_attention and not self.needs_square_mask
        if not plain or "mask" not in self.supported_inputs:
            return {}
        added = causal_padding_mask(mask)
        return {"boolean": added == 0, "integer": (added == 0).long(), "float": added}

    def attention_backends(self) -> Iterator[tuple[str, Self]]:
        for name in ATTENTION_BACKENDS:
            if name != self.module.config._attn_implementation and _supports_backend(self.module, name):
                model = copy_sharing_parameters(self.module)
                try:
                    with suppress_warnings():
                        (model if hasattr(model, "set_attn_implementation") else model.model).set_attn_implementation(
                            name
                        )
                except ValueError:  # a component has no such implementation
                    continue
                if model.config._attn_implementation == name:
                    yield name, self.with_module(model)

    def loaded_in(self, dtype: torch.dtype) -> Self:
        """The model saved into a folder and loaded in this dtype, which transformers builds on meta first."""
        if self.patch_count is not None:
            raise UnsupportedCallError("its image is read by a module of orderproof, which transformers cannot load")
        if is_large(self.module):
            return self.with_module(loaded_with_weights_of(self.module, dtype))
        with suppress_warnings():
            folder = self._saved.folder_of(self.module)
            loaded = type(self.module).from_pretrained(
                folder, dtype=dtype, attn_implementation=self.module.config._attn_implementation,
                local_files_only=True, use_safetensors=True, trust_remote_code=False,
            )  # fmt: skip
        return self.with_module(loaded.eval())

    def _saved_and_loaded(self) -> Self:
        if is_large(self.module):
            return self.with_module(saved_and_loaded(self.module))
        return self.loaded_in(self.module.dtype)

    def config_variants(self) -> Iterator[tuple[str, Self]]:
        for name, model in models_with_changed_config(self.module):
            yield name, self.with_module(model)

    def reload_methods(self) -> Mapping[str, Callable[[], Self]]:
        if self.patch_count is not None:
            return super().reload_methods()
        methods = {**super().reload_methods(), "saved and loaded": self._saved_and_loaded}
        if hasattr(self.module, "init_weights"):
            methods[FROM_META] = lambda: self.with_module(built_from_meta(self.module))
        return methods


def _full_mask(tokens: Tensor) -> Tensor:
    return torch.ones(tokens.shape[:2], dtype=torch.long)


def _last_token_mask(tokens: Tensor) -> Tensor:
    """A mask that hides the last token; a mask that hides nothing may be dropped without being read."""
    mask = _full_mask(tokens)
    mask[:, 1:][:, -1:] = 0
    return mask


def set_prefill_length(cache: Any, tokens: int) -> Any:
    """Tell a cache the number of prefilled tokens, if its layers ask for it.

    Unlimited OCR keeps the prefilled tokens visible, and those that it decodes not.
    """
    for layer in cache.layers:
        getattr(layer, PREFILL_LENGTH_METHOD, lambda _: None)(tokens)
    return cache


def can_be_called(adapter: HFAdapter) -> bool:
    """True if a plain call succeeds."""
    try:
        with torch.no_grad():
            adapter.call(adapter.sample_tokens(1, adapter.default_length, 0), keep=False)
    except Exception as error:  # noqa: BLE001 - third-party code may raise anything
        raise_own_error(error)
        return False
    return True


def _supports_backend(model: nn.Module, backend: str) -> bool:
    return backend not in BACKEND_FLAGS or bool(getattr(model, BACKEND_FLAGS[backend], False))
