"""Calls of plain modules for measured laws, with the inputs and the arguments that their forward names."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.errors import SubjectError, UnsupportedCallError, UsageError
from orderproof.models.module_thresholds import module_thresholds
from orderproof.models.roles.example_roles import ExampleRoles
from orderproof.models.roles.input_packing import InputPacking, float_dtype
from orderproof.models.roles.named_arguments import NamedArguments
from orderproof.models.roles.packed_documents import DocumentInput
from orderproof.models.roles.position_argument import PositionArgument
from orderproof.models.row_counts import SEED_STEP, inputs_with_rows
from orderproof.models.sample import BATCH_SIZE, Sample, token_labels
from orderproof.models.subject import Subject, count_parameters, prime_length, tensor_sizes
from orderproof.models.trial_call import check_trial_call
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.restored_state import restored_state


class PlainModuleAdapter(ModelAdapter):
    """A module with any number of inputs, of which one has tokens and the others accompany it or its rows."""

    output_name = "output"

    def __init__(self, subject: Subject, arguments: NamedArguments, roles: ExampleRoles) -> None:
        self.module = subject.module
        self.subject = subject
        self.default_length, self.max_positions = subject.default_length, subject.max_length
        self.thresholds = module_thresholds(subject.module)
        self.causal = subject.model_kind == "causal_lm"
        self.arguments = arguments
        self.roles = roles
        example = subject.sample(subject.default_length).inputs
        self.packing = InputPacking(example, inputs_with_rows(subject), subject.token_axes)
        self.batch_size = BATCH_SIZE if self.packing.has_rows and not subject.single_row else 1
        ids = arguments.position_ids
        positions = ids is not None and not subject.packs_documents and not ids.separates  # they say more than a place
        self.marks_pads_by_id = arguments.pads is not None
        has_mask = arguments.mask is not None or self.marks_pads_by_id
        inputs = {"mask": has_mask, "positions": positions, "documents": subject.takes_documents}
        self.supported_inputs = frozenset(name for name, is_taken in inputs.items() if is_taken)
        self.right_padding_only = arguments.mask is not None and arguments.mask.right_only
        ends = (axes.ends for axes in (subject.output_axes or {}).values() if axes.ends is not None)
        self.config_max_positions = min(ends, default=None)
        self.padded_sides = roles.padded_sides if arguments.pads is None else arguments.pads.sides
        self.usual_sides = frozenset({"left"} if self.causal and arguments.mask is not None else ())
        self.chosen_output = ""  # the first with tokens, else the first
        self.has_pooled_output = bool(self._pooled) and not any(
            len(axes.tokens) == 1 for axes in (subject.output_axes or {}).values()
        )
        outputs = (subject.output_axes or {}).values()
        if outputs and all(axes.row is None and not axes.unknown_rows for axes in outputs):
            self.no_output_rows = "its output has no axis of rows"
        elif outputs and all(axes.pairs_rows for axes in outputs):
            self.no_output_rows = "its output has two axes of rows, as scores of each row with each"
        if arguments.position_ids is not None:
            self.first_position_id = arguments.position_ids.first

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        drawn = self._drawn(rows, tokens, seed)
        if self.packing.is_single:
            return drawn[0]
        first = next(place for place, axis in enumerate(self.subject.token_axes) if axis is not None)
        companions = self._drawn(rows, tokens, 0)  # the same for all tokens that are drawn
        return self.packing.pack((*companions[:first], drawn[first], *companions[first + 1 :]))

    def sample_other_call(self, rows: int, tokens: int, seed: int) -> Tensor:
        """Other values of the inputs; one without tokens is that of another row, since only its examples are known."""
        drawn = zip(self._drawn(rows, tokens, seed), self.packing.parts, strict=True)
        return self.packing.pack(tuple(x.roll(1, 0) if p.token is None and p.row == 0 else x for x, p in drawn))

    def _drawn(self, rows: int, tokens: int, seed: int) -> tuple[Tensor, ...]:
        """The inputs with a number of rows, where they have rows."""
        samples = [self._sample(tokens, seed)]
        has_rows = inputs_with_rows(self.subject)
        if not any(has_rows) or self.subject.single_row:
            return samples[0]
        place = has_rows.index(True)
        while sum(len(inputs[place]) for inputs in samples) < rows:
            samples.append(self._sample(tokens, seed + SEED_STEP * len(samples)))
        return tuple(
            torch.cat([inputs[k] for inputs in samples])[:rows] if has else samples[0][k]
            for k, has in enumerate(has_rows)
        )

    def _sample(self, tokens: int, seed: int) -> tuple[Tensor, ...]:
        """The inputs of a call, in which no real token has the id of pads."""
        inputs, pads = self.subject.sample(tokens, seed).inputs, self.arguments.pads
        if pads is None:
            return inputs
        ids = inputs[pads.place]
        return pads.without_pads(inputs, next(int(x) for x in (ids.max(), ids.min(), pads.id == 0) if x != pads.id))

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None, documents: Sequence[int] | None = None,
    ) -> ModelOutput:  # fmt: skip
        if not self.packing.has_rows and len(tokens) != 1:
            raise UnsupportedCallError(f"its inputs have no axis of rows; it cannot be called with {len(tokens)} rows")
        if self.subject.single_row and len(tokens) > 1:
            each = (
                self.call(
                    tokens[row], positions=None if positions is None else positions[row],
                    mask=None if mask is None else mask[row], documents=documents,
                ).output for row in map(slice, range(len(tokens)), range(1, len(tokens) + 1))
            )  # fmt: skip
            return ModelOutput(torch.cat(list(each)))
        arguments: dict[str, Any] = {}
        if mask is not None and self.arguments.mask is not None:
            self.arguments.mask.check(mask)
            arguments[self.arguments.mask.name] = self.arguments.mask.value(mask.long())
        if positions is not None and self.arguments.position_ids is not None:
            arguments[self.arguments.position_ids.name] = self.arguments.position_ids.value(positions)
        floats = float_dtype(self.module)
        if documents is not None:
            arguments |= self._documents(documents, tokens, floats)
        inputs = self.packing.unpack(tokens, floats)
        if mask is not None and self.arguments.pads is not None:
            inputs = self.arguments.pads.filled(inputs, mask)
        return ModelOutput(self._output(self.module(*inputs, **arguments), tokens.shape[1]))

    def _documents(self, lengths: Sequence[int], tokens: Tensor, floats: torch.dtype | None) -> dict[str, Any]:
        """The arguments that say where packed documents are; position ids count from the first in each."""
        found: dict[str, Any] = {}
        for place, each in self.roles.computed.items():
            if isinstance(each, DocumentInput | PositionArgument):
                value: Any = each.for_documents(lengths, len(tokens), tokens.device)
                is_float = isinstance(value, Tensor) and value.is_floating_point()
                found[self.roles.names[place]] = value.to(floats) if is_float and floats is not None else value
        return found

    @cached_property
    def _pooled(self) -> tuple[str, ...]:
        """The names of the outputs that have rows, no tokens, and numbers that change with the tokens."""
        known = (self.subject.output_axes or {}).items()
        names = [name for name, axes in known if axes.row == 0 and not axes.tokens and not axes.unknown_tokens]
        if not names:
            return ()
        with torch.no_grad(), restored_state(self.module):
            one, other = (
                leaves_by_name(self.module(*self.subject.sample(self.default_length, k).inputs)) for k in (0, 1)
            )
        return tuple(x for x in names if one[x].is_floating_point() and not torch.equal(one[x], other.get(x, one[x])))

    def pooled_outputs(self) -> Iterator[tuple[str, Self]]:
        for name in self._pooled:
            adapter = copy.copy(self)
            adapter.chosen_output, adapter.has_pooled_output = name, True
            yield name, adapter

    def _output(self, result: Any, tokens: int) -> Tensor:
        """The first output with tokens as [row, token, ...], else the first. Raises `UnsupportedCallError`."""
        known = self.subject.output_axes or {}
        found = {name: x for name, x in leaves_by_name(result).items() if isinstance(x, Tensor)}
        if not found:
            raise UnsupportedCallError(f"expected a tensor as its output, got {type(result).__name__}")
        by_tokens = (name for name in found if name in known and len(known[name].tokens) == 1)
        name = self.chosen_output or next(by_tokens, next(iter(found)))
        if name not in found:
            raise UnsupportedCallError(f"a call gives no output {name!r}")
        output, axes = found[name], known.get(name)
        if axes is None or len(axes.tokens) != 1:
            return output
        run = axes.tokens[0]
        output = output.narrow(run.axis, run.before or 0, tokens) if run.extra else output
        if axes.row is None:
            return output.movedim(run.axis, 0).unsqueeze(0)
        return output.movedim(run.axis, 1) if run.axis > 1 else output


def build_adapter(
    subject: Subject, original: nn.Module, arguments: NamedArguments, roles: ExampleRoles
) -> ModelAdapter:
    """The adapter of a plain module, which has these named arguments and inputs of these roles."""
    blocks = sys.modules.get("orderproof.blocks")  # imported where the module is of them
    if blocks is not None and isinstance(original, blocks.Transformer):
        from orderproof.blocks.transformer_adapter import TransformerAdapter

        vocab_size = None if original.embedding is None else original.embedding.num_embeddings
        causal = isinstance(original.stack, blocks.Decoder)
        return TransformerAdapter(original, causal=causal, length=subject.default_length, vocabulary=vocab_size)
    if roles.cache is not None:
        from orderproof.models.caches.adapter import CachedModuleAdapter

        return CachedModuleAdapter(subject, arguments, roles, roles.cache)
    return PlainModuleAdapter(subject, arguments, roles)


def from_adapter(adapter: ModelAdapter, name: str | None = None, kind: str | None = None) -> Subject:
    """The subject of an adapter: measured through it, and proved for its plain call.

    ``kind`` is what a user states of it. Raises `SubjectError`, and `UsageError` if the adapter states another kind.
    """
    module = adapter.module
    if not isinstance(module, nn.Module):
        raise SubjectError(f"adapter: expected its module to be a torch.nn.Module, got {type(module).__name__}")
    module.eval()
    if kind is not None and (kind == "causal_lm") != adapter.causal:
        raise UsageError(
            f"{name or type(module).__name__}: expected the kind that the adapter states, causal = {adapter.causal}; "
            f"got {'decoder' if kind == 'causal_lm' else kind}; leave --as out, or set causal in its class"
        )
    kind = kind or ("causal_lm" if adapter.causal else "module")

    def draw(tokens: int, seed: int) -> Sample:
        return Sample((adapter.sample_tokens(BATCH_SIZE, tokens, seed),), token_labels(tokens))

    subject = Subject(
        name=name or type(module).__name__, model_kind=kind, module=_AdapterCall(adapter), token_axes=(1,),
        parameter_count=count_parameters(module), layer_count=None,
        default_length=prime_length(adapter.default_length, tensor_sizes(module) | {BATCH_SIZE}),
        max_length=adapter.max_positions, device="cpu", draw=draw,
        load_summary=f"as {type(adapter).__name__} calls it", build_adapter=lambda: adapter, wrapped_path="module",
    )  # fmt: skip
    check_trial_call(subject.name, subject.module, lambda: subject.module(*draw(adapter.default_length, 0).inputs))
    return subject


class _AdapterCall(nn.Module):
    """The plain call of an adapter as a module."""

    def __init__(self, adapter: ModelAdapter) -> None:
        super().__init__()
        self.module = adapter.module
        self.adapter = adapter

    def forward(self, tokens: Tensor) -> Tensor:
        """The output of the plain call."""
        return self.adapter.call(tokens, keep=False).output
