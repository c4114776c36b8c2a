"""The induction over layers for permuted tokens: what enters each layer, and its result, have one fact.

Layers exchange one tensor each and the output reads the last result only, as in `depth.py`. The recorded
layers were checked with that fact, so any number of layers with their code has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderproof_recheck.depth import check_structure
from orderproof_recheck.logic.formulas import TRUE
from orderproof_recheck.logic.notation import require
from orderproof_recheck.permuted.moved_fact import MovedFact
from orderproof_recheck.permuted.moved_recording import MovedRecording


def check_moved_depth(data: Mapping[str, Any], recording: MovedRecording) -> None:
    """Check the induction of a recording. Raises `CertificateError`."""
    layers, steps = data["layers"], {step["node"]: step for step in recording.data["steps"]}
    require(set(data) == {"layers"} and len(layers) > 1, "an induction needs several layers")
    check_structure(layers, steps, recording.data["output"]["node"])
    require(all(layer["steps"] is None for layer in layers), "a layer of permuted tokens is derived once")
    invariant = recording.facts[layers[-1]["result"]]
    require(isinstance(invariant, MovedFact) and invariant.where is TRUE, "the invariant is no fact about one tensor")
    for number, layer in enumerate(layers, start=1):
        for name in (layer["entry"], layer["result"]):
            require(recording.facts[name] == invariant, f"layer {number} does not keep the invariant")
