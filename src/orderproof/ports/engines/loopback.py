"""Requests to a server on this machine."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from orderproof.ports.engines.engine import EngineError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
REQUEST_SECONDS = 60.0
SHOWN_BYTES, SHOWN_CHARACTERS = 4096, 200  # of an error


def request(address: str, body: Mapping[str, Any] | None) -> Any:
    """The JSON that a server answers to a POST of ``body``, or to a GET. Raises `EngineError`."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address, data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=REQUEST_SECONDS) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        said = message(error.read(SHOWN_BYTES))
        raise EngineError(f"{address} answered {error.code}: {said}; {cause(error.code, said)}") from None
    except TimeoutError:
        raise EngineError(f"no answer from {address} within {REQUEST_SECONDS:g} s; ask its log what it does") from None
    except ValueError as error:
        raise EngineError(f"{address} answered no JSON: {error}; is it a server with OpenAI's interface?") from None
    except OSError as error:
        raise EngineError(f"no answer from {address}: {error}; start the server first") from None


def message(body: bytes) -> str:
    """The message of an error in JSON, or the text of another one, on one line."""
    text = body.decode(errors="replace")
    try:
        answer = json.loads(text)
        found = answer.get("error", answer)
        text = str(found.get("message", text) if isinstance(found, dict) else found)
    except (ValueError, AttributeError):
        pass  # no JSON, or no object: the text itself is the message
    return " ".join(text.split())[:SHOWN_CHARACTERS] or "nothing"


def cause(code: int, said: str) -> str:
    """The likely cause of an answer that is an error, and what to do."""
    if any(word in said.lower() for word in ("context length", "maximum length", "max_model_len", "too long")):
        return "the call is longer than the server takes: start it with a longer context"
    if "logprobs" in said.lower():
        return "it does not return that many log-probabilities: allow 5 when you start it"
    causes = {
        401: "it wants a key: start it without one", 403: "it wants a key: start it without one",
        404: "it has no such path or model: start a server with /v1/completions and the checkpoint of the subject",
        429: "it is busy: stop what else asks it",
    }  # fmt: skip
    return causes.get(code, "its log has the cause" if code >= 500 else "it does not take this request")
