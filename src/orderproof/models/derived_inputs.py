"""Example inputs of a plain module, derived from its first layer: token ids for an embedding, else vectors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from orderproof.models.sample import BATCH_SIZE
from orderproof.models.subject import MIN_DEFAULT_LENGTH
from orderproof.models.trial_call import check_trial_call
from orderproof.recording.restored_state import restored_state


def derive_inputs(module: nn.Module, name: str) -> tuple[Tensor, str] | None:
    """The input of a module with one required argument, and a note that says how it was derived; None without one.

    The module must accept it. Raises `SubjectError` if it must not be called.
    """
    if not _takes_one_input(module):
        return None
    for example, reason in _candidates(module):
        check_trial_call(name, module, lambda example=example: module(example.clone()))  # type: ignore[misc]
        if _accepts(module, example):
            return example, f"input: {reason}; if it takes others, give example inputs"
    return None


def _takes_one_input(module: nn.Module) -> bool:
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):  # code without a signature
        return False
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return len(required) == 1 and required[0].kind in (required[0].POSITIONAL_ONLY, required[0].POSITIONAL_OR_KEYWORD)


def _candidates(module: nn.Module) -> Iterator[tuple[Tensor, str]]:
    """Token ids for the first embedding and vectors for the first linear layer, in the order of these layers."""
    generator, shape = torch.Generator().manual_seed(0), (BATCH_SIZE, MIN_DEFAULT_LENGTH)
    seen: set[type[nn.Module]] = set()
    for path, layer in module.named_modules():
        place = f"from {path or 'the module'}"
        if isinstance(layer, nn.Embedding) and nn.Embedding not in seen:
            seen.add(nn.Embedding)
            ids = torch.randint(layer.num_embeddings, shape, generator=generator)
            yield ids, f"token ids below {layer.num_embeddings:,}, {place}"
        elif isinstance(layer, nn.Linear) and nn.Linear not in seen:
            seen.add(nn.Linear)
            vectors = torch.randn(*shape, layer.in_features, generator=generator)
            yield vectors.to(layer.weight.dtype), f"vectors of width {layer.in_features:,}, {place}"


def _accepts(module: nn.Module, example: Tensor) -> bool:
    try:
        with torch.no_grad(), restored_state(module):
            module(example.clone())
    except (Exception, SystemExit):  # noqa: BLE001 - the user's forward: anything may come
        return False
    return True
