"""A module of torch compared with a rewrite of it, `--against file.py:name`: equal ones pass, and causes are named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orderproof import audit
from orderproof.errors import SubjectError, UsageError
from orderproof.ports.engines.registry import find_engine, find_engines
from orderproof.records.audit import Finding
from orderproof.subject_spec import JAX_PYTHON_VARIABLE

TORCH = """
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DRAWN = np.random.default_rng(0).standard_normal((6, 16, 16)).astype("float32") / 4


class Block(nn.Module):
    def __init__(self, eps=1e-5, form="none", shift=1, width=16, window=64):
        super().__init__()
        self.norm = nn.LayerNorm(16, eps=eps)
        self.form, self.shift, self.window = form, shift, window
        self.weights = nn.Parameter(torch.from_numpy(DRAWN.copy()))
        self.head = nn.Parameter(torch.from_numpy(DRAWN[5, :, :width].copy()))

    def forward(self, x):
        y = self.norm(x * 0.01) if x.is_floating_point() else self.norm(self.weights[0][x])
        q, k, v = (y @ w for w in self.weights[1:4])
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device)
        hidden = hidden.triu(self.shift) | hidden.tril(-self.window)
        y = y + (q @ k.mT / 4).masked_fill(hidden, float("-inf")).softmax(-1) @ v
        return (y + F.gelu(4 * (y @ self.weights[4]), approximate=self.form)) @ self.head


def ids():
    return Block(), torch.randint(0, 16, (2, 7))


def vectors():
    return Block(), torch.randn(2, 7, 16)


def other_epsilon():
    return Block(eps=1e-6), torch.randn(2, 7, 16)


def epsilon_of_keras():
    return Block(eps=1e-3), torch.randn(2, 7, 16)


def other_form():
    return Block(form="tanh"), torch.randn(2, 7, 16)


def seen_too_far():
    return Block(shift=2), torch.randn(2, 7, 16)


def with_a_window():
    return Block(window=3), torch.randn(2, 7, 16)


def other_width():
    return Block(width=8), torch.randn(2, 7, 16)


class Masked(nn.Module):
    def __init__(self, hides):
        super().__init__()
        self.block, self.hides = nn.Linear(16, 16), hides
        self.block.weight.data = torch.from_numpy(DRAWN[0].copy())
        nn.init.zeros_(self.block.bias)

    def forward(self, x, attention_mask=None):
        y = self.block(x)
        scores = y @ y.mT / 16
        if attention_mask is not None and self.hides:
            scores = scores.masked_fill(attention_mask[:, None, :] == 0, float("-inf"))
        if attention_mask is not None and not self.hides:
            scores = scores.masked_fill(attention_mask[:, None, :] == 0, -1.0)
        return scores.softmax(-1) @ y


def masked():
    return Masked(True), {"x": torch.randn(2, 7, 16), "attention_mask": torch.ones(2, 7, dtype=torch.long)}


def hardly_masked():
    return Masked(False), {"x": torch.randn(2, 7, 16), "attention_mask": torch.ones(2, 7, dtype=torch.long)}
"""

JAX = """
import jax
import jax.numpy as jnp
import numpy as np

DRAWN = np.random.default_rng(0).standard_normal((6, 16, 16)).astype("float32") / 4


def block(weights, x, approximate=False):
    x = x * 0.01
    y = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = (y @ w for w in weights[1:4])
    seen = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), dtype=bool))
    y = y + jax.nn.softmax(jnp.where(seen, q @ jnp.swapaxes(k, 1, 2) / 4, -jnp.inf)) @ v
    return (y + jax.nn.gelu(4 * (y @ weights[4]), approximate=approximate)) @ weights[5]


def model():
    return block, jnp.asarray(DRAWN), jnp.ones((2, 7, 16))


def by_default():
    return lambda weights, x: block(weights, x, approximate=True), jnp.asarray(DRAWN), jnp.ones((2, 7, 16))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rewrites")
    (folder / "block.py").write_text(TORCH, encoding="utf-8")
    (folder / "in_jax.py").write_text(JAX, encoding="utf-8")
    return folder


def compared(place: Path, name: str, against: str, law: str = "same_prefill") -> Finding:
    (finding,) = audit(f"{place}/block.py:{name}", against=f"{place}/{against}", laws=[law]).findings
    return finding


@pytest.mark.parametrize("name", ["ids", "vectors"])
def test_an_equal_rewrite_passes_each_law_that_it_can_take(place: Path, name: str) -> None:
    report = audit(f"{place}/block.py:{name}", against=f"{place}/block.py:{name}")
    verdicts = {finding.law: finding.verdict for finding in report.findings}
    assert report.exit_code == 0
    assert {law for law, verdict in verdicts.items() if verdict == "held"} == {"same_prefill", "same_far_positions"}
    assert {*verdicts.values()} == {"held", "not_applicable"}, verdicts
    assert (report.subject.name, report.subject.parameters) == (name, 6 * 256 + 16 * 16 + 32)


@pytest.mark.parametrize(
    ("against", "setting", "stated", "assumed"),
    [("block.py:other_epsilon", "epsilon of norm", "1e-05", "1e-06"),
     ("block.py:epsilon_of_keras", "epsilon of norm", "1e-05", "0.001"),
     ("block.py:other_form", "GELU", "by the error function", "by a hyperbolic tangent")],
)  # fmt: skip
def test_the_setting_of_a_module_that_differs_is_named(
    place: Path, against: str, setting: str, stated: str, assumed: str
) -> None:
    finding = compared(place, "vectors", against)
    assert finding.verdict == "refuted", finding.reason
    assert finding.port is not None
    assert finding.port.explained
    (cause,) = finding.port.causes
    assert (cause.setting, cause.stated, cause.assumed) == (setting, stated, assumed)
    assert finding.remedy == f"Let {setting} be as in the reference: {stated}."


def test_a_difference_of_the_mask_is_found_at_its_first_token(place: Path) -> None:
    finding = compared(place, "vectors", "block.py:seen_too_far")
    assert finding.verdict == "refuted"
    assert "differs from the first token on" in finding.reason
    assert "no setting was found that explains it" in finding.reason
    assert "block.py:seen_too_far has the weights of the reference" in finding.remedy
    assert "compare what both compute after each layer" in finding.remedy
    later = compared(place, "vectors", "block.py:with_a_window")
    assert "differs from token 3 on" in later.reason
    assert "compare the mask, the window and the positions of token 3 in both" in later.remedy


def test_rows_of_different_lengths_are_compared_where_the_rewrite_takes_a_mask(place: Path) -> None:
    assert compared(place, "masked", "block.py:masked", "same_padded_batch").verdict == "held"
    assert compared(place, "masked", "block.py:hardly_masked", "same_padded_batch").verdict == "refuted"
    assert compared(place, "vectors", "block.py:vectors", "same_padded_batch").verdict == "not_applicable"


def test_other_sizes_and_other_inputs_are_one_line(place: Path) -> None:
    finding = compared(place, "vectors", "block.py:other_width")
    assert finding.verdict == "undecided"
    assert "it returned 8 numbers for each token; the reference has 16" in finding.reason
    with pytest.raises(SubjectError, match="like that of the reference, 16 numbers for each token; got an id"):
        compared(place, "vectors", "block.py:ids")
    with pytest.raises(UsageError, match="missing.py"):
        compared(place, "vectors", "missing.py:model")


def test_a_rewrite_is_named_by_a_file_or_a_module_and_stands_alone(place: Path) -> None:
    assert find_engine(f"{place}/block.py:ids").target
    with pytest.raises(UsageError, match="expected two engines that load a checkpoint"):
        find_engines(f"{place}/block.py:ids,mlx")
    with pytest.raises(UsageError, match="did you mean 'mlx'"):
        find_engine("mxl:folder")
    with pytest.raises(UsageError, match="expected arch:NAME, a checkpoint folder"):
        audit(f"{place}/block.py:ids", against=[f"{place}/block.py:ids", "mlx"])


@pytest.mark.skipif(JAX_PYTHON_VARIABLE not in os.environ, reason=f"{JAX_PYTHON_VARIABLE} names no Python with jax")
def test_a_rewrite_in_jax_is_compared_and_its_default_of_gelu_is_named(place: Path) -> None:
    assert compared(place, "vectors", "in_jax.py:model").verdict == "held"
    finding = compared(place, "vectors", "in_jax.py:by_default")
    assert finding.verdict == "refuted"
    assert finding.port is not None
    assert [cause.assumed for cause in finding.port.causes] == ["by a hyperbolic tangent"]
