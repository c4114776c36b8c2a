"""The rechecker refuses malformed certificates with a CertificateError."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orderproof_recheck import certificate_file, check_theorem, read_certificates
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import digest_of
from tests.recheck.theorems.examples import example
from tests.recheck.theorems.permutations.examples import example as permuted


def test_every_theorem_says_that_it_is_about_real_numbers() -> None:
    made = permuted("table of one number")
    made["assumptions"] = made["assumptions"][1:]
    with pytest.raises(CertificateError, match="it does not say that it is about real numbers"):
        check_theorem({**made, "digest": digest_of(made)})


@pytest.mark.parametrize(
    "change", [{"law": "causal"}, {"code": "OP201"}, {"certificate": 1}, {"calls": []}, {"claim": {}}, {"more": 1}]
)
def test_a_statement_that_is_not_its_laws_is_refused(change: dict[str, Any]) -> None:
    made = permuted("table of one number") | change
    with pytest.raises(CertificateError, match="expected a certificate whose proof holds"):
        check_theorem({**made, "digest": digest_of(made)})


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5),
    st.sampled_from(["identity", "uniform", "x", "aten.add.Tensor", "getitem", 10**400, -1, 2**40, 2**62]),
)  # fmt: skip

KEYS = st.sampled_from(["node", "float", "dtype", "other", "device", "shape", "runs", "low", "motions", "axes"])

EXAMPLES = (
    lambda: example("causal attention", "causal"),
    lambda: example("token by token", "batch"),
    lambda: permuted("table of one number"),
)

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
    made: Any = data.draw(st.sampled_from(EXAMPLES))()
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
        made["digest"] = digest_of(made)
    with contextlib.suppress(CertificateError):
        assert check_theorem(made).law == made["law"]


@settings(max_examples=100, deadline=None)
@given(JUNK)
def test_what_is_no_certificate_is_refused(junk: Any) -> None:
    with pytest.raises(CertificateError):
        check_theorem(junk)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "expected a certificate; .* holds none: nothing was proved for every length"),
        (b'{"certificate": 1}', "expected a certificate of version 4; .* has other content"),
        (b'{"certificate": 4}', r"certificate 1 \(\? of \?\) is of a proof at one length"),
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
