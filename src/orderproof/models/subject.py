"""The model under audit: a module, its inputs, and the axes of its tokens.

A `Subject` is all that the prover and the laws know of a model, whether it was loaded from a folder, built from an
architecture or passed as a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orderproof.errors import UsageError
from orderproof.models.sample import Sample
from orderproof.records.input_role import InputRole

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orderproof.adapter import ModelAdapter
    from orderproof.models.axes import OutputAxes
    from orderproof.models.hf.tokenizer import SentenceTokenizer

Axis = int | tuple[int, ...] | None  # the token axis of an input; both axes of a mask
MIN_DEFAULT_LENGTH = 7  # least default length [tokens]: a transposition, a cycle and a document boundary differ in it

ExportContext = Callable[[], AbstractContextManager[object]]


@dataclass
class Subject:
    """A model in the mode to audit, which is eval mode unless the user states another, ready to be traced.

    Attributes:
        name: Its name in messages and reports.
        model_kind: "encoder", "causal_lm", "vision", "audio", "module" or "encoding".
        module: forward(*inputs) returns dict[str, Tensor]; the forward of a plain module returns anything.
        token_axes: The token axis of each input.
        parameter_count: Number of parameters, shared ones counted once.
        layer_count: Number of layers, if the configuration states it.
        default_length: Default length of proofs [tokens]: a prime that is no other size of the model.
        max_length: Most tokens that the position table or the example inputs allow, if there is a limit.
        device: "cpu" or "meta".
        draw: (length, seed) -> inputs.
        buffer_values: On the meta device, the values of the buffers.
        patch_embedding_path: Vision: the submodule whose output [batch, patch, width] is the input of proofs.
        load_summary: How it was loaded: backend, precision, source of the weights.
        part: The part of the model that is audited, if it is not the whole.
        notes: Inferences that narrow the audit, one line each; they go into the report.
        build_tiny_twin: On the meta device: builds a tiny random model of the same class on the CPU.
        export_context: The context manager entered around tracing.
        bind_inputs: (names, setting) -> the module that takes these inputs (attention_mask, position_ids, block_mask)
            after its own, and the context manager for tracing it; None if the module does not take them.
        whole_rows_reason: Why only laws of whole rows of the batch apply, if its input has no tokens.
        packs_documents: Its one row has two packed documents, whose places are an input of its own.
        takes_documents: It takes packed documents: an input of its own says where they are.
        packed_names: The inputs, as `bind_inputs` names them, that give each row two packed documents.
        single_row: It takes one row only.
        wrapped_path: Path of the model within wrapper modules of this package.
        first_position: The position id of the first token.
        pad_token_id: The token id of pads, if tokens are ids.
        encode_sentence: A sentence -> inputs with a batch of one.
        tokenizer: The tokenizer of its folder.
        build_adapter: Builds the adapter that calls it in measured laws.
        configuration: The values of its configuration that differ from the default, as text.
        original_config: The configuration that a transformers model was built from, before the model changed it.
        build_decoder_adapter: The same for the decoder of an encoder-decoder.
        output_axes: The axes of each output, its rows first; None if they are found by calls of the audit.
        axes_text: The axes of each input and output in one line, as the module has them.
        mode: The mode of the module as an assumption, if its call computes something else in the other mode.
        draws_random_numbers: A call in train mode draws random numbers; runs of other shapes draw others.
        input_roles: The role of each input and how it is known, for the report.
        inputs_left_out: Names of inputs of a plain module that have a default value and are not in its example.
        other_sequences: By the name of an input that is a sequence with a padding mask of its own, the same model with
            the tokens of that input.
        row_inputs: The first axis of each input runs over rows; None: that of inputs with tokens along another axis.

    """

    name: str
    model_kind: str
    module: nn.Module = field(repr=False)
    token_axes: tuple[Axis, ...]
    parameter_count: int
    layer_count: int | None
    default_length: int
    max_length: int | None
    device: str
    draw: Callable[[int, int], Sample] = field(repr=False)
    buffer_values: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    patch_embedding_path: str | None = None
    load_summary: str = ""
    build_tiny_twin: Callable[[], Subject] | None = field(default=None, repr=False)
    export_context: ExportContext = field(default=nullcontext, repr=False)
    bind_inputs: Callable[[tuple[str, ...], str], tuple[nn.Module, ExportContext] | None] | None = field(
        default=None, repr=False
    )
    whole_rows_reason: str = ""
    packs_documents: bool = False
    takes_documents: bool = False
    packed_names: tuple[str, ...] = ()
    single_row: bool = False
    wrapped_path: str = ""
    first_position: int = 0
    pad_token_id: int | None = None
    encode_sentence: Callable[[str], Sample] | None = field(default=None, repr=False)
    tokenizer: SentenceTokenizer | None = field(default=None, repr=False)
    build_adapter: Callable[[], ModelAdapter] | None = field(default=None, repr=False)
    build_decoder_adapter: Callable[[], ModelAdapter] | None = field(default=None, repr=False)
    part: str = ""
    notes: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict, repr=False)
    original_config: Any = field(default=None, repr=False)
    output_axes: Mapping[str, OutputAxes] | None = field(default=None, repr=False)
    axes_text: Mapping[str, str] = field(default_factory=dict, repr=False)
    other_sequences: Mapping[str, Subject] = field(default_factory=dict, repr=False)
    row_inputs: tuple[bool, ...] | None = field(default=None, repr=False)
    mode: str = ""
    draws_random_numbers: bool = False
    input_roles: tuple[InputRole, ...] = field(default=(), repr=False)
    inputs_left_out: tuple[str, ...] = ()

    @property
    def part_and_name(self) -> str:
        """The model that a certificate is about: `the encoder of T5Model in arch:t5`, or the name alone."""
        return f"{self.part} in {self.name}" if self.part else self.name

    @property
    def token_input(self) -> int:
        """The place of the first input with tokens; 0 if there is none."""
        return next((place for place, axis in enumerate(self.token_axes) if axis is not None), 0)

    @property
    def starts_with_rows(self) -> bool:
        """True if its input has rows and no tokens: an image, or audio."""
        return self.patch_embedding_path is not None or bool(self.whole_rows_reason)

    def sample(self, length: int, seed: int = 0) -> Sample:
        """Random inputs with this many tokens, determined by the seed. Raises `UsageError` for other lengths."""
        if length < 1:
            raise UsageError(f"{self.name}: length must be at least 1; got {length}")
        if self.max_length is not None and length > self.max_length:
            raise UsageError(
                f"{self.name}: length must be at most {self.max_length}, "
                f"as its position table or its example inputs allow no more; got {length}"
            )
        return self.draw(length, seed)


def prime_length(minimum: int, avoid: Iterable[int]) -> int:
    """The first prime >= ``minimum`` that is not in ``avoid``, so that no other axis has the size of the token axis."""
    avoided = set(avoid)
    candidate = max(minimum, 2)
    while candidate in avoided or any(candidate % factor == 0 for factor in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def tensor_sizes(module: nn.Module) -> set[int]:
    """Every size of every parameter and buffer; those of lazy modules have none before their first call."""
    from torch.nn.parameter import is_lazy

    tensors = [x for x in (*module.parameters(), *module.buffers()) if not is_lazy(x)]
    return {size for tensor in tensors for size in tensor.shape}


def count_parameters(module: nn.Module) -> int:
    """The number of parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in module.parameters())
