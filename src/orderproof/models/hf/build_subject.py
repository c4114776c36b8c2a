"""Build a `Subject` from a transformers model: one tensor of tokens in, a dictionary of tensors out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from torch import Tensor, nn

from orderproof.adapter import ModelAdapter
from orderproof.models import audio
from orderproof.models.hf.adapter import HFAdapter, can_be_called
from orderproof.models.hf.assumptions import Assumptions
from orderproof.models.hf.context_spans import default_proof_length
from orderproof.models.hf.decoder_adapter import build_decoder_adapter
from orderproof.models.hf.describe import ModelDescription, describe
from orderproof.models.hf.effective_config import effective_config
from orderproof.models.hf.export_patches import eager_branches
from orderproof.models.hf.extra_inputs import ExtraInputs
from orderproof.models.hf.model_kind import is_vision_model
from orderproof.models.hf.moe_rewrites import REWRITE_NOTE, needs_moe_rewrite
from orderproof.models.hf.outputs import audited_outputs, prefix_token_count
from orderproof.models.hf.token_inputs import embedding_sampler, input_embeddings, token_id_sampler
from orderproof.models.input_spec import InputSpec, NoTokenInputError
from orderproof.models.sample import BATCH_SIZE
from orderproof.models.subject import ExportContext, Subject, count_parameters, tensor_sizes
from orderproof.models.vision.patch_embedding import image_input
from orderproof.models.vision.patch_grid import FixedGridModel, takes_patch_grid
from orderproof.recording.recording import is_recording

EMBEDDING_ARGUMENTS = ("hidden_states", "query_embeds", "noise_embeds", "inputs")  # other names of inputs_embeds
DEFAULT_VOCAB_SIZE = 99  # token ids to draw from for a model without a vocabulary: CANINE reads code points
EXPERT_COUNT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


class TokenInputModule(nn.Module):
    """A transformers model called with its tokens and fixed extra inputs, without a cache."""

    def __init__(
        self,
        model: Any,
        argument: str,
        description: ModelDescription,
        extra_inputs: ExtraInputs,
        *,
        on_meta: bool = False,
        keyword_names: tuple[str, ...] = (),
        packed: bool = False,
        patch_count: int | None = None,
        is_given: bool = True,
    ) -> None:
        super().__init__()
        self.on_meta = on_meta  # values cannot be read, except in a recording: take the plain branches
        self.model = model
        self.argument = argument
        self.extra_inputs = extra_inputs
        self.keyword_names = tuple("attention_mask" if name == "block_mask" else name for name in keyword_names)
        self.packed = packed  # position ids may restart: transformers looks for packed documents
        self.patch_count = patch_count
        self.is_given = is_given
        accepted = description.forward_arguments
        has_cache = "use_cache" in accepted or (description.accepts_kwargs and hasattr(model.config, "use_cache"))
        self.options = {"use_cache": False} if has_cache else {}
        if "return_dict" in accepted:
            self.options["return_dict"] = True

    def as_traced(self) -> AbstractContextManager[None]:
        """The branches of an eager call, for recordings: see `eager_branches`."""
        return eager_branches(self, is_given=self.is_given, packed=self.packed)

    def forward(self, tokens: Tensor, *extras: Tensor) -> dict[str, Tensor]:
        """The audited outputs by name; ``extras`` are passed under `keyword_names`."""
        keywords = dict(zip(self.keyword_names, extras, strict=True))
        unreadable = self.on_meta and not is_recording()
        with self.as_traced() if unreadable else nullcontext():
            outputs = self.model(**{self.argument: tokens}, **self.extra_inputs(tokens), **keywords, **self.options)
        prefix = prefix_token_count(self.model.config)
        return self.extra_inputs.text_outputs(audited_outputs(outputs, self.patch_count, prefix=prefix), tokens)


def bind_inputs(
    unbound: TokenInputModule, description: ModelDescription, names: tuple[str, ...], setting: str
) -> tuple[nn.Module, ExportContext] | None:
    """The model called with more inputs; None if its forward does not name them. See `Subject.bind_inputs`."""
    module = TokenInputModule(
        unbound.model, unbound.argument, description, unbound.extra_inputs, on_meta=unbound.on_meta,
        keyword_names=names, packed=setting == "packed", is_given=unbound.is_given,
    )  # fmt: skip
    if not description.forward_arguments.issuperset(module.keyword_names):
        return None
    return module, module.as_traced


def config_integers(value: Any) -> set[int]:
    """Every integer in a configuration."""
    if isinstance(value, bool):
        return set()
    if isinstance(value, int):
        return {value}
    if isinstance(value, Mapping):
        return set().union(*(config_integers(item) for item in value.values()))
    if isinstance(value, (list, tuple)):
        return set().union(*(config_integers(item) for item in value))
    return set()


def audited_module(model: Any, config: Any) -> Any:
    """The component that is audited: the encoder of an encoder-decoder of text, else the model itself."""
    if is_vision_model(type(model)):
        return model
    if config.is_encoder_decoder and callable(getattr(model, "get_encoder", None)):
        encoder = model.get_encoder()
        if not hasattr(encoder, "config"):
            encoder.config = config
        return model if type(model).__name__.endswith("EncoderModel") else encoder
    return model


def use_batched_experts(model: Any) -> str:
    """Compute experts by batched products, which run in every precision; a text for the load summary."""
    if not any(getattr(model.config, key, None) for key in EXPERT_COUNT_KEYS):
        return ""
    try:
        if model._can_set_experts_implementation():
            model.set_experts_implementation("batched_mm")
            return ", experts batched_mm"
    except (AttributeError, ValueError, RuntimeError):  # the model keeps its own implementation
        return ""
    return ""


def build_subject(
    model: Any,
    *,
    name: str,
    load_summary: str,
    buffer_values: Mapping[str, Tensor] | None = None,
    build_tiny_twin: Callable[[], Subject] | None = None,
    may_modify: bool = True,
    use_embeddings: bool = False,
    extra_input_names: Sequence[str] = (),
    patch_embedding_path: str | None = None,
    notes: Sequence[str] = (),
    assume: Assumptions | None = None,
) -> Subject:
    """The subject of a transformers model, which draws random token ids where the model takes them.

    Args:
        model: The model in eval mode.
        name: Its name in messages and reports.
        load_summary: Backend, precision and source of the weights.
        buffer_values: On the meta device, the values of the buffers; None on the CPU.
        build_tiny_twin: On the meta device, builds a tiny model of the same class.
        may_modify: The model was built for the audit and may be reconfigured.
        use_embeddings: Draw token embeddings, for models that do not run with token ids.
        extra_input_names: Arguments that get a fixed value in every call.
        patch_embedding_path: The patch embedding found in the tiny twin of an image model.
        notes: Notes for the report.
        assume: Values that replace inferred ones, see `describe`.

    Raises:
        NoTokenInputError: The model does not read a sequence of tokens.
        SubjectError: It cannot be called.
        UsageError: ``assume`` has an unknown name or a value of the wrong type.

    """
    config = model.config
    if may_modify:
        load_summary += use_batched_experts(model)
        load_summary += f", {REWRITE_NOTE}" if needs_moe_rewrite(model) else ""
    whole, model = model, audited_module(model, config).eval()
    is_part = model is not whole
    part = f"the encoder of {type(whole).__name__}" if is_part else ""
    if is_part:
        notes = (*notes, f"proofs cover {part}, not its decoder")
    if takes_patch_grid(type(model)):
        model = FixedGridModel(model).eval()
    description = describe(model, config=config, encoder=is_part, assume=assume)
    on_meta, is_audio = buffer_values is not None, description.audio_argument is not None
    device = "meta" if on_meta else "cpu"
    extra_inputs = ExtraInputs(extra_input_names, model.config, model).eval()
    constants = {f"extra_inputs.{key}": value for key, value in extra_inputs.named_buffers()} if on_meta else {}
    extra_inputs = extra_inputs.to(device)
    if description.audio_argument is not None:
        tokens = audio.audio_input(name, model, description.audio_argument)
    elif description.model_kind == "vision":
        tokens = image_input(
            name, model, device, may_modify=may_modify, extra_inputs=extra_inputs, known_path=patch_embedding_path
        )
    else:
        tokens = _token_input(name, model, description, device, use_embeddings=use_embeddings)
    load_summary += tokens.summary + extra_inputs.summary
    length, max_length, not_crossed = _lengths(model, config, description, tokens)
    load_summary += f", {not_crossed}" if not_crossed else ""
    module = TokenInputModule(
        model, tokens.argument, description, extra_inputs, on_meta=on_meta, patch_count=tokens.patch_count,
        is_given=not may_modify,
    ).eval()  # fmt: skip
    bind = None
    if tokens.patch_embedding_path is None and not is_audio:
        bind = partial(bind_inputs, module, description)
    return Subject(
        name=name,
        model_kind=description.model_kind,
        module=module,
        token_axes=(1 if tokens.patch_count is None else None,),
        parameter_count=count_parameters(model),
        layer_count=description.layer_count,
        default_length=length,
        max_length=max_length,
        device=device,
        draw=tokens.draw,
        buffer_values={**{f"model.{key}": value for key, value in (buffer_values or {}).items()}, **constants},
        patch_embedding_path=tokens.patch_embedding_path,
        whole_rows_reason=audio.WHOLE_ROWS_REASON if is_audio else "",
        load_summary=load_summary,
        part=part,
        notes=(*notes, *description.notes),
        configuration=effective_config(model),
        build_tiny_twin=build_tiny_twin,
        bind_inputs=bind,
        first_position=description.first_position_id,
        pad_token_id=description.pad_token_id if tokens.argument == "input_ids" else None,
        export_context=module.as_traced,
        build_adapter=None if on_meta else partial(
            build_adapter, model, description, tokens, extra_inputs, length=length, max_positions=max_length
        ),
    )  # fmt: skip


def _lengths(model: Any, config: Any, description: ModelDescription, tokens: InputSpec) -> tuple[int, int | None, str]:
    """The default and the largest number of tokens, and the spans of the model that the default does not cross."""
    if description.audio_argument is not None:
        length = int(tokens.draw(0, 0).inputs[0].shape[1])
        return length, length, ""
    if tokens.patch_count is not None:
        return tokens.patch_count, tokens.patch_count, ""
    sizes = tensor_sizes(model) | config_integers(config.to_dict()) | {BATCH_SIZE}
    length, not_crossed = default_proof_length(config, sizes)
    max_length = description.position_table_size
    return min(length, max_length or length), max_length, not_crossed


def _token_input(
    name: str, model: Any, description: ModelDescription, device: str, *, use_embeddings: bool
) -> InputSpec:
    """Token ids where a model takes them, as its users call it, else token embeddings."""
    accepted = description.forward_arguments
    takes_embeddings = "inputs_embeds" in accepted
    embeddings = input_embeddings(model) if takes_embeddings else None
    takes_ids = "input_ids" in accepted or (description.accepts_kwargs and embeddings is not None)
    if takes_ids and not (takes_embeddings and use_embeddings):
        vocab_size = description.vocab_size or (DEFAULT_VOCAB_SIZE if embeddings is None else len(embeddings.weight))
        return InputSpec("input_ids", token_id_sampler(vocab_size, device))
    if embeddings is not None:
        table = embeddings.weight
        return InputSpec("inputs_embeds", embedding_sampler(table.shape[-1], table.dtype, device))
    width = getattr(model.config, "hidden_size", None)
    if takes_embeddings and isinstance(width, int):
        return InputSpec("inputs_embeds", embedding_sampler(width, model.dtype, device))
    argument = next((key for key in EMBEDDING_ARGUMENTS if key in accepted and "input_ids" not in accepted), None)
    width = width if isinstance(width, int) else getattr(model.config, "d_model", None)
    if argument is not None and isinstance(width, int):
        return InputSpec(argument, embedding_sampler(width, model.dtype, device))
    raise NoTokenInputError(
        f"{name}: {description.class_name} takes neither inputs_embeds nor input_ids; "
        "wrap it in a module of yours and give example inputs"
    )


def build_adapter(
    model: Any, description: ModelDescription, tokens: InputSpec, extra_inputs: ExtraInputs, *, length: int,
    max_positions: int | None,
) -> ModelAdapter:  # fmt: skip
    """The adapter for measured laws: it passes token ids where the model takes them, as users do."""
    make = partial(HFAdapter, model, description, extra_inputs=extra_inputs, length=length, max_positions=max_positions)
    if "input_ids" in description.forward_arguments and description.vocab_size is not None:
        token_ids = token_id_sampler(description.vocab_size, "cpu")
        with_ids = make(InputSpec("input_ids", token_ids, patch_count=tokens.patch_count))
        if can_be_called(with_ids):
            return with_ids
    return make(tokens)


def attach_decoder_adapter(subject: Subject, config: Any, build: Callable[[Any], Any]) -> None:
    """Let the decoder of an encoder-decoder be measured too; ``build`` builds the whole model from its class."""
    draw = token_id_sampler(config.get_text_config().vocab_size, "cpu")
    subject.build_decoder_adapter = partial(
        build_decoder_adapter, config, build, draw, length=subject.default_length, max_positions=subject.max_length
    )
