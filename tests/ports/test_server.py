"""A server as an engine: honest, wrong, and with log-probabilities that are missing, cut, rounded or none."""

from __future__ import annotations

import copy

import pytest

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.ports.engines import loopback
from orderproof.ports.load import load_reference
from orderproof.ports.reference import Reference
from orderproof.records.audit import Finding
from tests.ports import planted_engine as planted
from tests.ports.small_server import serving


@pytest.fixture(scope="module")
def reference() -> Reference:
    return load_reference("arch:llama")


def found(reference: Reference, fault: str, law: str = "same_prefill") -> Finding:
    with serving(reference.model, fault) as address:
        return audit(reference, against=f"server:{address}", laws=[law]).findings[0]


def test_an_honest_server_passes_and_the_report_says_what_it_does_not_return(reference: Reference) -> None:
    for law in ("same_prefill", "same_padded_batch", "same_greedy_tokens"):
        finding = found(reference, "", law)
        assert finding.verdict == "held", finding.reason
    finding = found(reference, "at most 5")
    assert finding.verdict == "held"
    assert "of 99 log-probabilities for each token; the others are not compared" in finding.scope.assumptions[0]


def test_a_server_of_another_model_is_explained(reference: Reference) -> None:
    served = copy.deepcopy(reference.model)
    planted.base(1e6)(served)
    with serving(served) as address:
        finding = audit(reference, against=f"server:{address}", laws=["same_prefill"]).findings[0]
    assert finding.port is not None
    assert [(cause.cause, cause.assumed) for cause in finding.port.causes] == [("rotary base", "1e+06")]


def test_rounded_log_probabilities_are_noticed(reference: Reference) -> None:
    finding = found(reference, "rounded")
    assert "its scores are rounded to 2 decimals: smaller differences are not seen" in finding.scope.assumptions
    assert finding.verdict == "held"
    assert finding.measurement is not None
    assert finding.measurement.tolerance > 1e-4


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("not normalised", "its probabilities of one token sum to"),
        ("no log-probabilities", "it returned no log-probabilities"),
        ("contradicts itself", "it returned two log-probabilities for token 1"),
    ],
)
def test_a_server_that_lies_is_undecided_with_one_line(reference: Reference, fault: str, reason: str) -> None:
    finding = found(reference, fault)
    assert finding.verdict == "undecided"
    assert reason in finding.reason
    assert "\n" not in finding.reason


def test_an_error_of_a_server_has_its_cause(reference: Reference) -> None:
    finding = found(reference, "400")
    assert finding.verdict == "undecided"
    assert "answered 400: the maximum context length is 4 tokens; the call is longer than the server takes" in (
        finding.reason
    )


@pytest.mark.parametrize(
    ("code", "said", "cause"),
    [
        (400, "logprobs must be at most 5", "it does not return that many log-probabilities"),
        (401, "nothing", "it wants a key"),
        (404, "no model x", "the checkpoint of the subject"),
        (418, "teapot", "it does not take this request"),
        (500, "KeyError", "its log has the cause"),
    ],
)
def test_each_kind_of_answer_has_a_cause(code: int, said: str, cause: str) -> None:
    assert cause in loopback.cause(code, said)


def test_the_message_of_an_error_is_one_line() -> None:
    assert loopback.message(b'{"error": {"message": "too\\nlong"}}') == "too long"
    assert loopback.message(b'{"detail": "x"}') == '{"detail": "x"}'
    assert loopback.message(b"<html>\n") == "<html>"
    assert loopback.message(b"") == "nothing"


def test_a_server_that_is_not_there_is_undecided_and_one_elsewhere_is_refused(reference: Reference) -> None:
    finding = audit(reference, against="server:http://127.0.0.1:9", laws=["loads_checkpoint"]).findings[0]
    assert finding.verdict != "held"
    assert "start the server first" in finding.reason
    with pytest.raises(UsageError, match="expected engine server with a server on this machine"):
        audit(reference, against="server:http://example.org:80")
    with pytest.raises(UsageError, match="server:http://127.0.0.1:PORT"):
        audit(reference, against="server")
