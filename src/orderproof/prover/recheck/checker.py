"""Replay a certificate: every step must follow from the steps before it, and the last must be what the law asks.

No code is shared with the interpreter. A step says how its result moves; derived here, and compared with its fact, are
for each element the first case that can change it (`level`) and the ends between which it lies (`low`, `high`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from orderproof.errors import CertificateError
from orderproof.prover.recheck.fact import (
    ALWAYS,
    END,
    FREE,
    INF,
    LARGE,
    LARGEST,
    NEVER,
    STILL,
    Fact,
    array_of,
    digest_of,
    need,
)
from orderproof.prover.recheck.operators import SAME, UNDEFINED, Operators, dilated

LAWS = {"order_blind": "OP101", "prompt_blind": "OP102", "mirror_blind": "OP103", "position_labelled": "OP104"}
LAWS |= {"causal": "OP201", "padding": "OP202", "packing": "OP203", "batch": "OP204"}
BOUNDED = "scores of visible tokens are finite and small beside the masking value (finite mask, not -inf)"


@dataclass(frozen=True)
class Checked:
    """What a certificate that holds proves, and what it rests on."""

    law: str
    output: str
    subject: str
    steps: int
    assumptions: tuple[str, ...]
    weights: str
    given: tuple[str, ...]  # of what it is a proof: where tokens stand, what is held fixed, what is replaced


def recheck(certificate: Mapping[str, Any]) -> Checked:
    """Check every step of a certificate. Raises `CertificateError`, naming the first that does not follow."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), torch.no_grad():
            warnings.simplefilter("ignore")
            return Checker(certificate).run()
    except Exception as error:
        raise CertificateError(f"expected a certificate whose proof holds: {str(error)[:600]}") from error


class Checker(Operators):
    """One certificate, step by step."""

    def __init__(self, c: Mapping[str, Any]) -> None:
        law, said, n, rows = c["law"], c["relation"], c["relation"]["tokens"], len(c["relation"].get("replaced", [0]))
        bare = [{k: v for k, v in s.items() if k not in ("lemma", "fact", "as")} for s in c["steps"]]
        need(
            c["digest"] == digest_of({k: v for k, v in c.items() if k != "digest"}),
            "its digest is not that of its text",
        )
        need(c["graph"] == digest_of(bare), "its graph fingerprint is not that of its steps")
        known = c["certificate"] == 1 and c["code"] == LAWS.get(law) and c["weights"] in ("all", "these")
        need(known and type(n) is int and 1 <= n <= LARGEST, "its version, law, code, weights or tokens are none")
        self.c, self.law, self.tokens, self.inputs, self.assumed = c, law, n, c["inputs"], BOUNDED in c["assumptions"]
        self.facts, self.keys, self.done = dict[str, Any](), dict[str, str](), dict[str, Any]()
        movable, row, place, pads = n - (law == "prompt_blind"), np.arange(rows)[:, None], np.arange(n), max(1, n // 3)
        cycle = (*range(1, movable), *range(min(1, movable)), *range(movable, n))
        group = ((1, 0, *range(2, n)), cycle)[movable < 3 :]  # they generate every order of the movable
        left = pads - pads // 2 if n > 2 else pads
        sides = np.where(row % 2 == 0, place < pads, place >= n - pads)
        padded = sides if rows > 1 else (place < left) | (place >= n - pads + left)
        halves = [place < n // 2, place >= n // 2]
        mate = [line[:1] for line in said["replaced"]].index([1]) if law == "batch" else 0  # any row
        slots = {"padding": [padded], "packing": halves, "batch": [row == mate]}.get(law, [])
        self.group = () if slots or law == "causal" else (tuple(range(n))[::-1],) if law == "mirror_blind" else group
        relation = {"tokens": n, "generators": [list(p) for p in self.group], "last_only": movable < n}
        choices = [np.broadcast_to(x, (rows, n)) for x in slots]  # which slots [row, token] are replaced
        options = [{**relation, "replaced": (x * 1).tolist(), "asked": (~x * 1).tolist()} for x in choices]
        need(c["family"] == ("permutation" if self.group else "influence"), "its family is not its law's")
        need(said in (options or [relation]), "its relation between the runs is not its law's")
        self.replaced: Any = choices[options.index(said)] if choices else None
        need(self.replaced is None or not self.replaced.all(), "nothing is asked")
        need(any(a is not None for a in self.inputs.values()), "no input has a token axis")

    def run(self) -> Checked:
        """What it proves. Raises `CertificateError`, naming the first step that does not follow."""
        for number, step in enumerate(self.c["steps"]):
            where = ", ".join(f"{k} {str(step[k])[:60]}" for k in ("node", "operator", "lemma"))
            try:
                need(isinstance(step["node"], str) and step["node"] not in self.facts, "its name is taken, or is none")
                self.facts[step["node"]] = self._step(step)
            except Exception as error:
                raise CertificateError(f"step {number + 1} ({where}) does not follow: {str(error)[:300]}") from error
        output, texts = self.c["output"], (str(self.law), str(self.c["output"]["name"]), str(self.c["subject"]))
        need(self.inputs.keys() <= self.facts.keys(), "an input is no step")
        need(isinstance(self.facts.get(output["node"]), Fact), "the output is no step with one tensor")
        self._last_word(self.facts[output["node"]], {int(d): offset for d, offset in output["dims"]})
        assumed = tuple(map(str, self.c["assumptions"]))
        return Checked(*texts, len(self.facts), assumed, str(self.c["weights"]), tuple(self._given()))

    def _given(self) -> Iterator[str]:
        """What a reader must know of the relation: with tokens held fixed, or begun late, much is easily proved."""
        operators = {s["node"]: s["operator"] for s in self.c["steps"]}
        for node, axis in self.inputs.items():
            where = "" if operators[node] == "input" else ", inside the graph"
            dims = [str(a) for a in tree_leaves(axis) if a is not None]
            said = f"{self.tokens} tokens along dimension {' and '.join(dims)}" if dims else "the same in both runs"
            yield f"{node}: {said}{where}"
        if self.law in ("packing", "batch"):
            what, line = ("document", self.replaced[0]) if self.law == "packing" else ("row", self.replaced[:, 0])
            end = "the first " if line[0] else "the last " if line[-1] else ""
            yield f"replaced: {end}{what}{'' if end else f' {line.argmax()}'}"

    def _last_word(self, f: Fact, dims: dict[int, Any]) -> None:
        one = self.group or len(dims) == 1 or (self.law == "batch" and not dims)
        need(one, "the output has not one token dimension")
        moves, allowed = self._related(f.shape, dims, ALWAYS)
        for d in dims if self.law == "prompt_blind" else ():  # the last token stays, and is unchanged
            last, moves[d] = dims[d] + self.tokens - 1, f.moves[d]
            need(isinstance(moves[d], str) or all(p[last] == last for p in moves[d]), "the output moves its last token")
            place = np.arange(f.shape[d]).reshape([-1 if k == d else 1 for k in range(len(f.shape))])
            allowed = np.where(place == last, allowed, ALWAYS)
        fits = (self._settled(f, moves) <= allowed).all()
        need(fits, "the output may depend, at some token, on one that it must not depend on, or moves differently")

    def _related(self, shape: Sequence[int], dims: Mapping[int, int], other: int) -> tuple[list[Any], Any]:
        """How a tensor with these token dimensions (and offsets) is to move, and its levels; `other` where replaced."""
        moves, n, level = list[Any]([STILL] * len(shape)), self.tokens, np.full((1,) * len(shape), NEVER)
        rows = self.replaced is not None and (len(dims) > 0 or other == ALWAYS)
        need(not rows or shape[0] == len(self.replaced), "its first dimension does not hold the rows")
        for d, offset in dims.items():
            fits = type(d) is int and 0 <= d < len(shape) and type(offset) is int and 0 <= offset <= shape[d] - n
            need(fits, f"there is no token dimension {str(d)[:9]}")
            wide = [[*range(offset), *(offset + i for i in p), *range(offset + n, shape[d])] for p in self.group]
            moves[d], line = self._move(wide, shape[d]), np.maximum(np.arange(shape[d]) - offset, NEVER)[None]
            if self.replaced is not None:  # what stands beside the tokens is not asked about
                line = np.full((shape[0], shape[d]), other)
                line[:, offset : offset + n] = np.where(self.replaced, other, NEVER)
            sizes = [shape[k] if k == d else len(line) if k == 0 else 1 for k in range(len(shape))]
            level = level if self.group else line.reshape(sizes)
        if self.law == "batch" and other == ALWAYS and not dims:
            level = np.where(self.replaced, other, NEVER)[:, 0].reshape([-1] + [1] * (len(shape) - 1))
        return moves, level

    def _move(self, data: Any, size: int) -> Any:
        if data in (STILL, FREE):
            return data
        rows, own = tuple(tuple(p) for p in data), list(range(size))
        good = all(all(type(i) is int for i in p) and sorted(p) == own for p in rows) and len(rows) == len(self.group)
        need(good, "a move that is not one permutation for each generator")
        return rows if any(p != tuple(own) for p in rows) else STILL

    def _step(self, step: Mapping[str, Any]) -> Any:
        data, lemma, node, shape, dtype = (step[k] for k in ("fact", "lemma", "node", "shape", "dtype"))
        if data is None:
            return None  # no tensor; whoever reads it is refused
        need(lemma == "given" or node not in self.inputs, "it is an input, and not given")
        literals = [step["args"], sorted(step["kwargs"].items())]
        args, kwargs = filled = tree_map(self._value, literals, is_leaf=lambda x: isinstance(x, dict))
        named = str(tree_map_only(Fact, lambda f: (f.key,), filled))
        key = digest_of([step["operator"], lemma, data, shape, dtype, named, node if lemma == "given" else ""])
        need("as" not in step or key == self.keys[step["as"]], "it is not as the step that it names")
        if key not in self.done:  # like steps are checked once
            parts = list(zip(data, shape, dtype, strict=True)) if isinstance(data, list) else [(data, shape, dtype)]
            said = [self._read(*part) for part in parts]
            derived = self._derived(step, said, args, dict(kwargs))
            made = [self._compared(*pair) for pair in zip(said, derived, strict=True)]
            among = self._among(step["operator"], args, dict(kwargs))
            among = among if step["lemma"] != "given" else None  # what is given need not be what was computed
            made = [replace(f, among=among if k == len(made) - 1 else None) for k, f in enumerate(made)]
            made = [replace(f, key=f.content(part)) for f, part in zip(made, parts, strict=True)]
            self.done[key] = made if isinstance(data, list) else made[0]
        self.keys[node] = key
        return self.done[key]

    def _among(self, operator: str, args: Any, kwargs: Any) -> Any:
        """Of at most k visible entries, the others masked, the places of the k largest hold every one."""
        x: Any = args[0] if args else None
        name = operator.removeprefix("aten.").split(".")[0]
        if name == "getitem":
            return x[args[1]].among
        if name in ("_to_copy", "to") and isinstance(x, Fact) and x.dtype in ("int32", "int64"):
            return x.among if kwargs.get("dtype", args[-1]) in (torch.int32, torch.int64) else None
        b = dict(zip(("self", "k", "dim", "largest"), args, strict=False)) | kwargs
        if name != "topk" or not isinstance(x, Fact) or not x.shape:
            return None
        dim = b.get("dim", -1) % len(x.shape)
        line: dict[str, Any] = {"axis": dim, "keepdims": True}
        wide = [s if d == dim else 1 for d, s in enumerate(x.shape)]
        masked, plain, whole = np.broadcast_arrays(
            (x.high <= x.mask) & ((x.high == -INF) | self.assumed),
            (x.low > x.mask / 10) & (x.high < INF),
            np.full(wide, b["k"] >= x.shape[dim]),
        )
        few = (plain | masked).all(**line) & (plain.sum(**line) <= b["k"]) & b.get("largest", True)
        return dim, np.array(whole | (plain & few))

    def _value(self, x: Any) -> Any:
        if not isinstance(x, dict):
            return x
        ((kind, name),) = x.items()
        need(kind != "node" or self.facts[name] is not None, "it reads a step without a tensor")
        if kind in ("node", "float"):
            found = float(name) if kind == "float" else self.facts[name]
            return replace(found) if isinstance(found, Fact) else found  # like steps share a fact, not their values
        return torch.device("cpu") if kind == "device" else getattr(torch, str(name).removeprefix("torch."))

    def _derived(self, step: Mapping[str, Any], said: list[Fact], args: Any, kwargs: Any) -> Sequence[Fact]:
        lemma, operator, node, first = step["lemma"], step["operator"], step["node"], said[0]
        if lemma == "nothing_follows":
            leaves = tree_leaves([args, kwargs])
            large = any(isinstance(x, int | float) and not abs(x) < LARGE and x != END for x in leaves)
            large = large or dilated(operator, args, kwargs)
            read = [f for f in leaves if isinstance(f, Fact)]
            plain = (
                operator.split(".")[1].strip("_") not in UNDEFINED and all(f.ordinary.all() for f in read) and not large
            )
            need(all(FREE not in s.moves for s in said), "its fact says something")
            fine = [plain or (k > 0 and "int" in s.dtype) for k, s in enumerate(said)]  # places, and counts
            return [self._fact(s, ALWAYS, *((-1, 1) if x else (-INF, INF))) for s, x in zip(said, fine, strict=True)]
        if lemma == "given":
            axes = [a for a in tree_leaves(self.inputs.get(node)) if a is not None]
            start = operator == "input" or (axes and len(self.inputs) == 1)  # the relation may begin inside the graph
            need(start and (len(axes) <= 1 or self.group), "it is given, and is no input, or has several axes")
            need(all(first.shape[a] == self.tokens for a in axes), "it has no such axis")
            moves, level = self._related(first.shape, dict.fromkeys(axes, 0), 0)
            return [self._fact(replace(first, moves=tuple(moves)), level if node in self.inputs else ALWAYS)]
        if operator in ("parameter", "buffer") and lemma == SAME:
            (stored,), opaque = args, operator == "parameter" and self.c["weights"] == "all"
            data = None if opaque else self.c["values"].get(stored)
            need(isinstance(stored, str) and not kwargs, "it is stored under no name")
            need(data is None or data["dtype"] == first.dtype, "its value has another dtype")
            array = None if data is None else torch.from_numpy(array_of(data, first.shape))
            return [self._constant(first.shape, first.dtype, array)]
        if operator == "getitem" and lemma == "part_of_a_tuple":
            whole, place = args
            need(isinstance(whole, list) and type(place) is int and place >= 0, "it is no part")
            return [whole[place]]
        return self._applied(operator, lemma, said, args, kwargs)

    def _read(self, data: Any, shape: Any, dtype: str) -> Fact:
        moves = tuple(self._move(m, s) for m, s in zip(data["moves"], shape, strict=True))
        zero = {"shape": [1] * len(shape), "runs": [[0, 1]]}
        known, level = data["known"] or {"status": zero, "value": zero}, array_of(data["level"], shape, "i")
        status, value = array_of(known["status"], shape, "i"), array_of(known["value"], shape)
        need("float" in dtype or (status != 2).all(), "a mask among whole numbers")
        need((level >= NEVER).all(), "a level that is none")
        plain, least, most = (0, 0, 1) if dtype == "bool" else (-1, -INF, INF)
        low, high = [plain, value, least, least, least], [1, value, value, most, 1]
        return Fact(tuple(shape), dtype, moves, level, np.choose(status, low), np.choose(status, high), status)

    def _compared(self, said: Fact, derived: Fact) -> Fact:
        """What is said, if it follows from what is derived."""
        need((said.shape, said.dtype) == (derived.shape, derived.dtype), f"it is {derived.dtype} {derived.shape}")
        level = self._settled(derived, said.moves)
        need((said.level >= level).all(), "some element may depend on more than its level says, or moves differently")
        derived = replace(derived, moves=said.moves, level=level) if derived.tensor is None else derived
        if derived.constant and not said.status.any():
            return derived
        exact = (derived.low == said.low) & (derived.high == said.high)
        # But for an ordinary number and rounding: anything more, said step by step, would add up.
        room = np.where(np.isinf(said.high), 0, 2 - 1e-6 * said.high)
        masked = (derived.high <= said.high + room) & (said.high <= said.mask)
        fits = np.choose(said.status, [derived.ordinary, exact, masked, True, derived.high < LARGE])
        need(fits.all(), "a value it says is known, or ordinary, need not be so")
        return derived if derived.constant else said
