"""Try to contradict theorems: run the models about which they were proved, with random everything, and compare.

    python tools/theorem_attack.py results.jsonl [--comparisons 16] [--worker 0/2] [NAME ...]
    python tools/theorem_attack.py results.jsonl --summary

For each tiny architecture of transformers and each theorem that holds for every length, two runs of the eager module
are compared where the theorem says that they agree. Everything that the theorem leaves open is drawn anew for each
comparison: the number of tokens (below, at and past every small constant of the model), the number of rows, the inputs,
the attention mask (holes, one real token, pads on the left and on the right), the documents, the permutation, the
position ids and all weights. The file gets one line for each architecture; a run goes on where an earlier one stopped.
The exit code of --summary is 1 if there is a contradiction.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.auditing.decide.theorems import prove_theorems, proved_lengths
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.execution import named_tensors
from orderproof.auditing.record.length_ranges import Piece
from orderproof.auditing.record.open_calls import OpenCalls
from orderproof.auditing.record.open_examples import restarting_positions
from orderproof.auditing.record.open_inputs import NoTheorem
from orderproof.errors import CaptureError, OrderproofError, first_line
from orderproof.laws import proved_laws
from orderproof.laws.proved.proved_law import ProvedLaw
from orderproof.models import Subject, load
from orderproof.models.hf.architectures import known_architectures
from orderproof.models.settings import mask_dtype
from orderproof.models.subject import tensor_sizes
from orderproof.seeded_random import seeded_random
from orderproof.theorems.statement import BLOCKS, MASK, POSITIONS, TOKEN_INPUT, TOKENS, Equivariance

LIMIT = 300  # seconds for one architecture
LONGEST = 70  # [tokens] of a run
TOLERANCE = 2e-4  # relative to the largest element; float32, random weights


class _OutOfTime(BaseException):
    pass


def _raise_out_of_time(*_: object) -> None:
    raise _OutOfTime


@dataclass(frozen=True)
class Agreement:
    """Where inputs and outputs of two runs agree: [row, token]; or the permutation that relates them."""

    inputs: Tensor
    outputs: Tensor
    per_token: bool = True


def lengths(subject: Subject, pieces: Sequence[Piece]) -> list[int]:
    """The numbers of tokens to try: around every small constant of the model, and some more."""
    constants = set(tensor_sizes(subject.module)) | {3, 7, 12, 29, 48}
    settings = getattr(subject.original_config, "to_dict", dict)()
    constants |= {value for value in settings.values() if type(value) is int}
    constants |= {bound for piece in pieces for bound in (piece.least, piece.greatest) if bound is not None}
    near = {n + step for n in constants for step in (-1, 0, 1)}
    longest = min(LONGEST, subject.max_length or LONGEST)
    return [n for n in sorted(near) if 2 <= n <= longest and any(piece.has(n) for piece in pieces)]


def random_mask(rows: int, tokens: int, generator: torch.Generator) -> Tensor:
    """An attention mask [row, token] of a random kind, with a real token in each row."""
    kind = int(torch.randint(0, 5, (), generator=generator))
    index = torch.arange(tokens).expand(rows, tokens)
    cut = torch.randint(1, tokens + 1, (rows, 1), generator=generator)
    mask = {
        0: torch.ones(rows, tokens, dtype=torch.bool),
        1: index < cut,
        2: index >= tokens - cut,
        3: index == cut - 1,
    }.get(kind, torch.rand(rows, tokens, generator=generator) < 0.6)
    mask[:, int(torch.randint(0, tokens, (), generator=generator))] |= ~mask.any(dim=1)
    return mask


def random_layout(rows: int, tokens: int, generator: torch.Generator) -> Tensor:
    """The document [row, token] of each token: none begins, a few do, or many do."""
    chance = (0.0, 0.1, 0.5)[int(torch.randint(0, 3, (), generator=generator))]
    return (torch.rand(rows, tokens, generator=generator) < chance).cumsum(1)


def agreement(law: ProvedLaw, mask: Tensor, documents: Tensor, generator: torch.Generator) -> Agreement:
    """Where the hypothesis of a law has the inputs agree, and its conclusion the outputs."""
    rows, tokens = mask.shape
    if law.name == "causal":
        before = torch.arange(tokens).expand(rows, tokens) < int(torch.randint(1, tokens + 1, (), generator=generator))
        return Agreement(before, before & mask)
    if law.name == "padding":
        return Agreement(mask, mask)
    if law.name == "packing":
        own = documents == documents[0, int(torch.randint(0, tokens, (), generator=generator))]
        return Agreement(own, own)
    if law.name == "batch":
        own = (torch.arange(rows) == int(torch.randint(0, rows, (), generator=generator)))[:, None].expand(rows, tokens)
        return Agreement(own, own, per_token=False)
    raise ValueError(f"expected a law of two runs with equal inputs somewhere; got {law.name}")


def shared_inputs(
    roles: Sequence[str], mask: Tensor, documents: Tensor, subject: Subject, generator: torch.Generator
) -> dict[str, Tensor]:
    """The inputs that both runs share, by role."""
    rows, tokens = mask.shape
    made: dict[str, Tensor] = {}
    if MASK in roles:
        made[MASK] = mask.long()
    if POSITIONS in roles:
        made[POSITIONS] = subject.first_position + torch.stack(
            [torch.randperm(tokens, generator=generator) for _ in range(rows)]
        )
    if BLOCKS in roles:
        dtype = mask_dtype(subject.module, subject.sample(2, 0).inputs[0])
        seen = torch.rand(rows, tokens, tokens, generator=generator) < 0.7
        seen = (seen & (documents[:, :, None] == documents[:, None, :])) | torch.eye(tokens, dtype=torch.bool)
        made[BLOCKS] = torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype)[:, None]
    return made


def draw_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Draw every parameter anew, in the scale that it has."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.numel() > 1:
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
                parameter.copy_(parameter.mean() + noise * max(float(parameter.float().std()), 0.05))


def inputs_of(subject: Subject, tokens: int, rows: int, seed: int) -> tuple[Tensor, ...]:
    """Random inputs with this many rows."""
    drawn = [subject.sample(tokens, seed + k).inputs for k in range(rows)]
    return tuple(torch.cat([each[place] for each in drawn])[:rows] for place in range(len(drawn[0])))


def _along(agree: Tensor, x: Tensor, axis: Any) -> Tensor:
    """Where the inputs agree [row, token], in the shape of an input with its tokens along this axis."""
    if axis == 0:
        return agree[0].reshape(-1, *[1] * (x.dim() - 1)).expand_as(x)
    return agree.reshape([len(agree) if d == 0 else agree.shape[1] if d == axis else 1 for d in range(x.dim())])


class Attack:
    """The comparisons of one law in one call mode of one subject."""

    def __init__(self, subject: Subject, calls: OpenCalls, law: ProvedLaw, call_mode: str) -> None:
        self.subject, self.law, self.call_mode = subject, law, call_mode
        self.statement = calls.statement(law, call_mode)
        theorems = prove_theorems(calls, law, call_mode)
        self.proved = [name for name, theorem in theorems.items() if theorem.proved]
        if self.proved and (wrong := calls.disagreement(call_mode)):
            raise NoTheorem(wrong)
        found = calls.proofs(law, call_mode)
        self.module, _, self.roles = calls.inputs.call(call_mode)
        self.pieces = {name: proved_lengths(name, found, calls.solver).pieces for name in self.proved}

    def run(self, comparisons: int, seed: int) -> Iterator[dict[str, Any]]:
        """One result for each comparison."""
        for name in self.proved:
            choices = lengths(self.subject, self.pieces[name])
            for k in range(comparisons if choices else 0):
                generator = torch.Generator().manual_seed(seed + k)
                tokens = choices[int(torch.randint(0, len(choices), (), generator=generator))]
                yield {"output": name, "tokens": tokens, **self._compare(name, tokens, seed + k, generator)}

    def _compare(self, name: str, tokens: int, seed: int, generator: torch.Generator) -> dict[str, Any]:
        rows = 2 + int(torch.randint(0, 2, (), generator=generator))
        mask = random_mask(rows, tokens, generator)
        if MASK not in self.roles:
            mask = torch.ones_like(mask)
        documents = torch.randint(0, 3, (rows, tokens), generator=generator)
        if self.call_mode == "packed":
            documents = random_layout(rows, tokens, generator)
        draw_weights(self.module, generator)
        first = inputs_of(self.subject, tokens, rows, 10 * seed)
        if isinstance(self.statement, Equivariance):
            documents = torch.zeros_like(documents)  # the mask is any
        shared = shared_inputs(self.roles, mask, documents, self.subject, generator)
        if self.call_mode == "packed":
            shared[POSITIONS] = self.subject.first_position + restarting_positions(
                documents.diff(prepend=documents[:, :1]) > 0
            )
        if isinstance(self.statement, Equivariance):
            order = torch.randperm(tokens, generator=generator)
            second, expected = self._permuted(first, order), order
            moved = {
                role: x[..., order][..., order, :] if role == BLOCKS else x[:, order] for role, x in shared.items()
            }
            return self._outcome(name, (first, shared), (second, moved), expected, tokens)
        chosen = agreement(self.law, mask, documents, generator)
        other = inputs_of(self.subject, tokens, rows, 10 * seed + 5)
        second = tuple(
            torch.where(_along(chosen.inputs, x, axis), x, y) if role == TOKEN_INPUT else x
            for role, axis, x, y in zip(self.roles, self.subject.token_axes, first, other, strict=False)
        )
        return self._outcome(name, (first, shared), (second, shared), chosen, tokens)

    def _permuted(self, inputs: tuple[Tensor, ...], order: Tensor) -> tuple[Tensor, ...]:
        axes = zip(self.roles, self.subject.token_axes, inputs, strict=False)
        return tuple(x.index_select(axis, order) if role == TOKEN_INPUT else x for role, axis, x in axes)

    def _outcome(
        self, name: str, first: tuple[Any, Any], second: tuple[Any, Any], expected: Agreement | Tensor, tokens: int
    ) -> dict[str, Any]:
        try:
            one, two = self._call(*first)[name], self._call(*second)[name]
        except (IndexError, RuntimeError, ValueError) as error:  # theorems are of calls without an error
            return {"skipped": f"it raises {type(error).__name__}"}
        if not (one.isfinite().all() and two.isfinite().all()):
            return {"skipped": "not finite"}
        places = self._places(name)
        if places is None:
            return {"skipped": "no axes of rows and tokens"}
        row_axis, token_axis = places
        largest = max(float(one.abs().max()), 1e-6)
        if isinstance(expected, Tensor):
            wanted = one if token_axis is None else one.index_select(token_axis, expected)
            return {"difference": float((two - wanted).abs().max()) / largest, "moved": not torch.equal(one, two)}
        if expected.per_token and token_axis is None:
            return {"skipped": "no axes of rows and tokens"}
        agree = expected.outputs
        if token_axis is None or not expected.per_token:
            agree = agree.all(dim=1)
            shape = [len(agree) if axis == row_axis else 1 for axis in range(one.dim())]
        else:
            agree = agree if row_axis is None or row_axis < token_axis else agree.T
            shape = [one.shape[axis] if axis in (row_axis, token_axis) else 1 for axis in range(one.dim())]
            if row_axis is None:
                return {"skipped": "no axes of rows and tokens"}
        there = agree.reshape(shape).expand_as(one)
        distance = (one - two).abs()
        return {
            "difference": float(torch.where(there, distance, 0.0).max()) / largest,
            "moved": bool((distance[~there] > TOLERANCE * largest).any()) if (~there).any() else False,
        }

    def _places(self, name: str) -> tuple[int | None, int | None] | None:
        """The axes of rows and tokens of an output, by its symbolic shape."""
        graph = self.pieces[name][0].graphs[0]
        shape = graph.shape(graph.outputs[name])
        tokens = [axis for axis, size in enumerate(shape) if size == TOKENS]
        rows = [axis for axis, size in enumerate(shape) if str(size) == "batch"]
        if len(tokens) > 1 or len(rows) > 1:
            return None
        return rows[0] if rows else None, tokens[0] if tokens else None

    def _call(self, inputs: tuple[Tensor, ...], shared: dict[str, Tensor]) -> dict[str, Tensor]:
        extra = [shared[role] for role in self.roles if role in shared]
        with torch.no_grad(), seeded_random(0):
            return named_tensors(self.module(*(x.clone() for x in inputs), *(x.clone() for x in extra)))


def examine(name: str, comparisons: int, seed: int) -> dict[str, Any]:
    """One line of the results: for each law and call mode the comparisons, the largest difference, contradictions."""
    subject = load(f"arch:{name}", tiny=True)
    AuditContext(subject, subject.default_length)  # checks that the subject can be audited
    calls = OpenCalls(subject)
    row: dict[str, Any] = {"laws": {}, "contradictions": []}
    for law in proved_laws():
        for call_mode in dict.fromkeys([*law.call_modes, "plain", "padded"]):
            try:
                attack = Attack(subject, calls, law, call_mode)
                found = list(attack.run(comparisons, seed))
            except (NoTheorem, CaptureError):
                continue
            if not found:
                continue
            made = [one for one in found if "difference" in one]
            row["laws"][f"{law.name} {call_mode}"] = {
                "comparisons": len(made),
                "moved": sum(one["moved"] for one in made),
                "skipped": dict(Counter(one["skipped"] for one in found if "skipped" in one)),
                "largest": max((one["difference"] for one in made), default=0.0),
            }
            row["contradictions"] += [
                {"law": law.name, "call_mode": call_mode, **one} for one in made if one["difference"] > TOLERANCE
            ]
    return row


def summarize(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    """The counts for each law, every contradiction, and True if there is none."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        for law, found in row.get("laws", {}).items():
            own = counts.setdefault(law, Counter())
            own.update(architectures=1, comparisons=found["comparisons"], moved=found["moved"])
    lines = ["law, call mode\tarchitectures\tcomparisons\tin which other outputs moved"]
    lines += [f"{k}\t{v['architectures']}\t{v['comparisons']}\t{v['moved']}" for k, v in sorted(counts.items())]
    total = sum(v["comparisons"] for v in counts.values())
    wrong = [f"{row['name']}: {json.dumps(one)}" for row in rows for one in row.get("contradictions", [])]
    failed = Counter(row["error"] for row in rows if "error" in row)
    lines += [f"all\t{sum(bool(r.get('laws')) for r in rows)}\t{total}\t", f"contradictions: {len(wrong)}", *wrong]
    lines += [f"{count} not examined: {reason}" for reason, count in failed.most_common()]
    return "\n".join(lines), not wrong


def main(arguments: list[str] | None = None) -> int:
    """Examine architectures, or summarize results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--comparisons", type=int, default=16, help="of each theorem about one output")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", default="0/1", metavar="K/N", help="this worker of so many")
    parser.add_argument("--summary", action="store_true", help="print the results and examine nothing")
    chosen = parser.parse_intermixed_args(arguments)
    lines = chosen.results.read_text(encoding="utf-8").splitlines() if chosen.results.is_file() else []
    rows = [json.loads(line) for line in lines]
    if chosen.summary:
        text, sound = summarize(rows)
        print(text)
        return 0 if sound else 1
    worker, workers = map(int, chosen.worker.split("/"))
    done = {row["name"] for row in rows}
    signal.signal(signal.SIGALRM, _raise_out_of_time)
    for name in [n for n in (chosen.names or known_architectures()[worker::workers]) if n not in done]:
        began = time.process_time()
        signal.alarm(LIMIT)
        try:
            row = examine(name, chosen.comparisons, chosen.seed)
        except _OutOfTime:
            row = {"error": f"not done after {LIMIT} s"}
        except OrderproofError as error:
            row = {"error": type(error).__name__, "message": first_line(error)}
        except Exception as error:  # noqa: BLE001 - third-party code: a model may fail in any way
            row = {"error": first_line(error)}
        finally:
            signal.alarm(0)
        row = {"name": name, "seconds": round(time.process_time() - began, 1), **row}
        with chosen.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(name, row.get("error") or {k: v["comparisons"] for k, v in row["laws"].items()}, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
