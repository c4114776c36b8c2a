"""Tensors of a stored or traced program: which count as weights, and the submodules that hold them by name."""

from __future__ import annotations

from torch import Tensor, nn

from orderproof.number_limits import ORDINARY_LIMIT


def is_weight(tensor: Tensor) -> bool:
    """True if a tensor counts as weights, which a proof may not read.

    A constant of the program is one number, a mask (two values, numbers that are large or infinite) or a triangle.
    """
    if not tensor.is_floating_point() or tensor.ndim == 0 or tensor.numel() < 2:
        return False
    if not bool(tensor.isfinite().all()) or float(tensor.abs().max()) >= ORDINARY_LIMIT:
        return False
    square = tensor.squeeze()
    if square.ndim < 2:
        return True
    two_values = bool(((tensor == tensor.min()) | (tensor == tensor.max())).all())
    size = square.shape[-1]
    triangle = square.shape[-2] == size and any(not bool(half.any()) for half in (square.triu(1), square.tril(-1)))
    return not two_values and not triangle


def hold(module: nn.Module, name: str, tensor: Tensor, *, weight: bool) -> tuple[nn.Module, str]:
    """Keep a tensor as a parameter or a buffer; the submodule that has it, and its name there.

    `layers.0.kernel` is `kernel` of the submodule `layers.0`. A name that a module has already gets underscores.
    """
    *folders, last = (part or "_" for part in name.split("."))
    place = module
    for folder in folders:
        key = f"{folder}_" if hasattr(place, folder) and folder not in place._modules else folder
        if key not in place._modules:
            place.add_module(key, nn.Module())
        place = place.get_submodule(key)
    while hasattr(place, last):
        last = f"{last}_"
    if weight:
        place.register_parameter(last, nn.Parameter(tensor, requires_grad=False))
    else:
        place.register_buffer(last, tensor)
    return place, last
