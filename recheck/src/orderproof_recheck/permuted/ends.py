"""Both ends of a recording with permuted tokens: what enters it, the branches that it takes, its output, and its depth.

The induction over layers: layers exchange one tensor each and the output reads the last result only, as in `depth.py`.
The recorded layers were checked with that fact, so any number of layers with their code has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orderproof_recheck.depth import check_structure
from orderproof_recheck.facts import Fact, axis
from orderproof_recheck.logic.formulas import TRUE
from orderproof_recheck.logic.notation import require
from orderproof_recheck.permuted.moved_fact import FREE, STILL, Moved, MovedFact, MovedRecording
from orderproof_recheck.statements import BATCH, BLOCKS, FIXED, POSITIONS, TOKEN_INPUT, TOKENS
from orderproof_recheck.steps import Step


def check_given(step: Step, claim: MovedFact, recording: MovedRecording) -> None:
    """The fact about an input, a parameter or a buffer."""
    require(not step.kwargs and len(step.args) == 1 and claim.where is TRUE, "it has other arguments")
    if step.operator == "input":
        role = recording.roles.get(step.node)
        require(role is not None and step.args == [role], "it is an input without a role")
        _check_input(claim, str(role))
        return
    require(step.node not in recording.roles and isinstance(step.args[0], str), "it is an input")
    require(all(size.is_integer for size in claim.sizes), "a stored tensor has an open size")
    if step.operator == "parameter":
        require(claim.is_still, "a parameter is an arbitrary tensor")
        return
    known = recording.stored.get(step.node)
    dims = [dim for dim, axes in enumerate(claim.axes) for _ in axes]
    for place, (dim, motion) in enumerate(zip(dims, claim.motions, strict=True)):
        require(motion in (STILL, FREE), "a stored tensor does not move")
        if motion is FREE:
            same = known is None or (isinstance(known, Fact) and axis(place) not in known.variables)
            require(same, "a stored tensor has another value at another index")
            recording.premises.append(f"{step.args[0]}: stored, the same at every index of dimension {dim}")


def _check_input(claim: MovedFact, role: str) -> None:
    """The tokens of an input, and nothing else, are in another order."""
    moved = [Moved() if size is TOKENS else STILL for size in claim.sizes]
    if role == FIXED:
        require(claim.is_still, "a fixed input moves")
        return
    require(list(claim.motions) == moved and Moved() in moved, "an input moves otherwise than its tokens")
    require(all(len(axes) < 2 for axes in claim.axes), "a dimension of an input has several axes")
    if role != TOKEN_INPUT:
        require(role in (POSITIONS, BLOCKS), "an input has an unknown role")
        wanted = ((BATCH,), (TOKENS,)) if role == POSITIONS else ((BATCH,), (), (TOKENS,), (TOKENS,))
        require(claim.axes == wanted, "an input has other dimensions than its role")


def check_questions(questions: Sequence[Sequence[Any]], recording: MovedRecording) -> None:
    """Both runs take the same branch."""
    for node, answer in questions:
        fact = recording.facts.get(node)
        require(type(answer) is bool and isinstance(fact, MovedFact), "a question is no step with one tensor")
        assert isinstance(fact, MovedFact)
        require(fact.is_unmoved and not fact.sizes, "a branch depends on the order of tokens")


def check_output(output: Mapping[str, Any], recording: MovedRecording) -> None:
    """The output moves with the tokens, along the dimensions that are named, and along no other."""
    require(set(output) == {"node", "moves"}, "an output has other fields")
    fact = recording.facts.get(output["node"])
    require(isinstance(fact, MovedFact) and fact.where is TRUE, "the output is no step with one tensor")
    assert isinstance(fact, MovedFact)
    moves, place = [], 0
    for dim, axes in enumerate(fact.axes):
        for size, motion in zip(axes, fact.motions[place : place + len(axes)], strict=True):
            follows = motion is not STILL if size is TOKENS else not isinstance(motion, Moved)
            require(follows, "the output does not move with the tokens")
            moves += [dim] if size is TOKENS else []
        place += len(axes)
    require(output["moves"] == moves, "the output moves along other dimensions")


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
