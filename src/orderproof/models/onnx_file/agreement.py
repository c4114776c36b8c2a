"""Agreement of a translation with ONNX Runtime, up to the rounding of the file's own numbers.

Two correct programs round differently at each operator, and a file may enlarge that: it subtracts large numbers, or
rounds to integers of eight bits. So the graph runs again with the result of each node changed at random by some units
in the last place. A difference is rounding if such a run differs as much. Results that are integers are exact and stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.graph import OnnxNode
from orderproof.models.translation_rounding import gap, largest, unit

UNITS = (4, 8, 16, 32)  # in the last place, of the change of each result: products of long vectors round several times
SHARE = 2.0  # a difference may be this many times that of a run with changed results
OF_OUTPUT = 16  # units in the last place of the largest output, which need no further run


def check_agreement(
    name: str, graph: nn.Module, given: Sequence[Tensor], found: Mapping[str, Tensor], expected: Iterable[Any]
) -> None:
    """Raise `SubjectError` for outputs that differ from the expected ones by more than rounding."""
    others = {key: torch.from_numpy(other) for key, other in zip(found, expected, strict=True)}
    gaps = {key: gap(x, others[key]) for key, x in found.items()}
    explained = {key: OF_OUTPUT * unit(x) * largest(x) for key, x in found.items()}
    for number, units in enumerate(UNITS):
        if all(gaps[key] <= explained[key] for key in found):
            return
        with torch.no_grad(), _changed_results(graph, units, torch.Generator().manual_seed(number)):
            changed = graph(*given)
        explained = {key: max(limit, SHARE * gap(found[key], changed[key])) for key, limit in explained.items()}
    for key, apart in gaps.items():
        if not apart <= explained[key]:
            raise SubjectError(
                f"{name}: the translation to torch gives another output {key!r} than ONNX Runtime ({apart:.2g} apart, "
                f"where rounding explains {explained[key]:.2g}); please report it"
            )


@contextmanager
def _changed_results(graph: nn.Module, units: int, generator: torch.Generator) -> Any:
    def change(node: nn.Module, inputs: Any, outputs: list[Any]) -> list[Any]:
        del inputs
        absolute = isinstance(node, OnnxNode) and node.operator == "Sigmoid"
        return [_changed(x, units, generator, absolute=absolute) if isinstance(x, Tensor) else x for x in outputs]

    hooks = [node.register_forward_hook(change) for node in graph.modules() if isinstance(node, OnnxNode)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _changed(x: Tensor, units: int, generator: torch.Generator, *, absolute: bool) -> Tensor:
    """A changed result; ``absolute``: by units of 1, as the runtime rounds a sigmoid, 0.5 plus an odd function."""
    if not x.is_floating_point():
        return x
    share = (2 * torch.rand(x.shape, generator=generator, dtype=torch.float64) - 1) * units * unit(x)
    return torch.where(x == x.round(), x, (x + share if absolute else x * (1 + share)).to(x.dtype))
