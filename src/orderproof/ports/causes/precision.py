"""Numbers in a lower precision: the epsilon of norms, constants of a model, frequencies and angles of positions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from orderproof.ports.causes.cause import Candidate, Cause, Defaults, with_values
from orderproof.ports.reference import Change, Reference

EPSILONS = (1e-5, 1e-6, 1e-8, 1e-12, 1e-7, 1e-3)  # the last one is that of Keras


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    for key, value in reference.config.to_dict().items():
        if key.endswith(("_eps", "epsilon")) and isinstance(value, float):
            own = [defaults[key]] if isinstance(defaults.get(key), float) else []
            for epsilon in dict.fromkeys((*own, *EPSILONS)):
                if epsilon != value:
                    change = with_values({key: epsilon})
                    yield Candidate("norm or constant precision", key, f"{value:g}", f"{epsilon:g}", change)
    yield from _rounded_constants(reference)
    buffers = [name for name, _ in reference.model.named_buffers() if name.endswith("inv_freq")]
    for dtype in (torch.bfloat16, torch.float16) if buffers else ():
        narrow = f"in {str(dtype).removeprefix('torch.')}"
        for part, change in (
            ("rotary frequencies", Change(prepare=partial(_round_buffers, name="inv_freq", dtype=dtype))),
            ("rotary angles", Change(prepare=partial(_round_tables, dtype=dtype))),
        ):
            yield Candidate("norm or constant precision", part, "in float32", narrow, change)


def _rounded_constants(reference: Reference) -> Iterator[Candidate]:
    """Buffers of one number, such as the scale of embeddings of Gemma, by their name in all modules."""
    constants = [(path, each) for path, each in reference.model.named_buffers() if each.numel() == 1]
    for dtype in (torch.bfloat16, torch.float16):
        moved = {
            path.rpartition(".")[2] for path, each in constants if each.is_floating_point() and each.to(dtype) != each
        }
        for name in sorted(moved):
            narrow = f"in {str(dtype).removeprefix('torch.')}"
            change = Change(prepare=partial(_round_buffers, name=name, dtype=dtype))
            yield Candidate("norm or constant precision", name, "in float32", narrow, change)


def _round_buffers(model: Any, name: str, dtype: torch.dtype) -> None:
    for path, buffer in model.named_buffers():
        if path.rpartition(".")[2] == name:
            buffer.copy_(buffer.to(dtype))


def _round_tables(model: Any, dtype: torch.dtype) -> None:
    """Round the cosines and sines that a rotary module returns."""

    def rounded(module: Any, arguments: Any, output: Any) -> Any:
        del module, arguments
        return tuple(each.to(dtype).to(each.dtype) for each in output) if isinstance(output, tuple) else output

    for part in model.modules():
        if any(name.endswith("inv_freq") for name, _ in part.named_buffers(recurse=False)):
            part.register_forward_hook(rounded)


CAUSE = Cause("norm or constant precision", 100, _candidates)
