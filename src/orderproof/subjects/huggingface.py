"""transformers models as subjects: one tensor of token vectors in, a dictionary of tensors out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from torch import Tensor, nn

from orderproof.driver import Driver
from orderproof.subjects import sounds
from orderproof.subjects.beside import Beside
from orderproof.subjects.decoding import decoder_of
from orderproof.subjects.driven import PretrainedDriver, answers
from orderproof.subjects.gridded import Gridded, takes_grid
from orderproof.subjects.images import NoTokens, Reading, read_images
from orderproof.subjects.kinds import kind_of, reads_images
from orderproof.subjects.outputs import tensors_of, tokens_ahead
from orderproof.subjects.quieting import plain_branches
from orderproof.subjects.routing import IN_WORDS, is_routed
from orderproof.subjects.stretches import crossing_length, stretches
from orderproof.subjects.subject import Quiet, Subject, parameters_of, sizes_of
from orderproof.subjects.tables import first_position, table_rows
from orderproof.subjects.tokens import BATCH, draw_numbers, draw_vectors, embeddings_of

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
