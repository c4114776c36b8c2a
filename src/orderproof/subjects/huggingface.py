"""transformers models as subjects: one tensor of token vectors in, a dictionary of tensors out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.driver import Driver
from orderproof.errors import SubjectError, UsageError
from orderproof.subjects import sounds
from orderproof.subjects.beside import Beside
from orderproof.subjects.classes import part_class
from orderproof.subjects.decoding import decoder_of
from orderproof.subjects.driven import PretrainedDriver, answers
from orderproof.subjects.gridded import Gridded, takes_grid
from orderproof.subjects.images import NoTokens, Reading, read_images
from orderproof.subjects.kinds import kind_of, reads_images
from orderproof.subjects.outputs import tensors_of, tokens_ahead
from orderproof.subjects.quieting import plain_branches, transformers_library
from orderproof.subjects.routing import IN_WORDS, is_routed
from orderproof.subjects.stretches import crossing_length, stretches
from orderproof.subjects.subject import Quiet, Sample, Subject, labels, parameters_of, seeded, sizes_of

TABLES = {"position_embeddings", "position_embedding", "embed_positions", "positions_embed", "wpe", "pos_embed"}
ENCODERS = {"t5gemma"}  # encoder-decoders whose encoder is built only where is_encoder_decoder is false
BATCH = 2
VECTORS = ("hidden_states", "query_embeds", "noise_embeds", "inputs")  # what a few models call their token vectors
CODES = 99  # token numbers to draw from where a model has no vocabulary: CANINE reads code points


class Adapter(nn.Module):
    """A transformers model called with its tokens and, where they are named, some extras; its cache off."""

    def __init__(
        self,
        model: Any,
        argument: str,
        *,
        beside: Beside,
        weightless: bool = False,
        extras: tuple[str, ...] = (),
        packed: bool = False,
        patches: int | None = None,
    ) -> None:
        super().__init__()
        self.weightless = weightless  # no values to ask about packing: take the plain branches in every call
        self.model = model
        self.argument = argument
        self.beside = beside
        self.extras = tuple("attention_mask" if name == "block_mask" else name for name in extras)
        self.packed = packed  # position ids may restart: let the library look whether they do
        self.patches = patches
        accepted = inspect.signature(model.forward).parameters
        anything = any(kind.kind is inspect.Parameter.VAR_KEYWORD for kind in accepted.values())
        cached = "use_cache" in accepted or (anything and hasattr(model.config, "use_cache"))
        self.options = {"use_cache": False} if cached else {}
        if "return_dict" in accepted:
            self.options["return_dict"] = True

    def forward(self, tokens: Tensor, *extras: Tensor) -> dict[str, Tensor]:
        """Run the model and keep the outputs that are tensors."""
        more = dict(zip(self.extras, extras, strict=True))
        with plain_branches(self.model, packed=self.packed) if self.weightless else nullcontext():
            outputs = self.model(**{self.argument: tokens}, **self.beside(tokens), **more, **self.options)
        return self.beside.rows_of(tensors_of(outputs, self.patches, ahead=tokens_ahead(self.model.config)), tokens)


def called_with(
    model: Any, argument: str, device: str, beside: Beside, extras: tuple[str, ...], setting: str
) -> tuple[nn.Module, Quiet] | None:
    """The model called with these beside its tokens; None where its forward does not name them."""
    adapter = Adapter(
        model, argument, beside=beside, weightless=device == "meta", extras=extras, packed=setting == "packed"
    )
    accepted = inspect.signature(model.forward).parameters
    if not all(name in accepted for name in adapter.extras):
        return None
    return adapter, partial(plain_branches, adapter, packed=adapter.packed)


def first_position(model: nn.Module) -> int:
    """The position id of the first token: RoBERTa and its kin count from the one behind the padding's.

    Others keep their ids in a buffer, which may start anywhere.
    """
    if (found := _first_in_buffer(model)) > 0:
        return found
    return max(
        (
            part.padding_idx + 1
            for path, part in model.named_modules()
            if path.rpartition(".")[2] in TABLES and _counts_past_padding(part)
        ),
        default=0,
    )


def _first_in_buffer(model: nn.Module) -> int:
    """The first of the ids that a model keeps in a buffer; 0 where it keeps none."""
    kept = (
        ids for path, ids in model.named_buffers()
        if path.endswith("position_ids") and ids.dim() == 2 and ids.device.type != "meta" and ids.numel()
    )  # fmt: skip
    return next((first for ids in kept if (first := int(ids[0, 0])) > 0), 0)


def _is_table(part: Any) -> bool:
    return isinstance(part, nn.Embedding) or type(part).__name__ == "QuantEmbedding"


def _counts_past_padding(part: Any) -> bool:
    """A table with a row for padding; or one that works its rows out, and counts as RoBERTa does."""
    counts = _is_table(part) or hasattr(part, "create_position_ids_from_input_ids")
    return counts and isinstance(getattr(part, "padding_idx", None), int)


def model_class(config: Any) -> Any:
    """The class of the base model of a configuration; of the encoder alone where transformers has one."""
    transformers = transformers_library()
    encoder = config.is_encoder_decoder or config.model_type in ENCODERS
    names = ["AutoModelForTextEncoding", "AutoModel"] if encoder else ["AutoModel"]
    for name in names:
        found = _mapped(getattr(transformers, name)._model_mapping, config)
        if found is not None:
            return found[0] if isinstance(found, (tuple, list)) else found
    if (part := part_class(config)) is not None:
        return part
    raise SubjectError(f"transformers has no base model for {type(config).__name__}")


def _mapped(mapping: Any, config: Any) -> Any:
    """What a mapping of transformers gives for a configuration; None where it gives nothing, or a name in vain."""
    try:
        return mapping.get(type(config), None)
    except ValueError:  # the mapping names a class that the library does not export
        return None


def has_base_model(config: Any) -> bool:
    """Whether transformers lists a base model for a configuration."""
    return type(config) in transformers_library().AutoModel._model_mapping


def has_class(config: Any) -> bool:
    """Whether there is a class that is built from a configuration, or from a part of it."""
    return bool(getattr(config, "sub_configs", {})) or has_base_model(config) or part_class(config) is not None


def wants_a_session(config: Any) -> bool:
    """Whether a model is called with a session, a record of the frames seen so far, and not with data."""
    return has_base_model(config) and "inference_session" in inspect.signature(model_class(config).forward).parameters


def attention_of(chosen: Any, requested: str | None) -> str:
    """The attention backend to use: as requested, else SDPA where the class supports it, else eager."""
    if requested not in (None, "sdpa", "eager"):
        raise UsageError(f"attention must be 'sdpa' or 'eager'; got {requested!r}")
    supported = bool(getattr(chosen, "_supports_sdpa", False))
    if requested == "sdpa" and not supported:
        raise UsageError(f"{chosen.__name__} has no SDPA attention; use attention='eager'")
    return requested or ("sdpa" if supported else "eager")


def integers_of(value: Any) -> set[int]:
    """Every integer in a configuration."""
    if isinstance(value, bool):
        return set()
    if isinstance(value, int):
        return {value}
    if isinstance(value, Mapping):
        return set().union(*(integers_of(item) for item in value.values()))
    if isinstance(value, (list, tuple)):
        return set().union(*(integers_of(item) for item in value))
    return set()


def table_rows(model: nn.Module) -> int | None:
    """The most tokens the position tables of a model have rows for."""
    first = _first_in_buffer(model)
    rows = [
        len(part.weight) - (part.padding_idx + 1 if part.padding_idx is not None else getattr(part, "offset", first))
        for path, part in model.named_modules()
        if path.rpartition(".")[2] in TABLES and _is_table(part)
    ]
    return min(rows, default=None)


def text_part(model: Any, config: Any) -> Any:
    """The part that is audited: the encoder of an encoder-decoder that reads text, else the model itself."""
    if reads_images(type(model)):
        return model
    if config.is_encoder_decoder and callable(getattr(model, "get_encoder", None)):
        encoder = model.get_encoder()
        if not hasattr(encoder, "config"):
            encoder.config = config
        return model if type(model).__name__.endswith("EncoderModel") else encoder
    return model


def use_plain_experts(model: Any) -> bool:
    """Route tokens to experts by plain batched products, which run in every precision; say whether that applied."""
    counts = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    routed = any(getattr(model.config, name, None) for name in counts)
    try:
        if routed and model._can_set_experts_implementation():
            model.set_experts_implementation("batched_mm")
            return True
    except (AttributeError, ValueError, RuntimeError):
        return False
    return False


def subject_of(
    model: Any,
    *,
    name: str,
    detail: str,
    values: Mapping[str, Tensor] | None = None,
    twin: Callable[[], Subject] | None = None,
    own: bool = True,
    numbers: bool = False,
    beside: Sequence[str] = (),
    like: str | None = None,
) -> Subject:
    """Wrap a transformers model as a subject, with random vectors for tokens; only an own one is reconfigured.

    With ``numbers`` the tokens are token numbers, for models that do not run with vectors. Arguments named in
    ``beside`` are given fixed values in every call; ``like`` is where a twin is cut.
    """
    config = model.config
    if own and use_plain_experts(model):
        detail += ", experts batched_mm"
    if is_routed(model):
        detail += f", {IN_WORDS}"
    whole, model = model, text_part(model, config).eval()
    sound = sounds.argument_of(model)
    kind = "audio" if sound else kind_of(config, model, encoder=model is not whole)
    device = "meta" if values is not None else "cpu"
    if takes_grid(type(model)):
        model = Gridded(model).eval()
    fixed = Beside(beside, model.config, model).eval()
    constants = {f"beside.{key}": value for key, value in fixed.named_buffers()} if device == "meta" else {}
    fixed = fixed.to(device)
    reading = (
        read_images(name, model, device, own=own, beside=fixed, like=like)
        if kind == "vision"
        else sounds.read_sound(name, model, sound)
        if sound
        else _read_tokens(name, model, device, numbers)
    )
    detail += reading.words + fixed.words
    rows = table_rows(model) if reading.patches is None else reading.patches
    length, beyond = crossing_length(config, sizes_of(model) | integers_of(config.to_dict()) | {BATCH})
    if sound:
        length = rows = int(reading.draw(0, 0).inputs[0].shape[1])
    elif beyond and reading.patches is None:
        detail += f", {beyond}"
    module = Adapter(model, reading.argument, beside=fixed, weightless=device == "meta", patches=reading.patches).eval()
    return Subject(
        name=name,
        kind=kind,
        module=module,
        token_axes=(1 if reading.patches is None else None,),
        parameters=parameters_of(model),
        layers=layers_of(config),
        length=reading.patches or min(length, rows or length),
        max_length=rows,
        device=device,
        draw=reading.draw,
        values={**{f"model.{key}": value for key, value in (values or {}).items()}, **constants},
        cut=reading.cut,
        rows_only=sounds.ROWS_ONLY if sound else "",
        detail=detail,
        twin=twin,
        takes=None if reading.cut or sound else partial(called_with, model, reading.argument, device, fixed),
        first_position=first_position(model),
        padding=_padding(model.config) if reading.argument == "input_ids" else None,
        quiet=partial(plain_branches, module),
        driver=None
        if device == "meta"
        else partial(
            driver_of,
            model,
            reading,
            fixed,
            kind=kind,
            length=reading.patches or min(length, rows or length),
            longest=rows,
        ),
    )


def layers_of(config: Any) -> int | None:
    """The number of layers a configuration states."""
    text = config.get_text_config()
    for name in ("num_hidden_layers", "encoder_layers", "num_layers", "n_layer", "n_layers"):
        if isinstance(getattr(text, name, None), int):
            return int(getattr(text, name))
    return None


def _read_tokens(name: str, model: Any, device: str, numbers: bool) -> Reading:  # noqa: FBT001
    """Choose token vectors as the input where a model takes them, token numbers where it does not."""
    accepted = inspect.signature(model.forward).parameters
    embeddings = embeddings_of(model) if "inputs_embeds" in accepted and not numbers else None
    if embeddings is not None:
        table = embeddings.weight
        return Reading("inputs_embeds", draw_vectors(table.shape[-1], table.dtype, device))
    width = getattr(model.config, "hidden_size", None)
    tables = any(isinstance(part, nn.Embedding) for part in model.modules())
    bare = "input_ids" not in accepted or (not numbers and not tables)
    if "inputs_embeds" in accepted and bare and isinstance(width, int):
        return Reading("inputs_embeds", draw_vectors(width, model.dtype, device))
    vectors = next((key for key in VECTORS if key in accepted and "input_ids" not in accepted), None)
    width = width if isinstance(width, int) else getattr(model.config, "d_model", None)
    if vectors is not None and isinstance(width, int):
        return Reading(vectors, draw_vectors(width, model.dtype, device))
    vocabulary = getattr(model.config.get_text_config(), "vocab_size", None) or CODES
    if "input_ids" in accepted:
        return Reading("input_ids", draw_numbers(int(vocabulary), device))
    raise NoTokens(
        f"{name}: {type(model).__name__} takes neither inputs_embeds nor input_ids; "
        "wrap it in a module of yours and give example inputs"
    )


def driver_of(model: Any, reading: Reading, beside: Beside, *, kind: str, length: int, longest: int | None) -> Driver:
    """How measured laws call it: with token numbers where it takes them, as its users do."""
    vocabulary = getattr(model.config.get_text_config(), "vocab_size", None)
    made = partial(
        PretrainedDriver, model, beside=beside, kind=kind, length=length, longest=longest,
        first_position=first_position(model), pad=_padding(model.config), patches=reading.patches,
        stretches=tuple(sorted({size for size in stretches(model.config).values() if size < length})),
    )  # fmt: skip
    if "input_ids" in inspect.signature(model.forward).parameters and isinstance(vocabulary, int):
        by_numbers = made("input_ids", draw_numbers(vocabulary, "cpu"))
        if answers(by_numbers):
            return by_numbers
    return made(reading.argument, reading.draw)


def add_decoder(subject: Subject, config: Any, build: Callable[[Any], Any]) -> None:
    """Let the decoder of an encoder-decoder be measured too."""
    draw = draw_numbers(config.get_text_config().vocab_size, "cpu")
    subject.decoder = partial(decoder_of, config, build, draw, length=subject.length, longest=subject.max_length)


def _padding(config: Any) -> int | None:
    """The number of the pad token, where a configuration has one."""
    found = getattr(config.get_text_config(), "pad_token_id", None)
    return found if isinstance(found, int) and found >= 0 else None


def embeddings_of(model: Any) -> Any:
    """The table of token vectors, where a model has a plain one."""
    try:
        embeddings = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):  # FSMT's encoder is a plain module
        return None
    return embeddings if hasattr(embeddings, "weight") else None


def draw_vectors(width: int, dtype: torch.dtype, device: str) -> Callable[[int, int], Sample]:
    """Random token vectors [batch, token, width]."""

    def draw(length: int, seed: int) -> Sample:
        shape = (BATCH, length, width)
        if device == "meta":
            return Sample((torch.empty(shape, dtype=dtype, device="meta"),), labels(length))
        return Sample((torch.randn(shape, generator=seeded(seed)).to(dtype),), labels(length))

    return draw


def draw_numbers(vocabulary: int, device: str) -> Callable[[int, int], Sample]:
    """Random token numbers [batch, token], past the first few, which are often special."""

    def draw(length: int, seed: int) -> Sample:
        numbers = torch.randint(min(8, vocabulary - 1), vocabulary, (BATCH, length), generator=seeded(seed))
        return Sample((numbers.to(device),), tuple(str(int(number)) for number in numbers[0]))

    return draw
