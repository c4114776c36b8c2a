"""A small server with OpenAI's completions interface, honest or faulty, on a free port of the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import torch


def completion(model: Any, prompt: list[int], question: dict[str, Any], fault: str, index: int) -> dict[str, Any]:
    tokens = list(prompt)
    for _ in range(question["max_tokens"]):
        with torch.no_grad():
            tokens.append(int(model(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax()))
    with torch.no_grad():
        scores = model(torch.tensor([tokens]), use_cache=False).logits[0].log_softmax(-1)
    if fault == "not normalised":
        scores = scores + 2.0
    if fault == "rounded":
        scores = (scores * 100).round() / 100
    count = question["logprobs"]
    first = 0 if question.get("echo") else len(prompt)
    best, own = [None], [None]
    for place in range(1, len(tokens)):
        values, ids = scores[place - 1].topk(count)
        best.append({f"token_id:{i}": v for i, v in zip(ids.tolist(), values.tolist(), strict=True)})
        own.append(float(scores[place - 1, tokens[place]]))
        if fault == "contradicts itself":
            best[-1][f"token_id:{tokens[place]}"] = own[-1] - 1.0
    logprobs = {
        "tokens": [f"token_id:{token}" for token in tokens[first:]], "token_logprobs": own[first:],
        "top_logprobs": best[first:],
    }  # fmt: skip
    return {"index": index, "text": "", "logprobs": None if fault == "no log-probabilities" else logprobs}


@contextmanager
def serving(model: Any, fault: str = "") -> Iterator[str]:
    """The address of a server of this model."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None:
            pass

        def _answer(self, value: dict[str, Any], status: int = 200) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._answer({"data": [{"id": "tiny"}]})

        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if fault == "at most 5" and question["logprobs"] > 5:
                self._answer({"error": "logprobs must be at most 5"}, 400)
                return
            if fault.isdigit():
                self._answer({"error": {"message": "the maximum context length is 4 tokens"}}, int(fault))
                return
            prompts = question["prompt"]
            choices = [completion(model, each, question, fault, k) for k, each in enumerate(prompts)]
            self._answer({"choices": choices})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
