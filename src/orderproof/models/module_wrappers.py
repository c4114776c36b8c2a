"""Modules that call another module: with its inputs under their names, or with an axis of each tensor moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.models.sample import Sample
from orderproof.models.subject import Subject
from orderproof.recording.captured_graph import leaf_name


class SelfAttentionCall(nn.Module):
    """An attention module called with one tensor as query, key and value."""

    def __init__(self, model: nn.MultiheadAttention) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Any:
        """Self-attention."""
        return self.model(tokens, tokens, tokens, need_weights=False)[0]


class KeywordModule(PassesKeywordsOn):
    """A module with keyword arguments, called with positional ones."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.names = tuple(names)

    def _gives(self, name: str, place: int) -> bool:
        del place
        return name in self.names

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module with each input as a keyword argument."""
        return self.model(**dict(zip(self.names, inputs, strict=True)), **keywords)


class AxisMoved(PassesKeywordsOn):
    """A module whose inputs and outputs have one axis at a fixed place, whatever place the module has it at."""

    def __init__(
        self, model: nn.Module, inputs: Sequence[int | None], outputs: Mapping[str, int], *, place: int
    ) -> None:
        """Move an axis to `place`; ``inputs`` and ``outputs`` say where the module has it, None for where it is."""
        super().__init__()
        self.model = model
        self.inputs = tuple(inputs)
        self.outputs = dict(outputs)
        self.place = place

    def _gives(self, name: str, place: int) -> bool:
        del name
        return not isinstance(self.model, PassesKeywordsOn) and place < len(self.inputs)

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module with its own order of axes; keyword arguments are passed on as they are."""
        own = [x if axis is None else x.movedim(self.place, axis) for x, axis in zip(inputs, self.inputs, strict=True)]
        leaves, structure = pytree.tree_flatten_with_path(self.model(*own, **keywords))
        return pytree.tree_unflatten([self._moved(leaf_name(path), leaf) for path, leaf in leaves], structure)

    def _moved(self, name: str, leaf: Any) -> Any:
        axis = self.outputs.get(name, self.place)
        return leaf if axis == self.place else leaf.movedim(axis, self.place)


def with_rows_first(subject: Subject, inputs: Sequence[int | None], outputs: Mapping[str, int]) -> Subject:
    """The subject with the rows of all inputs and outputs first; `inputs` and `outputs` are its own axes of rows."""
    module = AxisMoved(subject.module, [axis or None for axis in inputs], outputs, place=0).eval()

    def draw(length: int, seed: int) -> Sample:
        sample = subject.draw(length, seed)
        moved = (x.movedim(axis, 0) if axis else x for x, axis in zip(sample.inputs, inputs, strict=True))
        return Sample(tuple(x.contiguous() for x in moved), sample.labels)

    axes = tuple(
        token + 1 if isinstance(token, int) and row is not None and token < row else token
        for token, row in zip(subject.token_axes, inputs, strict=True)
    )
    return replace(subject, module=module, draw=draw, token_axes=axes, wrapped_path="model")
