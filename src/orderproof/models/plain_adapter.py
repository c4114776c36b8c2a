"""Calls of plain modules for measured laws: one input of tokens, and the arguments that their forward names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.blocks import Decoder, Transformer
from orderproof.blocks.transformer_adapter import TransformerAdapter
from orderproof.errors import SubjectError, UnsupportedCallError
from orderproof.models.module_thresholds import module_thresholds
from orderproof.models.named_arguments import NamedArguments
from orderproof.models.sample import BATCH_SIZE, Sample, token_labels
from orderproof.models.subject import Subject, count_parameters, prime_length, tensor_sizes
from orderproof.models.trial_call import check_trial_call


class PlainModuleAdapter(ModelAdapter):
    """A module with one input [row, token, ...]."""

    output_name = "output"

    def __init__(self, subject: Subject, arguments: NamedArguments) -> None:
        self.module = subject.module
        self.subject = subject
        self.default_length, self.max_positions = subject.default_length, subject.max_length
        self.thresholds = module_thresholds(subject.module)
        self.causal = subject.model_kind == "causal_lm"
        self.arguments = arguments
        self.supported_inputs = frozenset(
            {*["mask"] * (arguments.mask is not None), *["positions"] * (arguments.position_ids is not None)}
        )

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        samples: list[Tensor] = []
        while sum(map(len, samples)) < rows:
            samples.append(self.subject.sample(tokens, seed + 1000 * len(samples)).inputs[0])
        return torch.cat(samples)[:rows]

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> ModelOutput:  # fmt: skip
        arguments = {}
        if mask is not None and self.arguments.mask is not None:
            arguments[self.arguments.mask.name] = self.arguments.mask.value(mask.long())
        if positions is not None and self.arguments.position_ids is not None:
            arguments[self.arguments.position_ids] = positions
        return ModelOutput(_first_tensor(self.module(tokens, **arguments)))


def _first_tensor(output: Any) -> Tensor:
    """The first tensor in the output of a module. Raises `UnsupportedCallError`."""
    if isinstance(output, Tensor):
        return output
    leaves = output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ()
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            return leaf
    raise UnsupportedCallError(f"expected a tensor as its output, got {type(output).__name__}")


def build_adapter(subject: Subject, original: nn.Module, arguments: NamedArguments) -> ModelAdapter:
    """The adapter of a plain module, which has these named arguments. Raises `UnsupportedCallError`."""
    if isinstance(original, Transformer):
        vocab_size = None if original.embedding is None else original.embedding.num_embeddings
        causal = isinstance(original.stack, Decoder)
        return TransformerAdapter(original, causal=causal, length=subject.default_length, vocabulary=vocab_size)
    if subject.token_axes != (1,):
        raise UnsupportedCallError("it is not called with a single input [row, token, ...]")
    return PlainModuleAdapter(subject, arguments)


def from_adapter(adapter: ModelAdapter, name: str | None = None) -> Subject:
    """The subject of an adapter: measured through it, and proved for its plain call. Raises `SubjectError`."""
    module = adapter.module
    if not isinstance(module, nn.Module):
        raise SubjectError(f"adapter: expected its module to be a torch.nn.Module, got {type(module).__name__}")
    module.eval()
    kind = "causal_lm" if adapter.causal else "module"

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
