"""Calls of a plain module with inputs of several sizes, from which the axes of its inputs and outputs are derived."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product

import torch
from torch import Tensor, nn

from orderproof.errors import OrderproofError, SubjectError, failure_reason, first_line
from orderproof.models.axes import CalledShapes, Shape
from orderproof.models.call_arguments import PlainOutputs, as_dictionaries
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.sample import BATCH_SIZE
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.owned_state import OwnedState, owned_state
from orderproof.recording.restored_state import restored_state
from orderproof.recording.source import source_of_error
from orderproof.time_limit import TimeLimitExceeded, time_limit

FURTHER_SECONDS = 30.0  # for all calls of other sizes together
LEAST_SECONDS = 0.1  # for each of them
MAX_ROW_LAYOUTS = 8  # assignments of axes to rows that are tried


@dataclass(frozen=True)
class Call:
    """A call of a module: its inputs and how many tokens and rows they have."""

    examples: ExampleInputs
    tokens: int
    rows: int | None  # None: as many as the examples

    @property
    def row_count(self) -> int | None:
        """The number of rows; None if the inputs have no axis of rows."""
        own = self.examples.row_count
        return own if own is None or self.rows is None else self.rows

    def inputs(self, seed: int = 0) -> tuple[Tensor, ...]:
        """The inputs. Raises `SubjectError`."""
        return self.examples.draw(self.rows, self.tokens, seed).inputs


def unread_outputs(outputs: object) -> tuple[str, ...]:
    """A note for each part of the outputs of a module that is an object in which no tensor is looked for."""
    plain = (Tensor, bool, int, float, complex, str, bytes, torch.dtype, torch.device, type(None))
    return tuple(
        f"output {name!r} is an object of type {type(leaf).__name__}: tensors in it are not audited"
        for name, leaf in leaves_by_name(outputs).items()
        if not isinstance(leaf, plain)
    )


@dataclass
class ModuleCalls:
    """Calls of a module; each leaves it as it was. The first may wrap it, if it returns a dataclass."""

    module: nn.Module
    name: str
    seconds_left: float = FURTHER_SECONDS
    unread_outputs: tuple[str, ...] = ()  # of the first call: objects that may hold tensors

    @cached_property
    def state(self) -> OwnedState:
        """The state of the module; a walk takes as long as many calls, and each call leaves the state as it was."""
        return owned_state(self.module)

    def first(self, calls: Sequence[Call]) -> tuple[Call, Exception | None]:
        """The first call that the module accepts, and what the one before it raised. Raises `SubjectError`."""
        failure: Exception | None = None
        shapes = ""
        for call in calls:
            try:
                inputs = call.inputs()
                shapes = ", ".join(str(tuple(tensor.shape)) for tensor in inputs)
                result = self._called(inputs)
                self._check_outputs(result)
            except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
                failure = error
            else:
                self.unread_outputs = unread_outputs(as_dictionaries(result))
                if as_dictionaries(result) is not result:
                    self.wrap(PlainOutputs(self.module))
                return call, failure
        if isinstance(failure, OrderproofError):
            raise failure
        assert failure is not None
        raised = f"{first_line(failure)}{source_of_error(failure)}"
        raise SubjectError(f"{self.name}: calling it with {shapes} raised {raised}") from failure

    def shapes(self, inputs: tuple[Tensor, ...], seconds: float | None = None) -> dict[str, Shape]:
        """The shapes of the outputs by name. Raises what the module raises, and `TimeoutError`."""
        try:
            with torch.no_grad(), restored_state(self.module, self.state), time_limit(seconds):
                found = self._called([x.clone() for x in inputs])
        except TimeLimitExceeded:
            raise TimeoutError(f"further calls took more than {FURTHER_SECONDS:g} s") from None
        return {name: tuple(leaf.shape) for name, leaf in leaves_by_name(found).items() if isinstance(leaf, Tensor)}

    def _check_outputs(self, result: object) -> None:
        """Raise `SubjectError` for an output whose sizes or values cannot be compared."""
        for name, leaf in leaves_by_name(result).items():
            if isinstance(leaf, Tensor) and (leaf.is_nested or leaf.is_meta):
                kind = "a nested tensor" if leaf.is_nested else "on the meta device"
                raise SubjectError(f"{self.name}: its {name} is {kind}; expected a tensor with sizes and values")

    def _called(self, inputs: Sequence[Tensor]) -> object:
        """The outputs. Raises what the module raises; `SubjectError` for `SystemExit`, which would end the audit."""
        try:
            with without_compilation():
                return self.module(*inputs)
        except SystemExit as stop:
            reason = f"a call of it raised SystemExit: {stop.code}"
            raise SubjectError(f"{self.name}: it cannot be audited: {reason}") from stop

    def further_shapes(self, inputs: tuple[Tensor, ...]) -> dict[str, Shape]:
        """The same for a call of another size: all of them together have `FURTHER_SECONDS`."""
        began = time.monotonic()
        try:
            return self.shapes(inputs, max(self.seconds_left, LEAST_SECONDS))
        finally:
            self.seconds_left -= time.monotonic() - began

    def accepts(self, call: Call | tuple[Tensor, ...]) -> bool:
        """True if the module can be called so."""
        try:
            self.further_shapes(call.inputs() if isinstance(call, Call) else call)
        except Exception:  # noqa: BLE001 - the user's forward: anything may come
            return False
        return True

    def with_more(self, call: Call, *, tokens: int = 0, rows: int = 0) -> tuple[Call, dict[str, Shape], str]:
        """The call with more tokens or rows, the shapes of its outputs, and why it could not be made."""
        count = call.rows if not rows or call.row_count is None else call.row_count + rows
        larger = replace(call, tokens=call.tokens + tokens, rows=count)
        try:
            return larger, self.further_shapes(larger.inputs()), ""
        except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
            size = f"{larger.row_count} rows" if rows else f"{larger.tokens} tokens"
            return larger, {}, f"a call with {size} failed ({failure_reason(error)})"

    def wrap(self, module: nn.Module) -> None:
        """Call this module from now on, which calls the one before."""
        self.module = module.eval()
        vars(self).pop("state", None)

    def outputs(self, inputs: tuple[Tensor, ...]) -> object:
        """The outputs. Raises what the module raises."""
        with torch.no_grad(), restored_state(self.module, self.state):
            return self._called([x.clone() for x in inputs])

    def tensors(self, inputs: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """The tensors among the outputs, by name. Raises what the module raises."""
        leaves = leaves_by_name(as_dictionaries(self.outputs(inputs)))
        return {name: leaf for name, leaf in leaves.items() if isinstance(leaf, Tensor)}

    def called_shapes(self, call: Call) -> tuple[Call, dict[str, CalledShapes]]:
        """The shapes of each output in calls of several sizes, and the call with the axes of rows that were found."""
        base = self.shapes(call.inputs())
        step, grown, no_tokens = 1, *self._more_tokens(call, 1)
        if no_tokens and (twice := self._more_tokens(call, call.tokens)[0]):  # windows may divide the length
            step, grown, no_tokens = call.tokens, twice, ""
        call, more_rows, no_rows = self._more_rows(call)
        return call, {
            name: CalledShapes(
                shape, tuple(g[name] for g in grown if name in g), more_rows.get(name), call.tokens, call.row_count,
                no_tokens or "it is not an output of every call", no_rows or "it is not an output of every call", step,
            )
            for name, shape in base.items()
        }  # fmt: skip

    def _more_tokens(self, call: Call, step: int) -> tuple[list[dict[str, Shape]], str]:
        """The shapes of the outputs with more tokens, each time by a step; why there are none."""
        grown = []
        for count in (1, 2):
            _, shapes, failure = self.with_more(call, tokens=count * step)
            if failure:
                return [], failure
            grown.append(shapes)
        return grown, ""

    def _more_rows(self, call: Call) -> tuple[Call, dict[str, Shape], str]:
        if call.row_count is None:
            return call, {}, ""
        reason = ""
        for examples in row_layouts(call.examples):
            layout = replace(call, examples=examples)
            if layout.row_count is None:
                continue
            _, shapes, failure = self.with_more(layout, rows=1)
            if not failure:
                return layout, shapes, ""
            reason = reason or failure
        return call, {}, reason

    def separate_sequences(self, call: Call) -> tuple[int, ...]:
        """The inputs with tokens whose length is independent of that of the first: sequences of their own."""
        axes = call.examples.axes
        first = next(place for place, axis in enumerate(axes) if axis is not None)
        others = [place for place, axis in enumerate(axes) if axis is not None and place != first]
        if not others:
            return ()
        inputs, longer = call.inputs(), replace(call, tokens=call.tokens + 1).inputs()
        return tuple(
            place
            for place in others
            if self.accepts(tuple(y if k == place else x for k, (x, y) in enumerate(zip(inputs, longer, strict=True))))
        )


def default_row_axis(tensor: Tensor, token_axis: int | None) -> int | None:
    """The axis of an input with tokens that runs over rows: the first other one, if the input has more than two."""
    if token_axis is None or tensor.dim() < 2:
        return None
    if token_axis:
        return 0
    return 1 if tensor.dim() > 2 or not tensor.is_floating_point() else None


def row_layouts(examples: ExampleInputs) -> Iterator[ExampleInputs]:
    """The same inputs with each assignment of axes to rows that is possible, the likely one first."""
    known = [default_row_axis(t, axis) for t, axis in zip(examples.tensors, examples.axes, strict=True)]
    if examples.row_axes:
        known = [own if axis is not None else None for own, axis in zip(examples.row_axes, examples.axes, strict=True)]
    sizes = [t.shape[row] for t, row in zip(examples.tensors, known, strict=True) if row is not None]
    if not sizes:
        yield replace(examples, row_axes=(None,) * len(known))
        return
    rows = max(sizes)
    options: list[list[int | None]] = []
    for tensor, axis, row in zip(examples.tensors, examples.axes, known, strict=True):
        if axis is not None:
            options.append([row if row is not None and tensor.shape[row] == rows else None])
        else:
            fitting: list[int | None] = [place for place, size in enumerate(tensor.shape) if size == rows]
            options.append([None, *fitting] if rows == 1 else [*fitting, None])
    for chosen in islice(product(*options), MAX_ROW_LAYOUTS):
        yield replace(examples, row_axes=chosen)
    yield replace(examples, row_axes=tuple(None for _ in known))


def calls_to_try(examples: ExampleInputs, lengths: Sequence[int]) -> list[Call]:
    """The calls to try: each length with several rows, then with the rows of the examples."""
    layouts = list(row_layouts(examples))
    calls = []
    for length in dict.fromkeys(lengths):
        if layouts[0].row_count == 1:
            calls += [Call(layout, length, BATCH_SIZE) for layout in layouts if layout.row_count == 1]
        calls.append(Call(layouts[0], length, None))
    return calls
