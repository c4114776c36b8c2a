"""A ground that is read off the recorded graph: which inputs an output is worked out from, and by which operators."""

from __future__ import annotations

from torch.fx import Node

from orderproof.claims.bench import Bench
from orderproof.claims.by_numbers import made
from orderproof.claims.claim import Make, Outcome
from orderproof.prover.capture import Captured, capture

PROJECTING = "aten.linear.default"
OUTPUTS = ("Q", "K", "V")


def projections_of_one_input(make: Make, bench: Bench) -> Outcome:
    """Whether Q, K and V are each one linear map of the very same tensor."""
    read = projected(make)
    sources = {source for source, _ in read.values()}
    linear = all(operator == PROJECTING for _, operator in read.values())
    return Outcome(found="shown" if linear and len(sources) == 1 else "refuted", method="graph", evidence=said(read))


def keys_and_values_from_elsewhere(make: Make, bench: Bench) -> Outcome:
    """Whether K and V are linear maps of one tensor, and Q of another."""
    read = projected(make)
    linear = all(operator == PROJECTING for _, operator in read.values())
    apart = read["K"][0] == read["V"][0] != read["Q"][0]
    return Outcome(found="shown" if linear and apart else "refuted", method="graph", evidence=said(read))


def projected(make: Make) -> dict[str, tuple[str, str]]:
    """For Q, K and V: the tensor its last operator reads, and that operator."""
    captured = capture(*made(make))
    return {name: (_read_by(captured.outputs[name], captured), str(captured.outputs[name].target)) for name in OUTPUTS}


def _read_by(node: Node, captured: Captured) -> str:
    source = node.args[0]
    assert isinstance(source, Node)
    return f"input {captured.inputs.index(source)}" if source in captured.inputs else f"the result of {source.target}"


def said(read: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    """One line for each of them."""
    return tuple(f"{name} is {operator} of {source}" for name, (source, operator) in read.items())
