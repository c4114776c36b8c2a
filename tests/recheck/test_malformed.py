"""The rechecker refuses malformed certificates with a CertificateError."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orderproof.errors import CertificateError
from orderproof.recheck import certificate_file, read_certificates, recheck
from tests.recheck.certificates import PROVED, example, sealed


def test_a_relation_that_is_not_its_laws_is_refused() -> None:
    _, made = example("causal")
    for change in (
        {"law": "permutation"}, {"code": "OP101"}, {"family": "permutation"}, {"inputs": {"x": None}}, {"inputs": {}},
        {"inputs": {"x": 0}}, {"inputs": {"x": 1, "matmul": None}}, {"weights": "some"}, {"certificate": 1},
        {"output": {**made["output"], "dims": []}}, {"output": {**made["output"], "dims": [[1, -1]]}},
        {"output": {**made["output"], "dims": [[2, 0]]}}, {"output": {**made["output"], "node": "x2"}},
        {"relation": {**made["relation"], "tokens": 4}}, {"steps": made["steps"][:-1]}, {"steps": made["steps"][1:]},
    ):  # fmt: skip
        with pytest.raises(CertificateError, match="expected a"):
            recheck(sealed({**copy.deepcopy(made), **change}))


@pytest.mark.parametrize("operator", ["parameter", "buffer"])
def test_a_stored_value_needs_a_name(operator: str) -> None:
    _, made = example("causal:gpt2:eager")
    for step in [s for s in made["steps"] if s["lemma"] == "same_in_both_runs" and s["operator"].startswith("aten.")]:
        altered = {**made, "steps": [{**s, "operator": operator} if s is step else s for s in made["steps"]]}
        with pytest.raises(CertificateError, match=step["node"]):
            recheck(sealed(altered))


def test_generators_of_a_smaller_group_are_refused() -> None:
    _, made = example("permutation")
    made["relation"]["generators"] = made["relation"]["generators"][:1]
    with pytest.raises(CertificateError, match="relation"):
        recheck(sealed(made))


def test_the_last_word_must_be_what_the_law_asks() -> None:
    _, made = example("causal")
    before = next(s for s in made["steps"] if s["operator"] == "aten.matmul.default")
    made["output"] = {**made["output"], "node": before["node"], "dims": [[2, 0]]}
    with pytest.raises(CertificateError, match="the output"):
        recheck(sealed(made))


def test_a_finite_mask_must_be_assumed() -> None:
    _, made = example("causal:gpt2:eager")
    assert made["assumptions"]
    made["assumptions"] = made["assumptions"][:1]
    with pytest.raises(CertificateError, match="softmax_equivariant"):
        recheck(sealed(made))


def test_every_proof_says_that_it_is_about_real_numbers() -> None:
    _, made = example("causal")
    made["assumptions"] = made["assumptions"][1:]
    with pytest.raises(CertificateError, match="it does not say that it is about real numbers"):
        recheck(sealed(made))


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5),
    st.sampled_from(["identity", "uniform", "x", "aten.add.Tensor", "getitem", 10**400, -1, 2**40, 2**62]),
)  # fmt: skip

KEYS = st.sampled_from(["node", "float", "dtype", "other", "device", "shape", "runs", "low", "moves", "dependence"])

JUNK = st.recursive(
    SCALARS, lambda x: st.one_of(st.lists(x, max_size=3), st.dictionaries(KEYS, x, max_size=3)), max_leaves=6
)


def paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield from paths(value, (*path, key))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_only_a_certificate_error_escapes(data: st.DataObject) -> None:
    _, made = example(data.draw(st.sampled_from(PROVED)))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([p for p in paths(made) if p]))
        target: Any = made
        for key in path[:-1]:
            target = target[key]
        if isinstance(target, dict) and data.draw(st.booleans()):
            del target[path[-1]]
        else:
            target[path[-1]] = data.draw(JUNK)
    with contextlib.suppress(TypeError, ValueError, AttributeError, KeyError):
        sealed(made)
    with contextlib.suppress(CertificateError):
        assert recheck(made).law == made["law"]


@settings(max_examples=100, deadline=None)
@given(JUNK)
def test_what_is_no_certificate_is_refused(junk: Any) -> None:
    with pytest.raises(CertificateError):
        recheck(junk)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "expected a certificate of version 4; .* has other content"),
        (b'{"certificate": 1}', "expected a certificate of version 4; .* has other content"),
    ],
)
def test_a_file_without_certificates_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    with pytest.raises(CertificateError, match=message) as caught:
        read_certificates(file)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="expected a certificate file; .* cannot be read: No such file"):
        read_certificates(tmp_path / "c.json")


def test_a_file_over_the_size_limit_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_file, "MAX_FILE_BYTES", 2_000_000)
    file = tmp_path / "c.json"
    file.write_bytes(b" " * 2_000_001)
    with pytest.raises(CertificateError, match="expected certificates of at most 2 MB; .* is larger") as caught:
        read_certificates(file)
    assert "\n" not in str(caught.value)


def test_an_endless_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_file, "MAX_FILE_BYTES", 2_000_000)
    with pytest.raises(CertificateError, match="at most 2 MB"):
        read_certificates("/dev/zero")
