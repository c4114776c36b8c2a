"""A step may refer to an earlier step that is equal to it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from orderproof.diagnosis.certificate import digest, graph_fingerprint
from orderproof.errors import CertificateError
from orderproof.recheck import recheck
from orderproof.recheck.fact import Fact
from tests.recheck.alterations import nodes
from tests.recheck.certificates import Certificate, by_node, example
from tests.recheck.step_runs import array, coded


def twins(made: Certificate) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two steps with the same operator, arguments but for names, and fact, of operands with the same facts."""
    steps = by_node(made)

    def content(step: dict[str, Any]) -> str:
        named = {"args": step["args"], "kwargs": step["kwargs"]}
        text = json.dumps([step[k] for k in ("operator", "shape", "dtype", "lemma", "fact")] + [named])
        for _, x in nodes(step["args"]):
            other = steps[x["node"]]
            shown = [other["operator"] == "parameter", other["shape"], other["dtype"], other["fact"]]
            text = text.replace(json.dumps(x), json.dumps(shown))
        return text

    seen: dict[str, dict[str, Any]] = {}
    for step in made["steps"]:
        first = seen.setdefault(content(step), step)
        if step["operator"].startswith("aten.linear") and first["args"][0] != step["args"][0]:
            return first, step
    raise AssertionError("no twins")


def test_a_step_that_is_as_another_is_accepted() -> None:
    _, made = example("causal:llama:sdpa")
    first, second = twins(made)
    second["repeats"] = first["node"]
    made["digest"] = digest(made)
    graph = made["graph"]
    assert recheck(made).steps == len(made["steps"])
    assert made["graph"] == graph  # it is no part of the graph


@pytest.mark.parametrize(
    "change", ["another step", "a later step", "itself", "no step", "its fact", "its operand", "a literal"]
)
def test_a_step_that_is_not_as_another_is_refused(change: str) -> None:
    _, made = example("causal:llama:sdpa")
    first, second = twins(made)
    steps = made["steps"]
    k = steps.index(second)
    other = next(s for s in steps if s["operator"] == "aten.mul.Tensor")
    named = {
        "another step": other["node"],
        "a later step": steps[k + 1]["node"],
        "itself": second["node"],
        "no step": "",
    }
    second["repeats"] = named.get(change, first["node"])
    if change == "its fact":
        second["fact"]["dependence"] = coded(np.broadcast_to(array(second["fact"]["dependence"]), second["shape"]))
    elif change == "its operand":
        read = by_node(made)[second["args"][0]["node"]]
        read["fact"]["dependence"] = coded(np.full([1] * len(read["shape"]), 2**40))  # true, and less than before
    elif change == "a literal":
        second["kwargs"] = {"bias": None}
    with pytest.raises(CertificateError, match=f"step {k + 1} "):
        recheck({**(made := {**made, "graph": fingerprint_of(made)}), "digest": digest(made)})


def fingerprint_of(made: Certificate) -> str:
    """The fingerprint of a certificate's graph, whether or not the writer knows of "repeats"."""
    return graph_fingerprint([{k: v for k, v in s.items() if k != "repeats"} for s in made["steps"]])


def test_a_step_is_like_another_only_if_its_operands_move_in_the_same_way() -> None:
    bounds = -np.ones(1), np.ones(1)
    facts = [Fact((3,), "float32", (move,), -np.ones(1, int), *bounds) for move in ("identity", "uniform")]
    assert facts[0].digest("claimed") != facts[1].digest("claimed")
