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


def request(address: str, body: Mapping[str, Any] | None) -> Any:
    """The JSON that a server answers to a POST of ``body``, or to a GET. Raises `EngineError`."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address, data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=REQUEST_SECONDS) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise EngineError(f"{address} answered {error.code}: {error.read(200).decode(errors='replace')}") from None
    except (OSError, ValueError) as error:
        raise EngineError(f"no answer from {address}: {error}; start the server first") from None
