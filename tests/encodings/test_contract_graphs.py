"""The contract of every registered encoding while tracing: one graph for all lengths, and meta tensors."""

from __future__ import annotations

import pytest
import torch

from orderproof import positions
from tests.encodings.examples import (
    build,
    call,
    every_encoding,
    operands,
    placed,
)


@every_encoding
@pytest.mark.parametrize(("dynamic", "most"), [(True, 1), (None, 2)], ids=["dynamic", "as torch chooses"])
def test_a_new_length_needs_no_python_branch(name: str, dynamic: bool | None, most: int) -> None:
    torch.compiler.reset()  # torch counts the encodings compiled before as recompilations of this one
    encoding = build(name)
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    compiled = torch.compile(call, backend=backend, fullgraph=True, dynamic=dynamic)
    for tokens in (5, 9, 11, 6, 30, 17, 32):
        p, given = placed(encoding, positions.offset(17, tokens)), operands(encoding, tokens)
        found, expected = compiled(encoding, given, p), call(encoding, given, p)
        # Kernels and sums of another order may differ in the last bits.
        assert torch.allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert len(graphs) <= most


@every_encoding
def test_it_runs_on_meta_tensors(name: str) -> None:
    encoding = build(name).to("meta")
    given = tuple(x.to("meta") for x in operands(encoding, 5))
    found = call(encoding, given, placed(encoding, positions.arange(5, device="meta")))
    real = call(build(name), operands(encoding, 5), placed(encoding, positions.arange(5)))
    assert found.is_meta
    assert found.shape == real.shape
