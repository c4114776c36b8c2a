"""Patches of transformers for loading without output and for tracing the branches of an eager call.

transformers checks whether it is being traced, and then builds masks that it would not build in an eager call. A proof
is about the eager call, so these checks return False during tracing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.library_code import is_of_a_library
from orderproof.models.hf.moe_rewrites import rewrite_moe_layers
from orderproof.optional_packages import install_command
from orderproof.recording.recording import is_recording

if TYPE_CHECKING:
    from torch import nn


_LEAVE_MASKS_OUT = ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa")


def transformers_library() -> Any:
    """Import transformers without output. Raises `SubjectError` if it is not installed."""
    try:
        import transformers
    except ImportError as error:
        raise SubjectError(
            f"this subject requires transformers, which is not installed: {install_command('hf')}"
        ) from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@contextmanager
def patch_attribute(owner: Any, name: str, value: object) -> Iterator[None]:
    """Set an attribute to another value temporarily. A class gets its own entry back: a staticmethod stays one."""
    is_own, before = name in vars(owner), vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


def _return_false(*_args: object, **_options: object) -> bool:
    return False


def _return_true(*_args: object, **_options: object) -> bool:
    return True


def _return_none(*_args: object, **_options: object) -> None:
    return None


def _without_raising(cond: object, *_args: object, **_options: object) -> None:
    """`torch_compilable_check` of a condition that is met: it does nothing else than compute it."""
    if callable(cond):
        cond()


def _as_if_tracing(find: Callable[..., object]) -> Callable[..., object]:
    """The function without its checks of the values of a mask: the mask is kept."""
    from transformers import masking_utils

    def wrapper(*args: Any, **options: Any) -> object:
        with patch_attribute(masking_utils, "is_tracing", _return_true):
            return find(*args, **options)

    return wrapper


@contextmanager
def masks_left_out() -> Iterator[list[Tensor]]:
    """The masks that transformers leaves out within the block, because they hide nothing."""
    from transformers import masking_utils

    found: list[Tensor] = []

    def noting(ignore: Callable[..., object]) -> Callable[..., object]:
        def wrapper(padding_mask: Tensor | None = None, *args: Any, **options: Any) -> object:
            answer = ignore(padding_mask, *args, **options)
            if answer and padding_mask is not None:
                found.append(padding_mask)
            return answer

        return wrapper

    with ExitStack() as stack:
        for name in _LEAVE_MASKS_OUT:
            ignore: Any = getattr(masking_utils, name, None)
            if is_of_a_library(ignore):
                stack.enter_context(patch_attribute(masking_utils, name, noting(ignore)))
        yield found


def _if_readable(find: Callable[..., object]) -> Callable[..., object]:
    """The function as it is where position ids have values; on the meta device and for torch.export, those by default.

    A recording can read them too, and refuses to read what depends on tokens.
    """

    def wrapper(position_ids: Any, *args: Any, **options: Any) -> object:
        has_values = type(position_ids) is Tensor and not position_ids.is_meta
        return find(position_ids, *args, **options) if has_values or is_recording() else None

    return wrapper


def _modelling_modules(module: nn.Module) -> set[ModuleType]:
    names = {type(part).__module__ for part in module.modules()}
    return {sys.modules[name] for name in names if name.startswith("transformers.models.") and name in sys.modules}


def _of_grouped_experts(module: nn.Module) -> list[Any]:
    """The configurations whose experts run as one grouped product, by the code of the library.

    A recording does not know that product in every precision. The product in batches adds the same numbers.
    """
    moe = sys.modules.get("transformers.integrations.moe")
    known = getattr(moe, "ALL_EXPERTS_FUNCTIONS", {})
    grouped, batched = known.get("grouped_mm"), known.get("batched_mm")
    if grouped is None or grouped is not getattr(moe, grouped.__name__, None) or not is_of_a_library(batched):
        return []
    configs = {id(x): x for part in module.modules() if (x := getattr(part, "config", None)) is not None}
    return [x for x in configs.values() if vars(x).get("_experts_implementation_internal") == "grouped_mm"]


@contextmanager
def eager_branches(
    module: nn.Module, *, is_given: bool = True, packed: bool = False, keeps_masks: bool = False
) -> Iterator[None]:
    """During tracing, take the branches of an eager call.

    Only functions of transformers and torch are replaced, none that other code put in their place. Checks in the
    modelling files themselves stay: they select a formula, not a mask. A model that was built for the audit from the
    code of transformers computes the same with a mask that hides nothing as without one, so that masks are kept whose
    values cannot be read, and its layers of experts are replaced, see `rewrite_moe_layers`. In a model that is given,
    any part may have been changed.

    Args:
        module: The model, or a module that calls it.
        is_given: The model is an object of the user.
        packed: Position ids may be those of packed documents: the mask of documents is traced.
        keeps_masks: A mask that hides nothing is kept in a given model too.

    """
    from transformers import PreTrainedModel, masking_utils, modeling_attn_mask_utils

    modelling = _modelling_modules(module)
    found: list[tuple[Any, str, Callable[..., object]]] = [
        (masking_utils, "is_tracing", _return_false),
        (masking_utils, "is_torchdynamo_exporting", _return_false),
        (modeling_attn_mask_utils, "is_tracing", _return_false),
        (PreTrainedModel, "warn_if_padding_and_no_attention_mask", _return_none),
        *((file, "is_torchdynamo_compiling", _return_false) for file in modelling),
        *((file, "torch_compilable_check", _without_raising) for file in modelling),
    ]
    if not is_given:
        find = getattr(masking_utils, "find_packed_sequence_indices", _return_none)
        recurrent = getattr(masking_utils, "create_recurrent_attention_mask", _return_none)
        found.append((masking_utils, find.__name__, _as_if_tracing(find) if packed else _if_readable(find)))
        found += [(file, recurrent.__name__, _as_if_tracing(recurrent)) for file in modelling]
    if keeps_masks or not is_given:
        for name in _LEAVE_MASKS_OUT:
            ignore = getattr(masking_utils, name, _return_none)
            found.append((masking_utils, name, _as_if_tracing(ignore)))
    # Before the first one is replaced, which others may call.
    own = [(owner, name, value) for owner, name, value in found if is_of_a_library(getattr(owner, name, None))]
    with ExitStack() as stack:
        if not is_given:
            stack.enter_context(rewrite_moe_layers(module))
        for config in _of_grouped_experts(module):
            stack.enter_context(patch_attribute(config, "_experts_implementation_internal", "batched_mm"))
        for owner, name, value in own:
            stack.enter_context(patch_attribute(owner, name, value))
        stack.enter_context(suppress_warnings())
        yield
