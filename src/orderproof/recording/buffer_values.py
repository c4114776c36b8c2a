"""Values of the buffers of a module on the meta device, which its program may read while it is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor, nn


@contextmanager
def buffers_with_values(module: nn.Module, values: Mapping[str, Tensor]) -> Iterator[None]:
    """Give buffers on the meta device their values.

    Args:
        module: The module, whose buffers are on the meta device again afterwards.
        values: The values of buffers by qualified name. Names that the module does not have are ignored.

    """
    replaced = []
    try:
        for path, part in module.named_modules():
            for name, buffer in list(part.named_buffers(recurse=False)):
                value = values.get(f"{path}.{name}".removeprefix("."))
                if buffer.is_meta and value is not None:
                    replaced.append((part, name, buffer))
                    part._buffers[name] = value
        yield
    finally:
        for part, name, buffer in replaced:
            part._buffers[name] = buffer
