"""The contract of every registered encoding while tracing: one graph for all lengths, and meta tensors."""

from __future__ import annotations

import pytest
import torch

from orderproof import encodings, positions
from orderproof.encodings import PositionalEncoding, attention
from tests.encodings.examples import (
    SOON,
    WIDTH,
    build,
    call,
    every_encoding,
    exports,
    normal,
    one_encoding_of_each_site,
    operands,
    placed,
    qkv,
)


@pytest.mark.parametrize(
    ("name", "dynamic", "most"),
    [
        pytest.param(name, dynamic, most, marks=() if name in SOON and dynamic is None else pytest.mark.slow)
        for name in encodings.names()
        for dynamic, most in ((True, 1), (None, 2))  # None: as torch chooses
    ],
)
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


class InModel(torch.nn.Module):
    """The encoding where it acts: on embeddings, or in causal attention."""

    def __init__(self, encoding: PositionalEncoding) -> None:
        super().__init__()
        self.encoding = encoding

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, x: torch.Tensor, p: torch.Tensor
    ) -> torch.Tensor:
        if self.encoding.claims.site == "embed":
            return self.encoding.embed(x, p)
        token_state = self.encoding.token_state(x)
        return attention(q, k, v, encoding=self.encoding, q_positions=p, causal=True, token_state=token_state)


@one_encoding_of_each_site
@exports
def test_one_export_serves_every_length(name: str) -> None:
    model = InModel(build(name).double().requires_grad_(False))

    def inputs(tokens: int) -> tuple[torch.Tensor, ...]:
        p = placed(model.encoding, positions.arange(tokens))
        return (*qkv(tokens, tokens), normal(2, tokens, WIDTH, seed=7), p)

    length = torch.export.Dim("tokens", min=2, max=50)
    shapes = tuple({axis: length for axis, size in enumerate(x.shape) if size == 11} for x in inputs(11))
    program = torch.export.export(model, inputs(11), dynamic_shapes=shapes, strict=False).module()
    for tokens in (2, 3, 13, 50):
        found, expected = program(*inputs(tokens)), model(*inputs(tokens))
        assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)
