"""Studies made by hand, and the page's model in torch with the page's own weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orderproof.blocks import Transformer
from orderproof.encodings import ALiBi, LearnedAbsolute, Rotary, Sinusoidal, T5Bias
from orderproof.explain import read_study
from orderproof.permutations import reversal, symmetric_generators
from orderproof.positions import arange
from tests.report.examples import everyday

ENCODINGS = ("none", "sinusoidal", "learned", "rotary", "alibi", "t5")
HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>\u202e&amp;'


def point(at: str, value: int, score: float) -> dict[str, Any]:
    return {at: value, "iqm": score, "low": score - 0.04, "high": score + 0.03}


def cell(encoding: str, scores: list[float], *, causal: bool = True, layers: int = 2) -> dict[str, Any]:
    lengths = [
        {**point("length", n, score), "in_training_range": n <= 8, "ceiling": 0.5 + 0.01 * n}
        for n, score in zip((4, 8, 12), scores, strict=True)
    ]
    curve = [point("step", step, score) for step, score in zip((50, 100, 150), reversed(scores), strict=True)]
    return {
        "label": f"{encoding}, causal, {layers} layers", "encoding": encoding, "causal": causal, "layers": layers,
        "curve": curve, "lengths": lengths, "proved_laws": ["prompt_permutation"] if encoding == "none" else [],
    }  # fmt: skip


def study(**changed: Any) -> dict[str, Any]:
    return {
        "schema": 3, "kind": "study", "name": "who_did_what", "question": "who_did_what", "measure": "accuracy",
        "cells": [
            cell("none", [0.54, 0.5, 0.46]), cell("rotary", [0.95, 0.9, 0.6]), cell("alibi", [0.8, 0.8, 0.7], layers=1)
        ],
        "trained_lengths": [4, 8], "published": [{"label": "Kazemnejad", "text": "copy .986", "source": "2305.19466"}],
        "versions": {"torch": "2"}, "seconds": 12.3, **changed,
    }  # fmt: skip


def study_text(**changed: Any) -> str:
    return json.dumps(study(**changed))


def everything(tmp_path: Path) -> dict[str, Any]:
    """A report and a study for a page."""
    file = tmp_path / "study.json"
    file.write_text(study_text(), encoding="utf-8")
    return {"report": everyday(), "study": read_study(file)}


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


def bare_head(x: torch.Tensor, weights: dict, encoding: str, *, causal: bool) -> dict[str, torch.Tensor]:
    """The bare head of panels 2 and 3, by orderproof's encodings."""
    places = arange(len(x))
    if encoding == "sinusoidal":
        x = Sinusoidal(4).embed(x[None], places)[0]
    if encoding == "learned":
        table = LearnedAbsolute(8, 4).double()
        table.load_state_dict({"weight": numbers(weights["learned.weight"])})
        x = table.embed(x[None], places)[0]
    q, k, v = (x @ numbers(weights[name]) for name in ("query", "key", "value"))
    turned = (q, k)
    if encoding == "rotary":
        turned = tuple(each[0, 0] for each in Rotary(4).rotate(q[None, None], k[None, None], places))
    s = turned[0] @ turned[1].mT / 2
    if encoding == "alibi":
        s = s + ALiBi(8).bias(places, places, dtype=torch.float64)[0, 0]
    if encoding == "t5":
        bias = T5Bias(1, bidirectional=not causal).double()
        bias.load_state_dict({"weight": numbers(weights["t5.weight"])})
        s = s + bias.bias(places, places, dtype=torch.float64)[0, 0]
    if causal:
        s = s.masked_fill(torch.ones_like(s).triu(1) > 0, -torch.inf)
    a = s.softmax(-1)
    return {"x": x, "q": q, "k": k, "v": v, "s": s, "a": a, "z": a @ v}


def laws_in_torch(model: torch.nn.Module, x: torch.Tensor, others: torch.Tensor) -> dict[str, float]:
    """The four numbers of a fingerprint, with orderproof's permutations."""

    def run(rows: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return model(rows[None])[0]

    def moved(p: object, *, last: bool = False) -> float:
        place = torch.as_tensor(p).argsort()  # X' = X[inverse(p)]
        gap = (run(x[place]) - first[place]).abs()
        return float(gap[-1].max() if last else gap.max())

    first, n = run(x), len(x)
    cuts = [(run(torch.cat([x[:j], others[j:]]))[:j] - first[:j]).abs().max() for j in range(1, n)]
    return {
        "permutation": max(moved(p) for p in symmetric_generators(n)),
        "prompt_permutation": max(moved(p, last=True) for p in symmetric_generators(n, n - 1)),
        "reversal": moved(reversal(n).copy()),
        "causal": float(max(cuts)),
    }
