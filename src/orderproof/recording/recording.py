"""Record a module: its parameters and buffers become meta tensors, its forward call a graph."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, Node
from torch.utils._python_dispatch import _disable_current_modes

from orderproof.cast_on_use import is_large
from orderproof.errors import CaptureError, first_line
from orderproof.kernel_switch import without_compiled_kernels
from orderproof.positions import without_value_checks
from orderproof.recording.arguments import tensors_in
from orderproof.recording.assumptions import (
    custom_calls,
    custom_operator_assumptions,
    observed_arguments,
    refuse_shared_memory,
    signed_zero_assumption,
    state_assumptions,
)
from orderproof.recording.buffer_values import buffers_with_values
from orderproof.recording.captured_graph import CapturedGraph, leaves_by_name
from orderproof.recording.compiled_code import forget_compiled_code, without_compilation
from orderproof.recording.eager_answers import eager_answers
from orderproof.recording.eager_check import (
    can_compare,
    compare_with_eager,
    hidden_from_profile,
    profiled_operators,
    without_fast_path,
)
from orderproof.recording.eager_program import compare_programs
from orderproof.recording.eager_view import EagerView
from orderproof.recording.few_rows import compare_few_rows
from orderproof.recording.loop_recording import Loops
from orderproof.recording.memory import LIFTED, SharedMemory
from orderproof.recording.module_state import preserved_state
from orderproof.recording.module_tensors import ModuleTensors
from orderproof.recording.open_call import OpenCall
from orderproof.recording.owned_state import OwnedState, owned_state
from orderproof.recording.program import Program
from orderproof.recording.python_numbers import PythonType, python_numbers
from orderproof.recording.recorded_graph import Alias, RecordedGraph, Storage
from orderproof.recording.recorder import Recorder
from orderproof.recording.refusal import NOT_RECORDED, RecordingRefused
from orderproof.recording.replaced_builtins import cache_assumptions, replaced_builtins
from orderproof.recording.selected_rows import called
from orderproof.recording.size_functions import BUILTINS
from orderproof.recording.token_branches import MAX_VALUES, TokenBranch, TokenBranches, other_paths

_active = ContextVar("recording", default=False)
_compared = ContextVar("recording and its eager calls", default=False)


def is_recording() -> bool:
    """True during a recording, in which constants can be read also where tensors have no values."""
    return _active.get()


def needs_operators() -> bool:
    """True during a recording and the eager calls that it is compared with, which must run operators of torch."""
    return _active.get() or _compared.get()


@contextmanager
def _within(variable: ContextVar[bool]) -> Iterator[None]:
    token = variable.set(True)
    try:
        yield
    finally:
        variable.reset(token)


class Recording:
    """One recorded call of a module.

    Args:
        module: The module.
        inputs: The inputs of the call.
        open_call: Its open sizes and branches; None if every size is a number.
        reached: The state that the module reaches, if it is known.
        compared: The recording is compared with an eager call, for which its program is needed.
        rolls_loops: A loop over an open range is recorded for an index that is a symbol.
        apart: The first iterations of such a loop, which are recorded by themselves.
        branches: The answers to branches on which values occur in the inputs.

    """

    def __init__(
        self,
        module: nn.Module,
        inputs: tuple[Tensor, ...],
        open_call: OpenCall | None = None,
        *,
        reached: OwnedState | None = None,
        compared: bool = False,
        rolls_loops: bool = False,
        apart: int = 0,
        branches: TokenBranches | None = None,
    ) -> None:
        self.module, self.inputs = module, inputs
        self.graph = Graph()
        self.reached = reached or owned_state(module)
        self.tensors = ModuleTensors(module, self.reached.trained)
        self.memory = SharedMemory(self.reached.arrays)
        self.state: dict[str, str] = {}  # placeholder -> name
        self.by_name: dict[str, Alias] = {}
        self.last_placeholder: Node | None = None
        self.constants: dict[str, Tensor] = {}
        # A module on the meta device is recorded as on the CPU, where its buffers and constants have values.
        self.device = torch.device("cpu") if open_call or not inputs or inputs[0].is_meta else inputs[0].device
        self.recorded = RecordedGraph(self.graph, self.lift, self.device, open_call)
        self.recorded.refusal_of_write = self.memory.refusal_of_write
        self.recorded.refusal_of_use = self.memory.refusal_of_use
        self.loops = Loops(self.recorded, self.reached.packages, apart) if rolls_loops else None
        self.recorded.loops = self.loops
        self.recorded.branches = branches or TokenBranches()
        self.operators: list[str] = []  # those that the call called
        names = frozenset(self.tensors.real)
        self.program = Program(partial(_name_in_program, self.tensors, names))
        self.compared = compared

    # ------------------------------------------------------------------ tensors of the graph

    def placeholder(self, name: str, tensor: Tensor, values: Tensor | None = None) -> Alias:
        """A new placeholder, after those that are there."""
        if self.last_placeholder is None:
            node = self.graph.placeholder(name)
        else:
            with self.graph.inserting_after(self.last_placeholder):
                node = self.graph.placeholder(name)
        self.last_placeholder = node
        node.meta["val"] = tensor
        alias = Alias(tensor, Storage(constant=values is not None), node, 0, values=values)
        alias.storage.base = alias
        alias.storage.aliases.append(alias)
        return alias

    def of_module(self, name: str) -> Alias:
        """The alias of a parameter or buffer."""
        if name not in self.by_name:
            real = self.tensors.real[name]
            meta = _meta_like(real)
            trained = name in self.tensors.parameters
            if isinstance(real, nn.Parameter):
                meta = nn.Parameter(meta, requires_grad=real.requires_grad)
            meta.__dict__.update(real.__dict__)
            prefix = "p" if trained else "b"
            alias = self.placeholder(f"{prefix}_{_identifier(name)}", meta)
            self.state[alias.node.name] = name
            self.by_name[name] = alias
            self._use_memory(name, real, alias)
        return self.by_name[name]

    def lift(self, tensor: Tensor) -> Alias:
        """The alias of a tensor that the recording did not create."""
        # Outside of an operator the modes of the recording are active, which would record what is asked of the tensor.
        with _disable_current_modes(), hidden_from_profile():
            return self._lift(tensor)

    def _lift(self, tensor: Tensor) -> Alias:
        name = self.tensors.name_of(tensor)
        if name is not None:
            return self.of_module(name)
        if type(tensor) not in (Tensor, nn.Parameter) or tensor.layout is not torch.strided or tensor.is_quantized:
            self.recorded.refuse(f"it uses a tensor of class {type(tensor).__name__}")
        if tensor.is_meta:
            self.recorded.refuse("it uses a tensor whose values are not known")
        trained = self.tensors.is_trained(tensor)
        known = self.tensors.attributes.get(id(tensor))
        name = known or f"{'parameter_' if trained else LIFTED}{len(self.constants)}"
        values = None if trained else tensor.detach().clone()
        self.constants[name] = tensor.detach()
        self.tensors.add(name, tensor, trained=trained)
        alias = self.placeholder(f"c_{_identifier(name)}", _meta_like(tensor), values)
        self.state[alias.node.name] = name
        self.by_name[name] = alias
        self._use_memory(name, tensor, alias)
        return alias

    def _use_memory(self, name: str, tensor: Tensor, alias: Alias) -> None:
        if reason := self.memory.add(name, tensor, alias, trained=name in self.tensors.parameters):
            self.recorded.refuse(reason)

    # ------------------------------------------------------------------ the call

    @contextmanager
    def _swapped(self, changes: list[str]) -> Iterator[None]:
        """The module with meta tensors for its parameters and buffers; the names of those that change are added."""
        before: list[tuple[dict[str, Any], dict[str, Any]]] = []
        for part in self.module.modules():
            for held in (part._parameters, part._buffers):
                before.append((held, dict(held)))
                for key, value in held.items():
                    if value is not None:
                        name = self.tensors.name_of(value)
                        assert name is not None
                        held[key] = self.of_module(name).tensor  # type: ignore[assignment]
        try:
            yield
        finally:
            for held, values in before:
                for key, value in values.items():
                    name = None if value is None else self.tensors.name_of(value)
                    replaced = held.get(key) is not (None if name is None else self.by_name[name].tensor)
                    if replaced:
                        changes.append(name or key)
                changes += [key for key in held if key not in values]
                held.clear()
                held.update(values)

    @contextmanager
    def _modules_followed(self) -> Iterator[None]:
        """Follow which module is running."""
        paths = {id(part): (path, type(part)) for path, part in self.module.named_modules()}
        stack = self.recorded.module_stack

        def enter(part: nn.Module, _args: Any) -> None:
            path, kind = paths.get(id(part), ("", type(part)))
            stack[f"{len(stack)}"] = (path, kind)

        def leave(_part: nn.Module, _args: Any, _result: Any) -> None:
            if stack:
                stack.popitem()

        hooks = [
            nn.modules.module.register_module_forward_pre_hook(enter),
            nn.modules.module.register_module_forward_hook(leave, always_call=True),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def run(self) -> CapturedGraph:
        """The graph. Raises `CaptureError`, and what the forward call raises."""
        names = _argument_names(self.module, len(self.inputs))
        aliases = [self.placeholder(name, _meta_like(x)) for name, x in zip(names, self.inputs, strict=True)]
        input_nodes = [alias.node for alias in aliases]  # a write to an input gives its alias another node
        output, changed, assumptions = self.call(aliases)
        try:
            captured = self._captured(output, input_nodes)
        except RecordingRefused as error:  # an output that no operator of the call made
            raise CaptureError(f"{NOT_RECORDED}{error}") from None
        captured.changed_state = tuple(changed)
        captured.assumptions += assumptions
        return captured

    def call(self, aliases: Sequence[Alias]) -> tuple[Any, list[str], tuple[str, ...]]:
        """Record the call with these inputs: its output, what it changes in the module, and what it assumes.

        Raises as `run`.
        """
        recorded = self.recorded
        recorded.inputs = {alias.node for alias in aliases}
        for place, alias in enumerate(aliases):
            recorded.add(alias)
            if self.compared:
                self.program.name(alias.tensor, "input", place)
        output: Any = None
        kept: dict[str, None] = {}
        with ExitStack() as stack:
            changes = stack.enter_context(preserved_state(self.module, self.reached))
            arguments = stack.enter_context(observed_arguments(self.module))
            refuse_shared_memory(changes)
            stack.enter_context(self._swapped(changes.names))
            for name, alias in self.by_name.items():
                recorded.add(alias)
                if self.compared:
                    self.program.name(alias.tensor, "of the module", name)
            stack.enter_context(_within(_active))
            stack.enter_context(self._modules_followed())
            stack.enter_context(torch.no_grad())
            stack.enter_context(without_value_checks())
            stack.enter_context(without_fast_path())
            stack.enter_context(without_compilation())
            stack.enter_context(without_compiled_kernels())
            stack.enter_context(recorded.autocast.cache())
            stack.enter_context(torch._C._AutoDispatchBelowAutograd())
            if recorded.open_call is not None:
                builtins = {"type": PythonType, **BUILTINS}
                builtins |= {} if self.loops is None else self.loops.builtins
                kept = stack.enter_context(replaced_builtins(self.module, builtins, self._note_kept, recorded.refuse))
                stack.enter_context(python_numbers())
            stack.enter_context(Recorder(recorded, self.program if self.compared else None))
            stack.enter_context(EagerView(recorded))
            self.operators = stack.enter_context(profiled_operators(hiding=True))
            with suppress(RecordingRefused):
                output = called(self.module, (alias.tensor for alias in aliases))
        self._raise_what_was_noticed()
        assumptions = (*arguments.assumptions(), *state_assumptions(changes), *cache_assumptions(kept))
        return output, list(dict.fromkeys([*changes.names, *self.written_names()])), assumptions

    def _note_kept(self, name: str, result: Any) -> None:
        """Note the tensors that a function under `functools.lru_cache` gave."""
        for x in tensors_in(result):
            self.recorded.alias(x).storage.kept_by = name

    def _raise_what_was_noticed(self) -> None:
        """Raise `CaptureError` if the recording met what it cannot follow, whether or not the model went on."""
        recorded = self.recorded
        if recorded.refusals:
            raise CaptureError(f"{NOT_RECORDED}{recorded.refusals[0]}")
        if name := self.memory.changed():
            raise CaptureError(f"{NOT_RECORDED}the values of {name} change during the call without an operator")
        if recorded.errors:
            raise CaptureError(
                f"{NOT_RECORDED}the model catches an error that recording it raised: {recorded.errors[0]}"
            )

    def written_names(self) -> list[str]:
        """Names of the tensors of the module that the call writes to."""
        return [name for name, alias in self.by_name.items() if alias.storage.version]

    def written(self) -> list[Tensor]:
        """The tensors of the module that the call writes to."""
        return [self.tensors.real[name] for name in self.written_names()]

    def erase_unused(self, inputs: Sequence[Node]) -> None:
        """Erase the nodes on which no output depends, except the inputs."""
        for node in reversed(list(self.graph.nodes)):
            if node.op == "call_function" and not node.users:
                self.graph.erase_node(node)
            if node.op == "placeholder" and not node.users and node not in inputs:
                del self.state[node.name]
                self.graph.erase_node(node)

    def values(self) -> dict[str, Tensor]:
        """The tensors of the graph that are not inputs and have values, by name."""
        kept = set(self.state.values())
        return {name: x.detach() for name, x in self.tensors.real.items() if name in kept and not x.is_meta}

    def _captured(self, output: Any, inputs: list[Node]) -> CapturedGraph:
        leaves = leaves_by_name(output)
        if self.compared:
            self.program.end(leaves)
        outputs = {name: self.recorded.node_of(x) for name, x in leaves.items() if isinstance(x, Tensor)}
        self.graph.output(tuple(outputs.values()))
        custom = custom_calls(self.graph)
        self.erase_unused(inputs)
        return CapturedGraph(
            self.graph,
            tuple(inputs),
            outputs,
            self.state,
            frozenset(n for n in self.state.values() if n in self.tensors.parameters),
            self.values(),
            read=self.recorded.constants_read,
            assumptions=(*custom_operator_assumptions(custom, self.graph), *signed_zero_assumption(self.graph)),
            branches=tuple(dict.fromkeys(self.recorded.branches.taken)),
            nested=tuple(self.recorded.nested),
        )


def _name_in_program(tensors: ModuleTensors, names: Collection[str], x: Tensor) -> str | None:
    """The name of a tensor of the module; of a parameter that has none, its place: it is not known by its values."""
    name = tensors.name_of(x)
    if name in names:
        return name
    if x.is_meta or not tensors.is_trained(x):
        return None
    return f"parameter at {x.data_ptr()}, {x.dtype} {list(x.shape)} {x.stride()}"


def record(
    module: nn.Module, inputs: tuple[Tensor, ...], *, values: Mapping[str, Tensor] | None = None
) -> CapturedGraph:
    """Record the forward call of a module on these inputs, whose values do not matter.

    Args:
        module: The module.
        inputs: The inputs.
        values: The values of buffers on the meta device, by qualified name.

    Raises:
        CaptureError: It cannot be recorded. Whatever the module raises is raised too.

    """
    with buffers_with_values(module, values or {}), _within(_compared):
        return _record(module, inputs)


def _record(module: nn.Module, inputs: tuple[Tensor, ...]) -> CapturedGraph:
    compared = can_compare(module, inputs)
    recording = Recording(module, inputs, compared=compared)
    try:
        captured = recording.run()
    except CaptureError:
        if not (compared and recording.recorded.branches.missing):
            raise
        branches = TokenBranches(eager=eager_answers(module, inputs, recording.reached))
        recording = Recording(module, inputs, compared=compared, branches=branches)
        captured = recording.run()
        captured.assumptions += tuple(dict.fromkeys(map(str, captured.branches)))
        captured.branch_values = _values_of_all_branches(recording)
    if compared:
        rest = recording.written(), recording.reached
        if captured.nested:
            forget_compiled_code()  # of functions that torch compiles for these operators
        eager = compare_with_eager(module, inputs, None if captured.nested else recording.operators, *rest)
        compare_programs(module, inputs, recording.program, *rest)
        compare_few_rows(module, inputs, *rest)
        captured.without, captured.outside = eager.without, tuple(eager.calls.outside)
        if is_large(module) and not eager.without:
            leaves = leaves_by_name(eager.output)
            captured.eager = inputs, {name: x for name, x in leaves.items() if isinstance(x, Tensor)}
        captured.changed_state = tuple(dict.fromkeys([*captured.changed_state, *eager.changed]))
    return captured


def _values_of_all_branches(recording: Recording) -> tuple[int, ...]:
    """The values on which the branches of any path of a recorded call depend. Raises `CaptureError`."""

    def record_path(answers: Sequence[bool]) -> Sequence[TokenBranch]:
        branches = TokenBranches(forced=answers)
        path = Recording(recording.module, recording.inputs, reached=recording.reached, branches=branches)
        try:
            path.run()
        except CaptureError:
            raise
        except Exception as error:  # noqa: BLE001 - raised by the model: no claim is about a call that takes this path
            if path.recorded.errors:  # raised by an operator, perhaps only in a recording
                raise CaptureError(f"{NOT_RECORDED}on a path that is not taken, {first_line(error)}") from None
        return branches.taken

    values = other_paths(recording.recorded.branches.taken, record_path)
    if len(values) > MAX_VALUES:
        raise CaptureError(f"its branches depend on {len(values)} values of tokens, and at most {MAX_VALUES} are tried")
    return tuple(sorted(values))


def _argument_names(module: nn.Module, count: int) -> list[str]:
    parameters = list(inspect.signature(module.forward).parameters.values())
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    return named + [f"args_{k}" for k in range(count - len(named))]


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _meta_like(x: Tensor) -> Tensor:
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
