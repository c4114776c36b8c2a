"""The check of a certificate's steps: each claimed fact must follow from the facts of earlier steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from orderproof.errors import CertificateError
from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import Argument, facts_in, reads_memory
from orderproof.recheck.claim import check_claim, read_claim
from orderproof.recheck.fact import INF, TOP, UNIFORM, Fact, IndexCoverage
from orderproof.recheck.operators import CONSTANT_LEMMA, derive_operator, makes_large_numbers
from orderproof.recheck.reading import decode_array, decode_literal, digest_of, require
from orderproof.recheck.relations import Relation
from orderproof.recheck.spectra import spectrum_of

INPUT_LEMMA, PART_LEMMA, NO_LEMMA = "given", "part_of_a_tuple", "nothing_follows"

# Random numbers from torch's own generator: a premise is that both runs draw the same ones.
DRAWN = frozenset({
    "aten.rand.default", "aten.rand_like.default", "aten.randn.default", "aten.randn_like.default",
    "aten.randint.default", "aten.randint.low", "aten.randint_like.default", "aten.randint_like.low_dtype",
    "aten.randperm.default", "aten.uniform.default", "aten.normal_functional.default",
})  # fmt: skip

Value: TypeAlias = Fact | list[Fact] | None  # of a node: a tensor, several, or none
InputAxes: TypeAlias = Mapping[str, int | Sequence[int] | None]


def axes_of(inputs: InputAxes, node: str) -> list[int]:
    """The token axes of an input; empty if it has none, or the node is no input."""
    return [axis for axis in tree_leaves(inputs.get(node)) if axis is not None]


@dataclass
class StepChecker:
    """Checks steps in order and keeps the facts of each."""

    relation: Relation
    finite_scores_assumed: bool
    inputs: InputAxes
    stored: Mapping[str, Any]  # the arrays of the certificate, by name
    weights_are_opaque: bool  # the proof holds for all weights, and may use the values of none
    exact_transforms_assumed: bool = False
    facts: dict[str, Value] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)
    _checked: dict[str, Value] = field(default_factory=dict)

    @property
    def algebra(self) -> FactAlgebra:
        """Consequences under the relation's group."""
        return FactAlgebra(self.relation.group, self.finite_scores_assumed, self.exact_transforms_assumed)

    def check_all(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """Check every step. Raises `CertificateError`, naming the first that does not follow."""
        for number, step in enumerate(steps):
            where = ", ".join(f"{key} {str(step[key])[:60]}" for key in ("node", "operator", "lemma"))
            try:
                node = step["node"]
                require(isinstance(node, str) and node not in self.facts, "its name is taken, or is no text")
                self.facts[node] = self.check(step)
            except Exception as error:
                raise CertificateError(f"step {number + 1} ({where}) does not follow: {str(error)[:300]}") from error

    def check(self, step: Mapping[str, Any]) -> Value:
        """The facts that later steps may use. Equal steps, of operands with equal facts, are derived once."""
        operator, lemma, node, data = (step[key] for key in ("operator", "lemma", "node", "fact"))
        shape, dtype = step["shape"], step["dtype"]
        if data is None:
            return None  # no tensor
        require(lemma == INPUT_LEMMA or node not in self.inputs, f"it is an input, and its lemma is not {INPUT_LEMMA}")
        literals = [step["args"], sorted(step["kwargs"].items())]
        args, kwargs = arguments = tree_map(self._decode_argument, literals, is_leaf=lambda x: isinstance(x, dict))
        operand_keys = str(tree_map_only(Fact, lambda f: (f.key,), arguments))
        key = digest_of([operator, lemma, data, shape, dtype, operand_keys, node if lemma == INPUT_LEMMA else ""])
        require("repeats" not in step or key == self._keys[step["repeats"]], "it differs from the step that it names")
        if key not in self._checked:
            several = isinstance(data, list)
            parts = list(zip(data, shape, dtype, strict=True)) if several else [(data, shape, dtype)]
            claims = [read_claim(*part, self.relation) for part in parts]
            derived = self._derive(step, claims, args, dict(kwargs))
            facts = [check_claim(self.algebra, *pair) for pair in zip(claims, derived, strict=True)]
            # What the certificate gives as an input need not be what its operator computes.
            coverage = None if lemma == INPUT_LEMMA else self._index_coverage(operator, args, dict(kwargs))
            spectrum = spectrum_of(operator, args, dict(kwargs)) if operator.startswith("aten.") else None
            spectrum = None if lemma in (INPUT_LEMMA, NO_LEMMA) or several else spectrum
            facts[-1:] = [replace(f, index_coverage=coverage, spectrum=spectrum) for f in facts[-1:]]
            facts = [replace(f, key=f.digest(part)) for f, part in zip(facts, parts, strict=True)]
            self._checked[key] = facts if several else facts[0]
        self._keys[node] = key
        return self._checked[key]

    def _decode_argument(self, x: Any) -> Argument:
        if not isinstance(x, dict):
            return x  # type: ignore[no-any-return]
        ((kind, name),) = x.items()
        if kind != "node":
            return decode_literal(kind, name)
        value = self.facts[name]
        require(value is not None, "it reads a step without a tensor")
        # Equal steps share a fact, but not their values: every operand is a separate object.
        return replace(value) if isinstance(value, Fact) else value

    def _derive(
        self, step: Mapping[str, Any], claims: Sequence[Fact], args: list[Any], kwargs: dict[str, Any]
    ) -> Sequence[Fact]:
        """The facts that follow, by the step's lemma."""
        lemma, operator = step["lemma"], step["operator"]
        if lemma == NO_LEMMA:
            return self._no_conclusion(operator, claims, args, kwargs)
        if lemma == INPUT_LEMMA:
            return [self._input_fact(operator, step["node"], claims[0], [*args, *kwargs.values()])]
        if operator in ("parameter", "buffer") and lemma == CONSTANT_LEMMA:
            require(len(args) == 1 and isinstance(args[0], str) and not kwargs, "it is stored under no name")
            return [self._stored_constant(args[0], claims[0], is_parameter=operator == "parameter")]
        if operator == "getitem":
            whole, index = args
            require(isinstance(whole, list) and type(index) is int and index >= 0, "it is no part of a tuple")
            part: Fact = whole[index]
            covered = lemma == PART_LEMMA or (lemma == CONSTANT_LEMMA and part.is_constant)
            require(covered, "its lemma does not cover a part of a tuple")
            return [part]
        return derive_operator(self.algebra, operator, lemma, claims, args, kwargs)

    def _no_conclusion(
        self, operator: str, claims: Sequence[Fact], args: list[Any], kwargs: dict[str, Any]
    ) -> list[Fact]:
        """Any operator: its results depend on everything, and are ordinary if it makes no large number."""
        require(all(UNIFORM not in claim.moves for claim in claims), "it is claimed to be uniform")
        numbers = tree_leaves([args, kwargs])
        literals = [abs(x) if isinstance(x, complex) else x for x in numbers if isinstance(x, int | float | complex)]
        is_ordinary = (
            not reads_memory(operator.split(".")[1].strip("_"))
            and all(f.is_ordinary.all() for f in facts_in([args, kwargs]))
            and not makes_large_numbers(operator, literals, args, kwargs)
        )
        counts = operator.removeprefix("aten.").split(".")[0] in ("bucketize", "searchsorted")
        indices = [(k > 0 or counts) and "int" in claim.dtype for k, claim in enumerate(claims)]
        bounds = [1 if is_ordinary or is_index else INF for is_index in indices]
        return [self.algebra.derived(c, TOP, -bound, bound) for c, bound in zip(claims, bounds, strict=True)]

    def _input_fact(self, operator: str, node: str, claimed: Fact, args: Sequence[Argument]) -> Fact:
        """The fact about an input. The relation may begin at one node inside the graph; random numbers are inputs."""
        axes = axes_of(self.inputs, node)
        starts_inside = bool(axes) and len(self.inputs) == 1
        drawn = (
            not axes and operator in DRAWN and all(abs(x) < 6e4 for x in args if isinstance(x, int | float | complex))
        )
        require(operator == "input" or starts_inside or drawn, "it is no input")
        require(len(axes) <= 1 or self.relation.group, "it has several token axes, and its law replaces tokens")
        require(all(claimed.shape[axis] == self.relation.tokens for axis in axes), "it has no such token axis")
        moves, dependence = self.relation.moves_and_dependence(claimed.shape, dict.fromkeys(axes, 0), 0)
        known = node in self.inputs
        return self.algebra.derived(replace(claimed, moves=tuple(moves)), dependence if known else TOP)

    def _stored_constant(self, name: str, claimed: Fact, *, is_parameter: bool) -> Fact:
        """The fact about a parameter or buffer, with its value if the certificate has it and the proof may use it."""
        data = None if is_parameter and self.weights_are_opaque else self.stored.get(name)
        if data is None:
            return self.algebra.constant(claimed.shape, claimed.dtype)
        require(data["dtype"] == claimed.dtype, "its stored value has another dtype")
        value = torch.from_numpy(decode_array(data, claimed.shape))
        return self.algebra.constant(claimed.shape, claimed.dtype, value)

    def _index_coverage(self, operator: str, args: list[Any], kwargs: dict[str, Any]) -> IndexCoverage | None:
        """Of lines with at most k visible entries, the others masked, topk returns the index of every visible one."""
        name = operator.removeprefix("aten.").split(".")[0]
        x = args[0] if args else None
        if name == "getitem":
            part: Fact = args[0][args[1]]
            return part.index_coverage
        if not isinstance(x, Fact):
            return None
        if name in ("_to_copy", "to"):
            to_integer = kwargs.get("dtype", args[-1]) in (torch.int32, torch.int64)
            return x.index_coverage if x.dtype in ("int32", "int64") and to_integer else None
        if name != "topk" or not x.shape:
            return None
        bound = {"dim": -1, "largest": True} | dict(zip(("self", "k", "dim", "largest"), args, strict=False)) | kwargs
        dim, count = bound["dim"] % len(x.shape), bound["k"]
        masked = (x.high <= x.masking_threshold) & ((x.high == -INF) | self.finite_scores_assumed)
        visible = (x.low > x.masking_threshold / 10) & (x.high < INF)
        line = [size if d == dim else 1 for d, size in enumerate(x.shape)]
        masked, visible, whole_line = np.broadcast_arrays(masked, visible, np.full(line, count >= x.shape[dim]))
        all_fit = (visible | masked).all(axis=dim, keepdims=True) & (visible.sum(axis=dim, keepdims=True) <= count)
        return IndexCoverage(dim, whole_line | (visible & all_fit & bool(bound["largest"])))
