"""The server behind the page: what it answers, and everything it does not."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from orderproof.errors import SubjectError, UsageError
from orderproof.explain import render_page
from orderproof.explain.live_audit import AUDITS_PER_MINUTE, Auditor, RequestError
from orderproof.explain.server import MAX_BODY_BYTES, local_socket, server
from tests.browser import CHROMIUM, WHY_NOT, a_window

SENTENCES = {"sentences": ["the cat chased the dog", "the dog chased the cat"]}
ANSWER = {
    "model": "tiny", "same_tokens": True, "tokens": [["a", "b"], ["b", "a"]], "seconds": 0.5,
    "maps": [[[0.25, 0.75], [0.5, 0.5]]] * 4,
    "heads": {
        "maps": [base64.b64encode(bytes([64, 191, 128, 127] * 72)).decode()] * 4,
        "gaps": [[[0.5] * 12] * 6, [[0.0] * 12] * 6],
    },
    "rows": [
        {"condition": "with positions", "dtype": "float64", "cosine": 0.99088, "max_abs_difference": 0.1319},
        {"condition": "without positions", "dtype": "float64", "cosine": 1.0, "max_abs_difference": 1.2e-15},
    ],
}  # fmt: skip


class Answering(Auditor):
    """An auditor that has its answer ready."""

    waits: threading.Event | None = None
    ready: dict[str, Any] | Exception = ANSWER

    def _audit(self, first: str, second: str) -> dict[str, Any]:
        del first, second
        if isinstance(self.ready, Exception):
            raise self.ready
        if self.waits is not None:
            assert self.waits.wait(20)
        return self.ready


@dataclass
class Running:
    port: int
    auditor: Answering

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def audit(self, question: Any = SENTENCES, **headers: str) -> tuple[int, Any]:
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        status, _, answer = self.ask("POST", "/audit", body, **{"Content_Type": "application/json", **headers})
        return status, json.loads(answer)


@pytest.fixture
def running() -> Iterator[Running]:
    with local_socket(0) as on:
        auditor = Answering()
        made = server(render_page(live=True), on, auditor=auditor)
        thread = threading.Thread(target=made.run, kwargs={"sockets": [on]})
        thread.start()
        yield Running(on.getsockname()[1], auditor)
        made.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def test_the_page_is_served_with_its_policy_and_nothing_else_is(running: Running):
    status, headers, body = running.ask("GET", "/")
    assert status == 200
    assert body.decode() == render_page(live=True)
    assert "connect-src &#39;self&#39;" in body.decode()
    assert "connect-src &#39;none&#39;" in render_page()
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "server" not in headers
    for path in ("/etc/passwd", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/main.js", "/audit/x", "//"):
        assert running.ask("GET", path)[0] == 404
    assert running.ask("GET", "/audit")[0] == 405
    assert running.ask("POST", "/")[0] == 405


def test_an_audit_responds_with_json(running: Running):
    assert running.audit() == (200, ANSWER)
    assert running.audit(Origin=f"http://127.0.0.1:{running.port}") == (200, ANSWER)
    assert running.audit(Host=f"localhost:{running.port}") == (200, ANSWER)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "[::1]", ""])
def test_another_name_in_the_host_header_is_refused(running: Running, host: str):
    status, _, body = running.ask("GET", "/", Host=host)
    assert status in (400, 421)
    assert b"<html" not in body


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_another_page_may_not_ask(running: Running, origin: str):
    assert running.audit(Origin=origin) == (403, {"error": "expected a request from the page of this server"})


BAD = {
    "not JSON": (b"{", 400, "Invalid JSON"),
    "one sentence": ({"sentences": ["a"]}, 400, "Field required"),
    "three": ({"sentences": ["a", "b", "c"]}, 400, "at most 2"),
    "empty": ({"sentences": ["", "b"]}, 400, "at least 1 character"),
    "blank": ({"sentences": ["  ", "b"]}, 400, "at least one word each"),
    "long": ({"sentences": ["a" * 201, "b"]}, 400, "at most 200"),
    "a path": ({"sentences": ["a", "b"], "model": "/etc/passwd"}, 400, "Extra inputs are not permitted"),
    "numbers": ({"sentences": [1, 2]}, 400, "valid string"),
    "too much": (b" " * (MAX_BODY_BYTES + 1), 413, f"at most {MAX_BODY_BYTES} bytes"),
}


@pytest.mark.parametrize(("question", "status", "said"), BAD.values(), ids=BAD)
def test_a_bad_question_is_refused_in_words(running: Running, question: Any, status: int, said: str):
    found, answer = running.audit(question)
    assert found == status
    assert said in answer["error"]


def test_a_form_of_another_site_cannot_ask(running: Running):
    status, answer = running.audit(Content_Type="text/plain")
    assert (status, answer) == (415, {"error": "expected Content-Type: application/json"})


def test_one_audit_runs_at_a_time(running: Running):
    running.auditor.waits = threading.Event()
    found: list[int] = []
    first = threading.Thread(target=lambda: found.append(running.audit()[0]))
    first.start()
    until(running.auditor._busy.locked)
    status, answer = running.audit()
    assert status == 429
    assert "another audit is running" in answer["error"]
    assert running.ask("GET", "/")[0] == 200  # the page is served meanwhile
    running.auditor.waits.set()
    first.join(20)
    assert found == [200]


def until(done: Callable[[], bool]) -> None:
    for _ in range(500):
        if done():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to pass")


def test_the_number_of_audits_per_minute_is_limited():
    clock = [0.0]
    auditor = Answering(now=lambda: clock[0])
    body = json.dumps(SENTENCES).encode()
    for _ in range(AUDITS_PER_MINUTE):
        assert auditor.handle(body) == ANSWER
    with pytest.raises(RequestError, match=f"{AUDITS_PER_MINUTE} audits per minute"):
        auditor.handle(body)
    clock[0] = 60.0
    assert auditor.handle(body) == ANSWER


def test_a_model_that_is_not_installed_is_a_sentence():
    def missing() -> Any:
        raise SubjectError("the bundled model is not installed")

    with pytest.raises(RequestError, match="the bundled model is not installed") as caught:
        Auditor(load=missing).handle(json.dumps(SENTENCES).encode())
    assert caught.value.status == 503


def test_a_model_that_cannot_be_run_is_a_sentence_too():
    def full() -> Any:
        raise RuntimeError("not enough memory:\n  tried to allocate 1 TB")

    with pytest.raises(
        RequestError, match="cannot be run on these sentences: RuntimeError: not enough memory: tried"
    ) as caught:
        Auditor(load=full).handle(json.dumps(SENTENCES).encode())
    assert caught.value.status == 503


def test_it_listens_on_this_machine_alone_and_says_so_when_a_port_is_taken():
    with local_socket(0) as on:
        assert on.getsockname()[0] == "127.0.0.1"
        port = on.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} cannot be used: .*; give another --port, or 0"):
            local_socket(port)
    with pytest.raises(UsageError, match="expected --port from 0 to 65535; got 70000"):
        local_socket(70_000)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_the_page_asks_its_server_and_shows_the_answer(running: Running):
    address = f"http://127.0.0.1:{running.port}/"
    with a_window(lambda url: url.startswith(address)) as seen:
        seen.page.goto(f"{address}#minilm")
        seen.page.locator("html[data-ready='true']").wait_for(state="attached")
        seen.page.locator("#ask-minilm [data-answer=skip]").click()
        assert seen.page.locator("#live-second").input_value() == "the dog chased the cat"
        seen.page.locator("#live-go").click()
        seen.page.locator("#live-result caption", has_text="tiny").wait_for(state="attached")
        assert seen.page.locator("#live-result .cosine").all_text_contents() == ["cosine 0.9909", "cosine 1.0000"]
        assert seen.page.locator("#live-result .heat").count() == 4
        assert "only rounding is left" in seen.page.inner_text("#live-result")
        own = seen.page.locator("#heads-pair option").last
        assert own.text_content() == "the cat chased the dog  /  the dog chased the cat"
        assert seen.page.locator("#heads-pair").input_value() == own.get_attribute("value")
        assert seen.page.locator("#heads-first tbody tr").count() == 2
        seen.page.locator("#live-first").fill("  ")
        seen.page.locator("#live-go").click()
        seen.page.wait_for_selector("#live-result .problem")
        assert "at least 1 character" in seen.page.inner_text("#live-result .problem")
        assert seen.asked == [address, f"{address}audit", f"{address}audit"]
        assert all("400" in complaint for complaint in seen.complaints)


@contextmanager
def asking(running: Running) -> Iterator[Callable[[], str]]:
    """The page of this server in a browser, and what it says when its button is pressed."""
    address = f"http://127.0.0.1:{running.port}/"
    with a_window(lambda url: url.startswith(address)) as seen:
        seen.page.goto(f"{address}#minilm")
        seen.page.locator("html[data-ready='true']").wait_for(state="attached")
        seen.page.locator("#ask-minilm [data-answer=skip]").click()

        def ask() -> str:
            seen.page.locator("#live-go").click()
            seen.page.wait_for_selector("#live-go:not([disabled])")
            return seen.page.inner_text("#live-result")

        yield ask


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_an_answer_that_is_no_json_is_not_called_a_lost_connection(running: Running):
    with asking(running) as ask:
        running.auditor.ready = ValueError("nobody expects this")
        assert ask() == "The server responds with status 500."
        running.auditor.ready = ANSWER
        assert "only rounding is left" in ask()


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_the_page_says_of_two_sentences_no_more_than_their_numbers_do(running: Running):
    apart = [{**row, "max_abs_difference": 0.2} for row in ANSWER["rows"]]
    with asking(running) as ask:
        running.auditor.ready = {**ANSWER, "rows": apart}
        assert "without positions they differ too" in ask()
        running.auditor.ready = {**ANSWER, "rows": apart, "same_tokens": False}
        assert "do not have the same tokens: they differ without positions too" in ask()
        running.auditor.ready = {**ANSWER, "same_tokens": False}
        assert "do not have the same tokens." in ask()
        running.auditor.ready = {**ANSWER, "tokens": [["a", "b"], ["a", "b"]]}
        assert "Both sentences give the same tokens" in ask()


@pytest.mark.slow
def test_the_bundled_model_runs_with_and_without_positions():
    answer = Auditor().handle(json.dumps(SENTENCES).encode())
    assert answer["model"] == "all-MiniLM-L6-v2"
    assert answer["same_tokens"] is True
    rows = {(row["condition"], row["dtype"]): row["max_abs_difference"] for row in answer["rows"]}
    assert rows["with positions", "float64"] > 0.1
    assert rows["without positions", "float64"] < 1e-12
    assert [len(text) for text in answer["heads"]["maps"]] == [6 * 12 * 7 * 7 * 4 // 3] * 4
    with pytest.raises(RequestError, match="the same number of tokens; got 6 and 4"):
        Auditor().handle(json.dumps({"sentences": ["a dog barks", "a dog"]}).encode())
    with pytest.raises(RequestError, match="at most 32 tokens"):
        Auditor().handle(json.dumps({"sentences": ["a " * 60, "a " * 60]}).encode())
