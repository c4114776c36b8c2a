"""The check of a certificate: its header, its steps, and its output."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from orderproof.errors import CertificateError
from orderproof.recheck.assumptions import (
    EXACT_TRANSFORMS_ASSUMPTION,
    FINITE_SCORES_ASSUMPTION,
    REAL_NUMBERS,
)
from orderproof.recheck.certificate_file import VERSION
from orderproof.recheck.fact import TOP, Fact
from orderproof.recheck.reading import digest_of, require
from orderproof.recheck.relations import Relation, read_relation
from orderproof.recheck.result import RecheckResult
from orderproof.recheck.steps import StepChecker, axes_of


def recheck(certificate: Mapping[str, Any]) -> RecheckResult:
    """Check every step of a certificate. Raises `CertificateError`, naming the first that does not follow."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), torch.no_grad():
            warnings.simplefilter("ignore")
            return _recheck(certificate)
    except Exception as error:
        raise CertificateError(f"expected a certificate whose proof holds: {str(error)[:600]}") from error


def _recheck(certificate: Mapping[str, Any]) -> RecheckResult:
    _check_header(certificate)
    relation, inputs, output = read_relation(certificate), certificate["inputs"], certificate["output"]
    require(any(axis is not None for axis in inputs.values()), "no input has a token axis")
    stated = any(str(text).startswith(REAL_NUMBERS) for text in certificate["assumptions"])
    require(stated, "it does not say that it is about real numbers")
    checker = StepChecker(
        relation,
        finite_scores_assumed=FINITE_SCORES_ASSUMPTION in certificate["assumptions"],
        exact_transforms_assumed=EXACT_TRANSFORMS_ASSUMPTION in certificate["assumptions"],
        inputs=inputs,
        stored=certificate["values"],
        weights_are_opaque=certificate["weights"] == "all",
    )
    checker.check_all(certificate["steps"])
    require(inputs.keys() <= checker.facts.keys(), "an input is no step")
    fact = checker.facts.get(output["node"])
    require(isinstance(fact, Fact), "the output is no step with one tensor")
    assert isinstance(fact, Fact)
    _check_output(checker, fact, dict(output["dims"]))
    return RecheckResult(
        law=relation.law.law,
        output=str(output["name"]),
        subject=str(certificate["subject"]),
        steps=len(checker.facts),
        assumptions=tuple(map(str, certificate["assumptions"])),
        weights=certificate["weights"],
        premises=tuple(_premises(certificate, relation)),
    )


def _check_header(certificate: Mapping[str, Any]) -> None:
    """Version, digests and weights."""
    content = {key: value for key, value in certificate.items() if key != "digest"}
    require(certificate["digest"] == digest_of(content), "its digest is not that of its text")
    graph = [
        {key: value for key, value in step.items() if key not in ("lemma", "fact", "repeats")}
        for step in certificate["steps"]
    ]
    require(certificate["graph"] == digest_of(graph), "its graph fingerprint is not that of its steps")
    require(certificate["certificate"] == VERSION, f"its version is not {VERSION}")
    require(certificate["weights"] in ("all", "these"), "its weights are neither all nor these")


def _check_output(checker: StepChecker, fact: Fact, dims: dict[int, int]) -> None:
    """The fact about the output is at least what the law claims; `dims` are its token dimensions and their offsets."""
    relation, law = checker.relation, checker.relation.law
    one_dim = bool(relation.group) or len(dims) == 1 or (law.whole_rows and not dims)
    require(one_dim, "the output does not have one token dimension")
    moves, allowed = relation.moves_and_dependence(fact.shape, dims, TOP)
    if law.last_token_only:  # the last token stays in place, and the output at it is unchanged
        for d, offset in dims.items():
            last, move = offset + relation.tokens - 1, fact.moves[d]
            fixed = isinstance(move, str) or all(p[last] == last for p in move)
            require(fixed, "the output moves its last token")
            moves[d] = move
            index = np.arange(fact.shape[d]).reshape([-1 if k == d else 1 for k in range(len(fact.shape))])
            allowed = np.where(index == last, allowed, TOP)
    follows = (checker.algebra.dependence_under(fact, moves) <= allowed).all()
    require(follows, "the output may depend, at some token, on one that it must not depend on, or moves differently")


def _premises(certificate: Mapping[str, Any], relation: Relation) -> Iterator[str]:
    """The premises that a reader must know: if all tokens are held fixed, every law has a trivial proof."""
    operators = {step["node"]: step["operator"] for step in certificate["steps"]}
    for node in certificate["inputs"]:
        axes = " and ".join(map(str, axes_of(certificate["inputs"], node)))
        tokens = f"{relation.tokens} tokens along dimension {axes}" if axes else "the same in both runs"
        place = "" if operators[node] == "input" else ", drawn at random" if not axes else ", inside the graph"
        yield f"{node}: {tokens}{place}"
    replaced = relation.describe_replaced()
    if replaced is not None:
        yield f"replaced: {replaced}"
    if relation.pads is not None:
        yield "of the outputs at real tokens: a third of each row is padding, alternately left and right"
