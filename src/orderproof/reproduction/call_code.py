"""Recorded calls as lines of a script: chains of calls on one cache become loops over chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import ReproductionError
from orderproof.reproduction.call_recorder import CacheChange, CallRecorder, Event, ModelCall
from orderproof.reproduction.model_code import literal
from orderproof.reproduction.tensor_code import TensorVariables

TOKEN_ARGUMENTS = ("input_ids", "inputs_embeds", "decoder_input_ids", "hidden_states", "inputs", "")


@dataclass(frozen=True)
class OutputPlace:
    """A vector in an output of a call."""

    call: ModelCall
    field: str
    index: tuple[int, ...]

    @property
    def text(self) -> str:
        """The expression for the vector, after that for the outputs of the call."""
        field = f".{self.field}" if self.field else ""
        return f"{field}[{', '.join(map(str, self.index))}]"


def find_vector(calls: Sequence[ModelCall], vector: Tensor) -> OutputPlace | None:
    """The first call with this vector in an output, and where."""
    for call in calls:
        for field, output in call.outputs.items():
            if output.dim() < 2 or output.shape[-1] != len(vector):
                continue
            places = (output == vector).all(-1).nonzero()
            if len(places):
                return OutputPlace(call, field, tuple(int(i) for i in places[0]))
    return None


def needed_events(events: Sequence[Event], wanted: Sequence[ModelCall]) -> list[Event]:
    """The calls that return these outputs, and those whose caches they were given."""
    needed: set[int] = set()
    todo: list[Any] = list(wanted)
    while todo:
        event = todo.pop()
        if id(event) in needed:
            continue
        needed.add(id(event))
        source = event.source if isinstance(event, CacheChange) else event.past
        if source is not None:
            earlier = [e for e in events[: _index(events, event)] if _made(e) is source]
            if not earlier:
                raise ReproductionError("a call is given a cache that comes from elsewhere")
            todo.append(earlier[-1])
    return [event for event in events if id(event) in needed]


def _index(events: Sequence[Event], event: Event) -> int:
    return next(i for i, e in enumerate(events) if e is event)


def _made(event: Event) -> Any:
    return event.result if isinstance(event, CacheChange) else event.cache


def rows_alone(
    events: Sequence[Event], places: Mapping[str, OutputPlace]
) -> tuple[list[Event], dict[str, OutputPlace]]:
    """The same events with the row of the vector alone, for each of the places. Raises `ReproductionError`."""
    if any(isinstance(event, CacheChange) for event in events):
        raise ReproductionError("the rows of a cache that was changed are not taken apart")
    cut: dict[int, ModelCall] = {}
    for place in places.values():
        chain = [e for e in needed_events(events, [place.call]) if isinstance(e, ModelCall)]
        if any(id(call) in cut for call in chain):
            raise ReproductionError("both vectors are of one chain of calls")
        cut |= {id(call): _one_row(call, place.index[0]) for call in chain}
    if len(cut) != len(events):
        raise ReproductionError("other calls matter")
    chosen: list[Event] = [cut[id(event)] for event in events]
    found = {n: OutputPlace(cut[id(p.call)], p.field, (0, *p.index[1:])) for n, p in places.items()}
    return chosen, found


def _one_row(call: ModelCall, row: int) -> ModelCall:
    rows = _row_count(call)

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cut(item) for key, item in value.items()}
        has_rows = isinstance(value, Tensor) and value.dim() > 1 and len(value) == rows
        return value[row : row + 1] if has_rows else value

    return replace(call, arguments={name: cut(value) for name, value in call.arguments.items()})


class CallWriter:
    """Writes events as lines, and the variables of their tensors."""

    def __init__(self, recorder: CallRecorder, events: Sequence[Event], results: dict[str, OutputPlace]) -> None:
        self.recorder, self.events, self.results = recorder, events, results
        self.variables = TensorVariables()
        self.model_lines: list[str] = []
        self._models: dict[int, str] = {}
        self._caches: dict[int, str] = {}

    def lines(self) -> list[str]:
        """The lines of all calls; `expected` and `actual` are defined in them."""
        chains = self._chains()
        wholes = [(name, value) for chain in chains for name, value in _whole_tensors(chain).items()]
        for name, value in sorted(wholes, key=lambda pair: -pair[1].numel()):  # slices refer to what is defined before
            self.variables.expression(name, value)
        lines: list[str] = []
        for k, chain in enumerate(chains):
            later = [e for other in chains[k + 1 :] for e in other]
            lines += self._chain_lines(chain, later)
        return lines

    def _chains(self) -> list[list[Event]]:
        """Consecutive calls, each on the cache that the one before it returned, are one chain."""
        chains: list[list[Event]] = []
        shown = [place.call for place in self.results.values()]
        for event in self.events:
            last = chains[-1][-1] if chains else None
            follows = (
                isinstance(event, ModelCall) and isinstance(last, ModelCall) and event.model is last.model
                and event.past is not None and event.past is last.cache and last not in shown
                and event.arguments.keys() == last.arguments.keys()
            )  # fmt: skip
            if follows:
                chains[-1].append(event)
            else:
                chains.append([event])
        return chains

    def _chain_lines(self, chain: Sequence[Event], later: Sequence[Event]) -> list[str]:
        first = chain[0]
        if isinstance(first, CacheChange):
            source = self._caches.get(id(first.source), "")
            kept = any(isinstance(e, ModelCall) and e.past is first.source for e in later)
            self._caches[id(first.result)] = name = self._next_name() if kept or not source else source
            return [line.format(past=name, source=source) for line in first.lines]
        calls = [event for event in chain if isinstance(event, ModelCall)]
        shown = [(name, place) for name, place in self.results.items() if place.call is calls[-1]]
        is_used = calls[-1].cache is not None and any(_source(e) is calls[-1].cache for e in later)
        text, loop = self._call_text(calls)
        given = calls[0].past
        if calls[0].cache_argument and (given is not None or len(calls) > 1 or is_used):
            name = self._caches.get(id(given), "") if given is not None else self._next_name()
            if not name:
                raise ReproductionError("a call is given a cache that comes from elsewhere")
            self._caches[id(calls[-1].cache)] = name
        else:
            name = ""
        before = [f"{name} = None"] if given is None and len(calls) > 1 else []
        if not name or not (is_used or len(calls) > 1):
            if not shown:
                return [*before, f"{self._model(calls[0])}({text})"]
            if len(shown) == 1:
                return [*before, f"{shown[0][0]} = {self._model(calls[0])}({text}){shown[0][1].text}"]
        body = [f"out = {self._model(calls[0])}({text})"]
        if name and (is_used or len(calls) > 1):
            body.append(f"{name} = out.{calls[0].cache_argument}")
        after = [f"{result} = out{place.text}" for result, place in shown]
        return [*before, *([loop, *(f"    {line}" for line in body)] if loop else body), *after]

    def _call_text(self, calls: Sequence[ModelCall]) -> tuple[str, str]:
        """The arguments of each call of a chain, and the line of the loop over its chunks, empty for one call."""
        wholes = _whole_tensors(calls)
        loop, edges = "", [0]
        if len(calls) > 1:
            edges = [0, *accumulate(_token_count(call) for call in calls)]
            steps = f"range({edges[-1] + 1})" if edges == list(range(edges[-1] + 1)) else str(edges)
            loop = f"for a, b in pairwise({steps}):"
        texts = []
        for name, value in calls[0].arguments.items():
            prefix = f"{name}=" if name else ""
            if isinstance(value, Tensor):
                whole = self.variables.expression(name, wholes[name])
                texts.append(prefix + (whole if len(calls) == 1 else _part(whole, wholes[name], calls, name)))
            elif isinstance(value, dict):
                parts = [self.variables.expression("states", v) for v in value.values() if isinstance(v, Tensor)]
                texts.append(prefix + self.variables.output(parts[0]))
            else:
                texts.append(prefix + literal(value))
        given = calls[0].past
        if len(calls) > 1 or given is not None:
            cache = self._caches.get(id(given)) if given is not None else None
            texts.append(f"{calls[0].cache_argument}={cache or self._next_name()}")
        return ", ".join(texts), loop

    def _next_name(self) -> str:
        taken = len(set(self._caches.values()))
        return f"past{taken + 1}" if taken else "past"

    def _model(self, call: ModelCall) -> str:
        """The name of the model of a call; the lines that make it are kept."""
        if id(call.model) not in self._models:
            lines = self.recorder.lines_of(call.model)
            if lines is None:
                raise ReproductionError("how a copy of the model was made is not known")
            self.model_lines += lines
            self._models[id(call.model)] = lines[-1].split(" = ")[0].split(".")[0].strip() if lines else "model"
        return self._models[id(call.model)]


def _source(event: Event) -> Any:
    return event.source if isinstance(event, CacheChange) else event.past


def _row_count(call: ModelCall) -> int:
    return int(_tokens(call).shape[0])


def _token_count(call: ModelCall) -> int:
    return int(_tokens(call).shape[1])


def _tokens(call: ModelCall) -> Tensor:
    value: Tensor | None = next(
        (call.arguments[n] for n in TOKEN_ARGUMENTS if isinstance(call.arguments.get(n), Tensor)), None
    )
    if value is None or value.dim() < 2:
        raise ReproductionError("the tokens of a call are not known")
    return value


def _whole_tensors(chain: Sequence[Event]) -> dict[str, Tensor]:
    """The tensor arguments of a chain, joined along the tokens; of a mask of all tokens so far the last one."""
    calls = [event for event in chain if isinstance(event, ModelCall)]
    wholes: dict[str, Tensor] = {}
    for name, value in calls[0].arguments.items() if calls else ():
        if isinstance(value, Tensor):
            values = [call.arguments[name] for call in calls]
            joined = len(calls) > 1 and all(v.shape[1] == _token_count(c) for v, c in zip(values, calls, strict=True))
            wholes[name] = torch.cat(values, dim=1) if joined else values[-1]
    return wholes


def _part(whole: str, value: Tensor, calls: Sequence[ModelCall], name: str) -> str:
    """The part of an argument in one call of the loop: its chunk, or all tokens up to the end of the chunk."""
    chunks = list(pairwise([0, *accumulate(_token_count(call) for call in calls)]))
    given = [call.arguments[name] for call in calls]
    if all(torch.equal(value[:, a:b], x) for (a, b), x in zip(chunks, given, strict=True)):
        return f"{whole}[:, a:b]"
    more = given[0].shape[1] - chunks[0][1]
    if all(torch.equal(value[:, : more + b], x) for (_, b), x in zip(chunks, given, strict=True)):
        return f"{whole}[:, : {more} + b]" if more else f"{whole}[:, :b]"
    if all(torch.equal(value, x) for x in given):
        return whole
    raise ReproductionError(f"the argument {name} changes from call to call in another way than the tokens")
