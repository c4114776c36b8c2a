"""Models of transformers with the weights of another one: a large model is never in memory twice.

What is computed and not saved, buffers above all, is the new model's own; its parameters are those of the other one.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.adapter import copy_sharing_parameters
from orderproof.cast_on_use import cast_tensor, is_large
from orderproof.errors import UnsupportedCallError
from orderproof.library_messages import suppress_warnings
from orderproof.recording.late_dynamo import late_dynamo

MEMORY_BEFORE_LOADING = 3  # the value of memory before loading, so that what is lost is deterministic


@contextmanager
def parameters_without_memory() -> Iterator[None]:
    """In this block, new modules have their parameters on the meta device, and their buffers in memory."""
    register = nn.Module.register_parameter

    def on_meta(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        register(self, name, param)
        if param is not None:
            self._parameters[name] = nn.Parameter(param.detach().to("meta"), requires_grad=param.requires_grad)

    nn.Module.register_parameter = on_meta  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


def share_parameters(built: nn.Module, model: nn.Module) -> None:
    """Give a model the parameters of another one, by name. Raises `KeyError` or `ValueError` if they do not fit."""
    weights = dict(model.named_parameters(remove_duplicate=False))
    for name, value in list(built.named_parameters(remove_duplicate=False)):
        own = weights[name]
        if own.shape != value.shape:
            raise ValueError(f"expected {name} of shape {list(own.shape)}; got {list(value.shape)}")
        path, _, last = name.rpartition(".")
        built.get_submodule(path)._parameters[last] = own


def loaded_with_weights_of(model: Any, dtype: torch.dtype) -> Any:
    """The model as transformers loads it in a dtype, from its own weights. Raises `UnsupportedCallError`."""
    return _loaded(model, copy.deepcopy(model.config), model.state_dict(), dtype)


def saved_and_loaded(model: Any) -> Any:
    """The model as transformers loads what it saves; the weights stay in memory instead of going through a file."""
    with tempfile.TemporaryDirectory(prefix="orderproof-") as folder:
        state = _saved_tensors(model, Path(folder))
        config = type(model.config).from_pretrained(folder, local_files_only=True)
    return _loaded(model, config, state, model.dtype)


def _loaded(model: Any, config: Any, state: Mapping[str, Tensor], dtype: torch.dtype) -> Any:
    with suppress_warnings(), late_dynamo():
        loaded, report = type(model).from_pretrained(
            None, config=config, state_dict={name: _in_dtype(value, dtype) for name, value in state.items()},
            dtype=dtype, attn_implementation=model.config._attn_implementation, output_loading_info=True,
        )  # fmt: skip
    if missing := report["missing_keys"] or report["mismatched_keys"]:
        raise UnsupportedCallError(f"its weights cannot be loaded from memory: {min(map(str, missing))}")
    return loaded.eval()


def _in_dtype(value: Tensor, dtype: torch.dtype) -> Tensor:
    return value if not value.is_floating_point() or value.dtype == dtype else cast_tensor(value, dtype)


def _saved_tensors(model: Any, folder: Path) -> dict[str, Tensor]:
    """The tensors that `save_pretrained` writes, by the names it gives them; the folder gets the configuration."""
    from transformers import modeling_utils as library

    found: dict[str, Tensor] = {}
    write: Any = library.safe_save_file

    def keep(tensors: Mapping[str, Tensor], filename: str, metadata: Any = None) -> None:
        del metadata
        found.update(tensors)
        Path(filename).touch()

    library.safe_save_file = keep
    try:
        copy_sharing_parameters(model).save_pretrained(folder)  # which writes into its configuration
    finally:
        library.safe_save_file = write
    return found


def built_from_meta(model: Any) -> Any:
    """A model built on meta, given memory by `to_empty`, initialised, and given the weights by `load_state_dict`.

    Buffers that are not saved get their values from `init_weights`, or keep what was in memory. Each tensor has the
    dtype that it has in the model: RecurrentGemma rounds the scale of its embeddings by a buffer in bfloat16. The
    parameters of a large model stay on meta until they are loaded, and then are those of the model.
    """
    shares = is_large(model)
    state = model.state_dict()
    with suppress_warnings(), torch.random.fork_rng(devices=[]), torch.no_grad(), late_dynamo():
        with torch.device("meta"):
            built = type(model)(copy.deepcopy(model.config)).eval()
        dtypes = {name: value.dtype for name, value in _named_tensors(model)}
        parameters = dict(built.named_parameters(remove_duplicate=False))
        if not shares:
            built = built.to_empty(device=model.device)
        for name, value in _named_tensors(built):
            dtype = dtypes.get(name, value.dtype)
            if not shares:
                value.data = value.to(dtype).fill_(MEMORY_BEFORE_LOADING)
            elif not (name in parameters and name in state):
                filled = torch.full_like(value, MEMORY_BEFORE_LOADING, dtype=dtype, device=model.device)
                _set_tensor(built, name, filled)
        built.init_weights()
        kept = {name: x if name in parameters else x.clone() for name, x in state.items()} if shares else state
        built.load_state_dict(kept, assign=shares)
    return built


def _set_tensor(module: nn.Module, name: str, value: Tensor) -> None:
    path, _, last = name.rpartition(".")
    part = module.get_submodule(path)
    if last in part._parameters:
        part._parameters[last] = nn.Parameter(value, requires_grad=value.is_floating_point())
    else:
        part._buffers[last] = value


def _named_tensors(model: nn.Module) -> tuple[tuple[str, Tensor], ...]:
    """The parameters and buffers, a shared one under each of its names."""
    return (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
