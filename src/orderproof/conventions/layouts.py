"""The layouts in which functions take vectors, and the way to each from [row, head, token, width] and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Layout(NamedTuple):
    """The way to a layout, and back."""

    given: Callable[[Tensor], Tensor]
    back: Callable[[Tensor], Tensor]
    has_heads: bool = True


LAYOUTS = {
    "[row, head, token, width]": Layout(lambda x: x, lambda x: x),
    "[row, token, head, width]": Layout(lambda x: x.transpose(1, 2), lambda x: x.transpose(1, 2)),
    "[row, token, width]": Layout(lambda x: x.squeeze(1), lambda x: x.unsqueeze(1), has_heads=False),
}
