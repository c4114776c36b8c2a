"""How transformers models are called by measured laws: ids, masks, caches, backends, and ways of storing them."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import torch
from torch import Tensor, nn

from orderproof.driver import Answer, Driver, Sight
from orderproof.errors import Unsupported
from orderproof.subjects.altering import altered, is_rotary
from orderproof.subjects.beside import Beside
from orderproof.subjects.generating import class_with_head, generated
from orderproof.subjects.outputs import tensors_of, tokens_ahead
from orderproof.subjects.patterns import sight_of, square_mask
from orderproof.subjects.quieting import silence
from orderproof.subjects.spreading import spread
from orderproof.subjects.subject import Sample
from orderproof.subjects.uncompiled import uncompiled

CACHES = ("past_key_values", "cache_params", "state", "mems")  # what models call theirs
BACKENDS = ("eager", "sdpa", "flex_attention")
TELL = "set_prefill_length"
NAMES = {"positions": "position_ids", "mask": "attention_mask"}


class PretrainedDriver(Driver):
    """A transformers model."""

    def __init__(
        self, model: Any, argument: str, draw: Callable[[int, int], Sample], *, beside: Beside, kind: str, length: int,
        longest: int | None, first_position: int, pad: int | None, stretches: tuple[int, ...], patches: int | None,
    ) -> None:  # fmt: skip
        self.module = model
        self.argument, self._draw, self.beside, self.patches = argument, draw, beside, patches
        self.kind, self.length, self.longest = kind, length, longest
        self.first_position, self.pad, self.stretches = first_position, pad, stretches
        self.causal = kind == "causal_lm"
        self.tokens_run = patches is None and kind != "audio"
        stated = getattr(model.config, "max_position_embeddings", None)
        self.stated = stated if isinstance(stated, int) and stated > 0 else None
        self.reach = _usual_reach(model.config)
        named = inspect.signature(model.forward).parameters
        self.accepted = set(named)
        more = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in named.values())
        asked = NAMES.items() if more and self.tokens_run else ()
        self.swallows = frozenset(what for what, name in asked if name not in named)
        self.placed = longest is not None or _has_positions(model)

    @cached_property
    def cache_name(self) -> str | None:
        """What the model calls its cache; None where it gives none, takes none back or fails with one."""
        if not self.tokens_run or not self.causal:
            return None
        try:
            with torch.no_grad():
                made = self._outputs(self.draw(1, 2, 0), {"use_cache": True} if "use_cache" in self.accepted else {})
        except Exception:  # noqa: BLE001 - third-party code: a call with a cache may fail in any way
            return None
        return next((n for n in CACHES if n in self.accepted and getattr(made, n, None) is not None), None)

    @cached_property
    def rows(self) -> int:  # type: ignore[override]
        """One, where an image model packs its patches and takes one image."""
        if self.patches is None:
            return super().rows
        return 1 if len(self.draw(2, self.length, 0)) == self.patches else 2

    @cached_property
    def square(self) -> bool:
        """Whether a mask of what is real is refused, and one of which token sees which is taken: a part of a model.

        Such a part makes no mask of its own; whoever calls it gives one in every call.
        """
        if not self.tokens_run or not self.causal or self._accepts("mask", _right_padded):
            return False
        return self._accepts("mask", lambda tokens: square_mask(_right_padded(tokens) > 0))

    def _accepts(self, what: str, made: Callable[[Tensor], Tensor]) -> bool:
        """Whether it names an argument, and takes one number for each token; some want one of another shape."""
        if NAMES[what] not in self.accepted:
            return False
        tokens = self.draw(1, self.length, 0)
        given = {"use_cache": False} if "use_cache" in self.accepted else {}
        try:
            with torch.no_grad():
                self._outputs(tokens, given)
        except Exception:  # noqa: BLE001 - third-party code: where nothing can be called, it says so when measured
            return True
        try:
            with torch.no_grad():
                self._outputs(tokens, {NAMES[what]: made(tokens)} | given)
        except Exception:  # noqa: BLE001 - third-party code: an argument may be refused in any way
            return False
        return True

    @cached_property
    def takes(self) -> frozenset[str]:  # type: ignore[override]
        """What it names in its forward and takes, and a cache where it gives one."""
        if not self.tokens_run:
            return frozenset()
        found = {what for what, name in NAMES.items() if name in self.accepted and not _disclaims(self.module, name)}
        if not self.square and not self._accepts("mask", _right_padded):
            found -= {"mask"}
        if not self._accepts("positions", lambda tokens: self.first_position + _ones(tokens).cumsum(1) - 1):
            found -= {"positions"}
        return frozenset(found | ({"cache"} if self.cache_name else set()))

    @cached_property
    def output(self) -> str:  # type: ignore[override]
        """The first of its outputs; nothing where it cannot be called."""
        given = {"use_cache": False} if "use_cache" in self.accepted else {}
        tokens = self.draw(1, self.length, 0)
        try:
            with torch.no_grad():
                return next(iter(self._of(self._outputs(tokens, given), tokens)))
        except Exception:  # noqa: BLE001 - third-party code: the finding says why, where it is measured
            return ""

    def draw(self, rows: int, tokens: int, seed: int) -> Tensor:
        first = self._draw(tokens, seed).inputs[0]
        if self.patches is not None and len(first) == self.patches:
            return first  # packed: one row of patches, without an axis for rows
        many = -(-rows // 2)
        drawn = [self._draw(tokens, seed + 1000 * k).inputs[0] for k in range(many)]
        return torch.cat(drawn)[:rows]

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> Answer:  # fmt: skip
        given: dict[str, Any] = {}
        if positions is not None:
            given["position_ids"] = positions
        if past is not None:
            assert self.cache_name is not None
            given[self.cache_name] = past
            if mask is not None and self.cache_name != "past_key_values":
                mask = mask[:, -tokens.shape[1] :]  # a recurrence takes the mask of the tokens of the call
        if self.square:
            given["attention_mask"] = square_mask(torch.ones(tokens.shape[:2]) > 0 if mask is None else mask)
        elif mask is not None:
            given["attention_mask"] = mask.long()
        if keep is not None and "use_cache" in self.accepted:
            given["use_cache"] = keep
        made = self._outputs(tokens, given)
        found = self._of(made, tokens)
        return Answer(
            next(iter(found.values())), None if self.cache_name is None else getattr(made, self.cache_name, None)
        )

    def _outputs(self, tokens: Tensor, given: dict[str, Any]) -> Any:
        more = {"return_dict": True} if "return_dict" in self.accepted else {}
        with uncompiled(self.module):
            return self.module(**{self.argument: tokens}, **self.beside(tokens), **given, **more)

    def _of(self, made: Any, tokens: Tensor) -> dict[str, Tensor]:
        ahead = tokens_ahead(self.module.config)
        found = self.beside.rows_of(tensors_of(made, self.patches, ahead=ahead), tokens)
        if not self.tokens_run:
            return found
        return {name: x.unsqueeze(-1) if x.shape == tokens.shape[:2] else x for name, x in found.items()}

    def hidden(self, tokens: Tensor) -> tuple[Tensor, ...]:
        given = {"output_hidden_states": True} | ({"use_cache": False} if "use_cache" in self.accepted else {})
        made = self._outputs(tokens, given)
        states = (*(getattr(made, "hidden_states", None) or ()), next(iter(self._of(made, tokens).values())))
        if len(states) < 3 or any(s.dim() != 3 or s.shape[:2] != tokens.shape[:2] for s in states):
            raise Unsupported("it does not give out the states of its layers, a vector for each token")
        return states[:-1] if torch.equal(states[-1], states[-2]) else states

    # ------------------------------------------------------------ caches

    @cached_property
    def generates(self) -> bool:  # type: ignore[override]
        return self.causal and self.argument == "input_ids" and class_with_head(self.module) is not None

    def caches(self) -> tuple[str, ...]:
        """Static; and where layers slide, one that keeps every token, and one that can be rolled back."""
        if self.cache_name != "past_key_values":
            return ()
        from transformers import DynamicCache

        slides = any(DynamicCache(config=self.module.config).is_sliding)
        static = ("static",) if getattr(self.module, "_can_compile_fullgraph", False) else ()
        return (*static, "full", "recording") if slides else static

    def new_cache(self, kind: str, rows: int, tokens: int) -> Any:
        from transformers import DynamicCache, StaticCache

        if kind == "static":
            return told_of(StaticCache(config=self.module.config, max_cache_len=tokens), tokens)
        made = DynamicCache(config=self.module.config if kind == "recording" else None)
        if kind == "recording":
            made.activate_past_recording()
        return told_of(made, tokens)

    def begun(self, rows: int, tokens: int) -> Any:
        if self.cache_name != "past_key_values":
            return None
        from transformers import DynamicCache

        made = DynamicCache(config=self.module.config)
        return told_of(made, tokens) if any(hasattr(layer, TELL) for layer in made.layers) else None

    def generated(self, tokens: Tensor, count: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return generated(self, tokens, count, mask)

    def cropped(self, cache: Any, tokens: int) -> Any:
        if not hasattr(cache, "crop"):
            raise Unsupported("its cache cannot be cropped")
        cache = copy.deepcopy(cache)
        cache.crop(-tokens)
        return cache

    def reordered(self, cache: Any, rows: Tensor) -> Any:
        if not hasattr(cache, "reorder_cache"):
            raise Unsupported("the rows of its cache cannot be reordered")
        cache = copy.deepcopy(cache)
        cache.reorder_cache(rows)
        return cache

    def sees(self, tokens: int) -> Sight | None:
        try:
            return sight_of(self.module, tokens, causal=self.causal)
        except Exception:  # noqa: BLE001 - a configuration may refuse to be read as a whole
            return super().sees(tokens)

    # ------------------------------------------------------------ the same model otherwise

    def sharded(self, rank: int, world: int, places: Tensor) -> AbstractContextManager[None]:
        return spread(self.module, self.first_position + places, causal=self.causal)

    def backends(self) -> Iterator[tuple[str, Self]]:
        for name in BACKENDS:
            if name != self.module.config._attn_implementation and _supports(self.module, name):
                made = copy.deepcopy(self.module)
                try:
                    with silence():
                        (made if hasattr(made, "set_attn_implementation") else made.model).set_attn_implementation(name)
                except ValueError:  # a part of it has no such implementation
                    continue
                if made.config._attn_implementation == name:
                    yield name, self.with_module(made)

    def loaded(self, dtype: torch.dtype) -> Self:
        """Saved into a folder, and loaded from there: on meta first, as the library does."""
        if self.patches is not None:
            raise Unsupported("its image is read by a module of ours, which the library does not load")
        with TemporaryDirectory() as folder, silence():
            self.module.save_pretrained(folder)
            loaded = type(self.module).from_pretrained(
                Path(folder), dtype=dtype, attn_implementation=self.module.config._attn_implementation,
                local_files_only=True, use_safetensors=True, trust_remote_code=False,
            )  # fmt: skip
        return self.with_module(loaded.eval())

    def altered(self) -> Iterator[tuple[str, Self]]:
        for words, model in altered(self.module):
            yield words, self.with_module(model)

    def remade(self) -> Mapping[str, Callable[[], Self]]:
        if self.patches is not None:
            return super().remade()
        return {**super().remade(), "saved and loaded": lambda: self.loaded(self.module.dtype)}


def _ones(tokens: Tensor) -> Tensor:
    return torch.ones(tokens.shape[:2], dtype=torch.long)


def _right_padded(tokens: Tensor) -> Tensor:
    """A mask that hides the last token: one that hides nothing may be dropped unread."""
    mask = _ones(tokens)
    mask[:, 1:][:, -1:] = 0
    return mask


def told_of(cache: Any, tokens: int) -> Any:
    """A cache told how many tokens are read into it: Unlimited OCR keeps them in sight, and what it decodes not."""
    for layer in cache.layers:
        getattr(layer, TELL, lambda _: None)(tokens)
    return cache


def _has_positions(model: Any) -> bool:
    """Whether positions are turned in, or a module or a buffer is named after them."""
    if getattr(model.config, "rope_parameters", None) is not None:
        return is_rotary(model)
    named = [type(part).__name__ for part in model.modules()] + [name for name, _ in model.named_buffers()]
    return any(re.search("rotary|position|sinusoid", name, re.IGNORECASE) for name in named)


def _disclaims(model: Any, name: str) -> bool:
    """Whether a model says of an argument that it names that it ignores it: RWKV of its mask, CSM of its ids."""
    said = inspect.getsource(type(model).forward)
    return f"`{name}` was passed, but it is unused" in said or f"`{name}` were provided but will be ignored" in said


def _usual_reach(config: Any) -> int | None:
    """How many positions models of this type usually have; a tiny one states fewer."""
    try:
        found = getattr(type(config)(), "max_position_embeddings", None)
    except Exception:  # noqa: BLE001 - a configuration may have no default
        return None
    return found if isinstance(found, int) and found > 0 else None


def answers(driver: PretrainedDriver) -> bool:
    """Whether it can be called at all."""
    try:
        with torch.no_grad():
            driver.call(driver.draw(1, driver.length, 0), keep=False)
    except Exception:  # noqa: BLE001 - third-party code: anything may come
        return False
    return True


def _supports(model: nn.Module, backend: str) -> bool:
    flag = {"sdpa": "_supports_sdpa", "flex_attention": "_supports_flex_attn"}.get(backend)
    return flag is None or bool(getattr(model, flag, False))
