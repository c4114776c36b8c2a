"""What is recorded is the program that runs; what cannot be recorded so is refused or noted."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.laws import find_proved_law
from orderproof.models import from_module, load
from orderproof.recording.capture import capture
from orderproof.recording.execution import execute, relative_difference
from tests.auditing.internals import AuditContext, prove_law
from tests.function_module import Function
from tests.recording.attacks import READS, STATEFUL, WORLDS, Branch, swallowed


def finding_of(module: nn.Module, law: str = "permutation", shape: tuple[int, ...] = (2, 5, 4)):
    subject = from_module(module, (torch.randn(shape, generator=torch.Generator().manual_seed(0)),))
    (found,) = prove_law(AuditContext(subject, subject.default_length), find_proved_law(law))
    return found


@pytest.mark.parametrize("name", READS)
def test_a_value_of_a_token_cannot_be_read(name: str) -> None:
    found = finding_of(Branch(READS[name]))
    assert found.verdict != "proved"
    assert "attacks.py:" in found.reason


@pytest.mark.parametrize("name", READS)
def test_a_refusal_cannot_be_swallowed(name: str) -> None:
    assert finding_of(Branch(swallowed(READS[name]))).verdict != "proved"


@pytest.mark.parametrize("name", WORLDS)
def test_the_model_sees_the_eager_world(name: str) -> None:
    found = finding_of(Branch(swallowed(WORLDS[name])))
    assert found.verdict != "proved"


@pytest.mark.parametrize("name", STATEFUL)
def test_state_outside_the_call_is_named_and_restored(name: str) -> None:
    module = STATEFUL[name]()
    state = random.getstate()
    before = {key: str(value) for key, value in vars(module).items()}
    captured = capture(module, (torch.zeros(2, 5, 4),))
    assert captured.changed_state
    assert {key: str(value) for key, value in vars(module).items()} == before
    assert random.getstate() == state
    found = finding_of(STATEFUL[name]())
    assert found.verdict != "proved" or any("of one call" in text for text in found.scope.assumptions)


def test_a_parameter_in_a_list_is_a_parameter() -> None:
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = [nn.Parameter(torch.zeros(5, 4))]

        def forward(self, x: Tensor) -> Tensor:
            return x + self.held[0]

    found = finding_of(Listed())
    assert found.verdict != "proved"


def test_a_buffer_that_shares_a_parameters_memory_is_that_parameter() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(5, 4))
            self.register_buffer("copy", self.table.data)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.copy

    assert finding_of(Shared()).verdict != "proved"


def test_a_higher_order_operator_is_recorded_without_compilation() -> None:
    class Conditional(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, (x,))

    found = finding_of(Conditional())
    assert any("torch.compile off" in text for text in found.scope.assumptions) or found.verdict != "proved"
    assert capture(Conditional(), (torch.zeros(2, 5, 4),)).nested == ("cond",)


class Writes(nn.Module):
    """Writes through views of views, in place and with other dtypes."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        first = y[:, 0]
        y.transpose(0, 1)[1:3, :, ::2] *= 2
        first += 1
        y.view(-1)[3] = 7
        y.unbind(1)[2].add_(y.chunk(2, 2)[1].sum())
        z = torch.zeros(3, 4, dtype=torch.float64)
        z[1] = y[0, 0]
        z.diagonal().fill_(2)
        torch.einsum("ij->ji", z)[0].add_(5)
        torch.einsum("ii->i", z[:, 1:]).mul_(3)
        z.movedim(0, 1)[2] -= 1
        y[y.shape[0] - 1, :, 1] = z[0, 0]
        y.squeeze(0).mul_(1.5)
        y.unsqueeze_(0)
        y += 1
        return y[0] + first[:, None] + z.sum().float()


def test_writes_through_views_give_the_result_of_the_module() -> None:
    x = torch.randn(2, 5, 4)
    captured = capture(Writes(), (x,))
    (found,) = execute(captured, (x,)).values()
    assert torch.equal(found, Writes()(x))
    assert not any(getattr(n.target, "_schema", None) and n.target._schema.is_mutable for n in captured.graph.nodes)


class EncodesTokens(nn.Module):
    """A recurrent layer, token by token: torch decomposes its cell into writes to chunks of a product."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        state, states = None, []
        for token in x.unbind(1):
            state = self.cell(token, state)
            states.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(states, 1)


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell, nn.RNNCell])
def test_a_recurrent_cell_is_recorded_as_it_runs(cell: type[nn.Module]) -> None:
    module, x = EncodesTokens(cell(4, 4)).eval(), torch.randn(2, 5, 4)
    captured = capture(module, (x,))
    (found,) = execute(captured, (x,)).values()
    assert torch.allclose(found, module(x))
    assert prove(module, "causal", inputs=x).verdict == "proved"


class ChangesShapes(nn.Module):
    """Changes the shapes of a result, of a view and of the tensor it is a view of, and writes to them."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.map.weight
        first = y[..., :1]
        y.unsqueeze_(1)
        first.squeeze_(-1).mul_(2)
        y.transpose_(1, 2).add_(1)
        z = torch.tanh(y)
        z.squeeze_(2)
        largest, _ = z.max(-1)
        left, right = z.chunk(2, -1)
        left.unsqueeze_(1).mul_(2)
        return self.map(z) + first.unsqueeze_(-1) * largest.unsqueeze_(-1) + right.repeat(1, 1, 2)


def test_a_shape_that_is_changed_in_place_is_recorded() -> None:
    module, x = ChangesShapes().eval(), torch.randn(2, 5, 4)
    captured = capture(module, (x,))
    (found,) = execute(captured, (x,)).values()
    with torch.no_grad():  # with gradients, torch refuses to write to one of several views
        assert torch.allclose(found, module(x))
    finding = prove(module, "causal", inputs=x)
    assert (finding.verdict, finding.theorem is not None and finding.theorem.proved) == ("proved", True)


def test_tensors_are_joined_with_empty_ones() -> None:
    class Joins(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            empty = [torch.tensor([]) for _ in range(x.shape[1])]
            parts = [torch.cat([one, x[:, k].flatten()]) for k, one in enumerate(empty)]
            return torch.stack(parts, 1).view_as(x)

    module, x = Joins(), torch.randn(1, 50, 4)
    captured = capture(module, (x,))
    (found,) = execute(captured, (x,)).values()
    assert torch.equal(found, module(x))


ARCHITECTURES = ("llama", "gpt2", "bert", "t5", "bloom", "gemma2", "mistral", "mixtral", "deberta", "vit", "opt", "esm")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_recorded_graph_computes_what_the_model_does(name: str) -> None:
    subject = load(f"arch:{name}", tiny=True)
    inputs = subject.sample(subject.default_length, 0).inputs
    recorded = capture(subject.module, inputs, values=subject.buffer_values, quiet=subject.export_context)
    found = execute(recorded, inputs)
    with torch.no_grad():
        model = subject.module(*inputs)
    assert all(relative_difference(found[output], model[output]) < 1e-5 for output in found)


def test_a_second_input_is_named_as_fixed() -> None:
    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: Tensor, memory: Tensor) -> Tensor:
            return self.inner(x) + memory.mean((0, 1))

    subject = from_module(Reads(), (torch.randn(2, 5, 4), torch.randn(2, 3, 4)))
    (found,) = prove_law(AuditContext(subject, 5), find_proved_law("batch"))
    assert found.verdict == "proved"
    assert "the same in both runs: input memory" in found.scope.assumptions


DIFFERENTIATED = {  # each depends on later tokens
    "grad": torch.func.grad(lambda y: (y * y.mean(1, keepdim=True)).sum()),
    "jacrev": lambda x: torch.func.jacrev(lambda y: y.mean(1) ** 2)(x).sum((0, 1, 2))[None] + x,
    "vjp": lambda x: torch.func.vjp(lambda y: y.cumsum(1), x)[1](x)[0],
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_a_derivative_is_decided_as_it_runs_or_left_open(name: str) -> None:
    assert finding_of(Function(DIFFERENTIATED[name]), "causal").verdict in ("refuted", "undecided")


def test_numbers_in_an_index_keep_their_values() -> None:
    x = torch.randn(2, 5, 4)
    module = Function(
        lambda y: y[:, [1, -1]].sum(1, keepdim=True) + y[[0, 1]] + y[:, [True, False, True, True, False]].mean()
    )
    captured = capture(module, (x,))
    (found,) = execute(captured, (x,)).values()
    assert torch.allclose(found, module(x))


def test_a_difference_from_the_eager_call_names_both_operators() -> None:
    found = finding_of(Branch(WORLDS["instance of a tensor type"]))
    assert "an eager call runs aten::gt where the recording has aten::mean" in found.reason


def test_an_eager_call_leaves_no_trace() -> None:
    module = STATEFUL["tensor"]()
    capture(module, (torch.zeros(2, 5, 4),))
    assert module.held == 0


def test_transformers_is_recorded_as_it_runs() -> None:
    subject = load("arch:llama", tiny=True)
    inputs = subject.sample(subject.default_length, 0).inputs
    captured = capture(subject.module, inputs, values=subject.buffer_values, quiet=subject.export_context)
    assert not captured.patched_because


def test_replaced_parts_are_an_assumption() -> None:
    subject = load("arch:dbrx", tiny=True)
    (found,) = prove_law(AuditContext(subject, subject.default_length), find_proved_law("causal"))
    assert found.verdict == "proved"
    assert any(
        text.startswith("as traced: parts of the model were replaced, because") for text in found.scope.assumptions
    )


class Array(nn.Module):
    """An array of numpy that shares the memory of a constant, written to by one of the two."""

    def __init__(self, write: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.write = write

    def forward(self, x: Tensor) -> Tensor:
        return x + self.write(torch.zeros(5, 1), x)


def written_array(seen: Tensor, x: Tensor) -> Tensor:
    seen.numpy()[0] = 1
    return seen


def written_tensor(seen: Tensor, x: Tensor) -> Tensor:
    array = seen.numpy()
    seen.add_(1)
    return seen * float(array.sum() > 0) * torch.arange(5)[:, None]


@pytest.mark.parametrize("write", [written_array, written_tensor])
def test_memory_shared_with_an_array_is_not_followed(write: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert finding_of(Array(write)).verdict != "proved"


def test_the_fast_path_of_attention_is_off_and_named() -> None:
    module = nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()
    captured = capture(module, (torch.randn(2, 5, 4),))
    assert captured.without == "torch's fast path of nn.MultiheadAttention"
    found = finding_of(module)
    assert found.verdict == "proved"
    assert f"{captured.without} off: computed by torch's operators one by one" in found.scope.assumptions
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_module_may_be_moved_to_the_device_where_it_is() -> None:
    class Moved(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            self.to(self.weight.device)
            return super().forward(x)

    class Replaced(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            self.weight.data = 2 * self.weight.data
            return super().forward(x)

    assert finding_of(Moved(4, 4)).verdict == "proved"
    changed = finding_of(Replaced(4, 4))
    assert changed.verdict != "proved"
    assert "the graph cannot be recorded: it assigns to tensor.data, test_recording.py:" in changed.reason
