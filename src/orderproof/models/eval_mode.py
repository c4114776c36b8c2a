"""Switch a module to eval or train mode, also one with parts that refuse: a program of torch.export has one mode."""

from __future__ import annotations

from types import MethodType
from typing import Any

from torch import nn


def switch_mode(module: nn.Module, *, training: bool = False) -> tuple[str, ...]:
    """Switch a module to a mode; a note on its parts that refuse, which stay in the mode that they have.

    From then on such a part stays as it is without an error, in copies of the module too.
    """
    try:
        _switch(module, training=training)
    except Exception:  # noqa: BLE001 - third-party code: it may refuse in any way
        refusing = _switch_each_part(module, training=training)
        return (f"{refusing[0]} refuses {'train' if training else 'eval'}(): it is audited in the mode that it has",)
    return ()


def _switch(part: nn.Module, *, training: bool) -> None:
    part.train() if training else part.eval()


def _switch_each_part(module: nn.Module, *, training: bool) -> list[str]:
    """Switch the parts before what they are a part of; the names of those that refuse."""
    refusing = []
    for name, part in reversed(list(module.named_modules())):
        try:
            _switch(part, training=training)
        except Exception:  # noqa: BLE001 - see above
            refusing.append(f"its part {name!r}" if name else "the module")
            vars(part).update(train=MethodType(_stay, part), eval=MethodType(_stay, part))
    return refusing


def _stay(part: nn.Module, mode: Any = None) -> nn.Module:
    del mode
    return part
