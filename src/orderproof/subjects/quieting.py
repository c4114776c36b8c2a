"""Loading and recording transformers models without a word and without a detour.

transformers asks whether it is being traced, and if so builds masks it would not build in a plain
call. A proof must be about the plain call, so while a graph is recorded the answer is no.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from orderproof.errors import SubjectError
from orderproof.subjects.routing import token_by_token

if TYPE_CHECKING:
    from torch import nn


def transformers_library() -> Any:
    """Import transformers, silent; an error that says what to install where it is missing."""
    try:
        import transformers
    except ImportError as error:
        raise SubjectError(
            'transformers is needed for this subject and is not installed: pip install "orderproof[hf]"'
        ) from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@contextmanager
def silence() -> Iterator[None]:
    """Keep warnings of a library from the terminal while it loads."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(before)


@contextmanager
def replaced(place: Any, name: str, value: object) -> Iterator[None]:
    """Give an attribute another value for a while."""
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)


def _no(*_args: object, **_options: object) -> bool:
    return False


def _yes(*_args: object, **_options: object) -> bool:
    return True


def _nothing(*_args: object, **_options: object) -> None:
    return None


def _kept_where_unreadable(ignore: Callable[..., bool]) -> Callable[..., bool]:
    """Keep a mask whose values decide whether it may be dropped, when they cannot be read while recording."""
    from torch._subclasses.fake_tensor import DataDependentOutputException
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    @wraps(ignore)
    def answer(*args: Any, **options: Any) -> bool:
        try:
            return bool(ignore(*args, **options))
        except (GuardOnDataDependentSymNode, DataDependentOutputException):
            return False

    return answer


def _as_recorded(find: Callable[..., object]) -> Callable[..., object]:
    """A function that gives its mask without looking whether there is anything to hide."""
    from transformers import masking_utils

    def answer(*args: Any, **options: Any) -> object:
        with replaced(masking_utils, "is_tracing", _yes):
            return find(*args, **options)

    return answer


def _modelling_modules(module: nn.Module) -> set[ModuleType]:
    names = {type(part).__module__ for part in module.modules()}
    return {sys.modules[name] for name in names if name.startswith("transformers.models.")}


def is_from_transformers(module: nn.Module) -> bool:
    """Whether any part of a module is a transformers class."""
    return bool(_modelling_modules(module))


@contextmanager
def plain_branches(module: nn.Module, *, packed: bool = False) -> Iterator[None]:
    """While recording, take the branches a plain call without position ids and without a mask takes.

    Packed detection reads the values of position ids; the default ones never look packed. With ``packed`` they
    may be, and the mask that follows from them is recorded. What the modelling files themselves ask about
    exporting is left alone: it selects a formula, not a mask.
    """
    from transformers import masking_utils, modeling_attn_mask_utils

    with ExitStack() as stack:

        def answer(place: ModuleType, name: str, reply: Callable[..., object]) -> None:
            if hasattr(place, name):
                stack.enter_context(replaced(place, name, reply))

        answer(masking_utils, "is_tracing", _no)
        answer(masking_utils, "is_torchdynamo_exporting", _no)
        find = getattr(masking_utils, "find_packed_sequence_indices", _nothing)
        answer(masking_utils, "find_packed_sequence_indices", _as_recorded(find) if packed else _nothing)
        for name in ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"):
            if (ignore := getattr(masking_utils, name, None)) is not None:
                answer(masking_utils, name, _kept_where_unreadable(ignore))
        answer(modeling_attn_mask_utils, "is_tracing", _no)
        recurrent = getattr(masking_utils, "create_recurrent_attention_mask", None)
        for place in _modelling_modules(module):
            answer(place, "is_torchdynamo_compiling", _no)
            if recurrent is not None:  # whether a mask hides anything cannot be read while recording: keep it
                answer(place, "create_recurrent_attention_mask", _as_recorded(recurrent))
        stack.enter_context(token_by_token(module))
        stack.enter_context(silence())
        yield
