"""The output of the largest part of a model, kept from one call of a loss for calls with other labels.

Labels reach the end of most models only, so a call with other labels need not run the layers again. A part of the model
returns its kept output where it gets the inputs of the first call. What is so computed is first compared with a call in
which all runs again: where a bit differs, or a label reaches the part, all calls run whole. So does a call that leaves
out other labels: layers may find their prompt by labels of -100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

DEEPEST = 4  # modules within modules, each with more than half of the parameters
_PLAIN = (type(None), bool, int, float, str, torch.dtype, torch.device)


@dataclass
class KeptOutputs:
    """The outputs of parts of a model in one call of a loss.

    `is_exact` says if calls that reuse them return the same as others; None before that was compared.
    """

    parts: list[nn.Module]
    is_exact: bool | None = None
    _kept: dict[nn.Module, list[_Kept]] = field(default_factory=dict)
    _used: set[nn.Module] = field(default_factory=set)

    @classmethod
    def of(cls, model: nn.Module) -> KeptOutputs:
        """Those of a model and of the parts in it that have most of its parameters; of none if any is compiled."""
        return cls([] if any(map(_is_compiled, model.modules())) else list(_largest_parts(model)))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A block in which outputs are kept."""
        with self._called_by(self._keep):
            yield

    @contextmanager
    def reused(self) -> Iterator[None]:
        """A block in which a part returns the output that it had with the same inputs."""
        with self._called_by(self._reuse):
            yield

    def settle(self, *, is_exact: bool) -> None:
        """Note what a comparison says, and keep the outputs that it used and no other ones."""
        self.is_exact = is_exact and bool(self._used)
        self.parts = [part for part in self.parts if part in self._used] if self.is_exact else []
        self._kept = {part: self._kept[part] for part in self.parts}

    @contextmanager
    def _called_by(self, call: Callable[..., Any]) -> Iterator[None]:
        with ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(_other_forward(part, call))
            yield

    def _keep(self, part: nn.Module, forward: Callable[..., Any], *given: Any, **named: Any) -> Any:
        output = forward(*given, **named)
        self._kept.setdefault(part, []).append(_Kept(_Tree.of((given, named)), _Tree.of(output)))
        return output

    def _reuse(self, part: nn.Module, forward: Callable[..., Any], *given: Any, **named: Any) -> Any:
        asked = _Tree.of((given, named))
        for kept in self._kept.get(part, ()):
            if kept.given.is_same(asked) and not kept.output.is_changed:
                self._used.add(part)
                return kept.output.copied()
        return forward(*given, **named)


@dataclass(frozen=True)
class _Tree:
    """The values of nested containers: tensors without a graph, each with whether it had one and its version."""

    leaves: tuple[Any, ...]
    structure: Any
    with_graph: tuple[bool, ...]
    versions: tuple[int, ...]

    @classmethod
    def of(cls, value: Any) -> _Tree:
        leaves, structure = tree_flatten(value)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        return cls(
            tuple(x.detach() if isinstance(x, Tensor) else x if isinstance(x, _PLAIN) else _Other for x in leaves),
            structure, tuple(x.requires_grad for x in tensors), tuple(x._version for x in tensors),
        )  # fmt: skip

    @property
    def is_changed(self) -> bool:
        """True if a tensor was written to since."""
        return any(x._version != version for x, version in zip(self._tensors, self.versions, strict=True))

    @property
    def _tensors(self) -> list[Tensor]:
        return [x for x in self.leaves if isinstance(x, Tensor)]

    def is_same(self, other: _Tree) -> bool:
        """True if another tree has the same values; objects that are no values are not compared, and differ."""
        if self.structure != other.structure or self.is_changed:
            return False
        return all(map(_is_same, self.leaves, other.leaves))

    def copied(self) -> Any:
        """Copies of the values, with a graph of their own where they had one; other objects are None."""
        graphs = iter(self.with_graph)
        copies = [
            x.detach().requires_grad_(next(graphs)).clone() if isinstance(x, Tensor) else None if x is _Other else x
            for x in self.leaves
        ]
        return tree_unflatten(copies, self.structure)


@dataclass(frozen=True)
class _Kept:
    given: _Tree
    output: _Tree


class _Other:
    """Stands for an object that is not kept, such as a cache."""


def _is_same(x: Any, y: Any) -> bool:
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return x.dtype == y.dtype and x.device == y.device and torch.equal(x, y)
    return x is not _Other and type(x) is type(y) and bool(x == y)


def _largest_parts(model: nn.Module) -> Iterator[nn.Module]:
    """The model, and in each part the one with more than half of all parameters."""
    half, parts = sum(x.numel() for x in model.parameters()) / 2, [model]
    while parts and len(parts) <= DEEPEST:
        yield parts[-1]
        inner = [child for child in parts[-1].children() if sum(x.numel() for x in child.parameters()) > half]
        parts = [*parts, *inner] if inner else []


def _is_compiled(part: nn.Module) -> bool:
    return hasattr(part, "_orig_mod") or part._compiled_call_impl is not None


@contextmanager
def _other_forward(part: nn.Module, call: Callable[..., Any]) -> Iterator[None]:
    """A block in which a module's forward goes through `call`."""
    own, forward = vars(part).get("forward"), part.forward

    @wraps(forward)
    def called(*given: Any, **named: Any) -> Any:
        return call(part, forward, *given, **named)

    part.forward = called
    try:
        yield
    finally:
        del part.forward
        if own is not None:
            part.forward = own
