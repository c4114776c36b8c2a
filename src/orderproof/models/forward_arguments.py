"""The arguments of the forward of a module, which modules that call it pass on."""

from __future__ import annotations

import inspect
import sys
from abc import abstractmethod
from collections.abc import Mapping

from torch import nn


class PassesKeywordsOn(nn.Module):
    """A module that calls another one, to which it passes all keyword arguments besides what it gives itself."""

    model: nn.Module

    def free_arguments(self) -> dict[str, inspect.Parameter]:
        """The arguments of the other module that it does not give."""
        own = enumerate(arguments_of_forward(self.model).items())
        return {name: parameter for place, (name, parameter) in own if not self._gives(name, place)}

    def gives_keyword(self, name: str) -> bool:
        """True if this module, or one that it calls, gives a keyword argument of this name itself."""
        inner = isinstance(self.model, PassesKeywordsOn) and self.model.gives_keyword(name)
        return inner or self._gives(name, sys.maxsize)

    @abstractmethod
    def _gives(self, name: str, place: int) -> bool:
        """True if it gives this argument of the other module itself; `place` is that among its arguments."""


def arguments_of_forward(module: nn.Module) -> Mapping[str, inspect.Parameter]:
    """The arguments of the forward of a module; none if it has no signature, as of a TorchScript module."""
    if isinstance(module, PassesKeywordsOn):
        return module.free_arguments()
    try:
        return inspect.signature(module.forward).parameters
    except ValueError:
        return {}
