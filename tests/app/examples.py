"""Studies made by hand, and the page's model in torch with the page's own weights."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor

from orderproof.blocks import Transformer

ENCODINGS = ("none", "sinusoidal", "learned", "rotary", "alibi", "t5")
HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>\u202e&amp;'


def point(at: str, value: int, score: float) -> dict[str, Any]:
    return {at: value, "iqm": score, "low": score - 0.04, "high": score + 0.03}


def cell(encoding: str, scores: list[float], *, causal: bool = True, layers: int = 2) -> dict[str, Any]:
    lengths = [
        {**point("length", n, score), "trained": n <= 8, "ceiling": 0.5 + 0.01 * n}
        for n, score in zip((4, 8, 12), scores, strict=True)
    ]
    curve = [point("step", step, score) for step, score in zip((50, 100, 150), reversed(scores), strict=True)]
    return {
        "label": f"{encoding}, causal, {layers} layers", "encoding": encoding, "causal": causal, "layers": layers,
        "curve": curve, "lengths": lengths, "proved": ["prompt_blind"] if encoding == "none" else [],
    }  # fmt: skip


def study(**changed: Any) -> dict[str, Any]:
    return {
        "schema": 1, "kind": "study", "study": "who_did_what", "question": "who_did_what", "measure": "accuracy",
        "cells": [
            cell("none", [0.54, 0.5, 0.46]), cell("rotary", [0.95, 0.9, 0.6]), cell("alibi", [0.8, 0.8, 0.7], layers=1)
        ],
        "trained_lengths": [4, 8], "published": [{"label": "Kazemnejad", "text": "copy .986", "source": "2305.19466"}],
        "versions": {"torch": "2"}, "seconds": 12.3, **changed,
    }  # fmt: skip


def study_text(**changed: Any) -> str:
    return json.dumps(study(**changed))


def in_torch(weights: dict[str, Any], encoding: str, *, causal: bool, layers: int) -> Transformer:
    """Orderproof's own transformer with the page's weights, in float64."""
    made = Transformer(8, 4, layers, encoding=encoding, causal=causal, length=8, hidden=16).double()
    state = {name: torch.tensor(value, dtype=torch.float64) for name, value in weights.items()}
    if "encoding.weight" in made.state_dict():
        state["encoding.weight"] = state[f"{encoding}.weight"]
    made.load_state_dict({name: state[name] for name in made.state_dict()}, strict=True)
    return made.eval()


def numbers(rows: Any) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)
