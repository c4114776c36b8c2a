"""Functions of Penzai, whose arrays have named axes; skipped without a Python that has jax and Penzai."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import orderproof
from orderproof.records.audit import Finding
from orderproof.subject_spec import JAX_PYTHON_VARIABLE

MODELS = """
import jax
import jax.numpy as jnp
from penzai import pz

WEIGHTS = jax.random.normal(jax.random.key(0), (6, 6))


def sums(weights, x, backward):
    named = pz.nx.wrap(x).tag("rows", "tokens", "features")
    named = pz.nx.nmap(lambda v: v @ weights)(named.untag("features")).tag("features")
    flip = jnp.flip if backward else lambda v: v
    named = pz.nx.nmap(lambda v: flip(jnp.cumsum(flip(v))))(named.untag("tokens")).tag("tokens")
    return named.unwrap("rows", "tokens", "features")


def forward():
    return lambda w, x: sums(w, x, False), WEIGHTS, jnp.ones((2, 7, 6))


def backward():
    return lambda w, x: sums(w, x, True), WEIGHTS, jnp.ones((2, 7, 6))
"""

PYTHON = os.environ.get(JAX_PYTHON_VARIABLE, "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason=f"{JAX_PYTHON_VARIABLE} names no Python with jax"),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if subprocess.run([PYTHON, "-c", "import penzai"], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} has no penzai: pip install penzai==0.2.5")
    path = tmp_path_factory.mktemp("penzai") / "models.py"
    path.write_text(MODELS, encoding="utf-8")
    return path


def causality(file: Path, name: str) -> Finding:
    (found,) = orderproof.audit(f"{file}:{name}", laws=["causal"]).findings
    return found


def test_sums_over_a_named_axis_are_causal_for_every_length(file: Path) -> None:
    found = causality(file, "forward")
    assert found.theorem is not None
    assert (found.verdict, found.theorem.proved, found.theorem.open_length) == ("proved", True, True)


def test_sums_from_the_end_are_refuted_at_their_line(file: Path) -> None:
    found = causality(file, "backward")
    assert found.verdict == "refuted"
    assert "models.py" in found.fix_source
