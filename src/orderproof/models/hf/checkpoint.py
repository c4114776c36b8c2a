"""Load a checkpoint: config.json, safetensors and, if present, a tokenizer; an adapter, or a GGUF file.

Nothing in the folder is executed: no pickle is opened, no `auto_map` code is imported. Every weight of the model must
be in the checkpoint, because a missing one would silently be random.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import torch

from orderproof.checkpoint_forms import CONFIG_FILE
from orderproof.errors import CheckpointError, OrderproofError, first_line
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf import build_subject
from orderproof.models.hf.architectures import known_architectures
from orderproof.models.hf.assumptions import Assumptions
from orderproof.models.hf.decoder_adapter import has_text_decoder
from orderproof.models.hf.export_patches import transformers_library
from orderproof.models.hf.model_class import model_class, select_attention_backend
from orderproof.models.hf.probe import probe_subject
from orderproof.models.hf.token_inputs import input_embeddings
from orderproof.models.hf.tokenizer import load_tokenizer
from orderproof.models.hf.weight_source import WeightSource
from orderproof.models.subject import Subject
from orderproof.recording.late_dynamo import late_dynamo
from orderproof.registry import did_you_mean
from orderproof.subject_spec import PICKLE_SUFFIXES, WEIGHTS_FILE, check_folder

INDEX_FILE = "model.safetensors.index.json"
COMPUTED_IN_FILES = frozenset({"F16", "BF16", "F32", "F64"})
COMPUTED_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def load_checkpoint(
    path: Path, *, attention: str | None = None, name: str | None = None, dtype: str | None = None,
    assume: Assumptions | None = None,
) -> Subject:  # fmt: skip
    """Load a checkpoint on the CPU, by default in the dtype in which transformers loads it.

    Weights that are stored in this dtype stay in the file, which is mapped. Raises `CheckpointError` or `SubjectError`.
    """
    label = name or path.resolve().name
    check_folder(path, label)
    source = WeightSource.of(path, label)
    settings = {} if source.gguf else _settings(source.folder, label)
    wanted = _wanted_dtype(dtype, settings, label)
    if not source.gguf:
        stored = check_weight_files(source.folder, label)
        if source.form.form == "plain" or source.adapter is not None:
            _check_stored_dtypes(stored, wanted, settings, label)
    transformers_library()
    with suppress_warnings():
        config = _load_config(source, settings, label)
        chosen = model_class(config)
        backend = select_attention_backend(chosen, attention)
        model, remark = _load_weights(chosen, source, config, backend, dtype=wanted)
        remark += f", {source.form.note}" if source.form.note else ""
        summary = f"{backend}, {_dtype_name(model.dtype)}, from {label}{remark}"
        notes = (remark.removeprefix(", "),) if remark else ()
        build_with = partial(
            build_subject.build_subject, model, name=label, load_summary=summary, notes=notes, assume=assume
        )
        subject = probe_subject(model, build_with)
        if subject.model_kind != "vision" and not source.gguf:
            _attach_tokenizer(subject, source.folder)
    if has_text_decoder(config):

        def build(chosen: Any) -> Any:
            backend = select_attention_backend(chosen, attention)
            return _load_weights(chosen, source, config, backend, dtype=wanted)[0]

        build_subject.attach_decoder_adapter(subject, config, build)
    return subject


def _attach_tokenizer(subject: Subject, folder: Path) -> None:
    module: Any = subject.module
    takes_token_ids = module.argument == "input_ids"
    embeddings = input_embeddings(module.model)
    tokenizer, note = load_tokenizer(
        folder, embeddings, name=subject.name, takes_token_ids=takes_token_ids, max_length=subject.max_length
    )
    if note:
        subject.notes = (*subject.notes, note)
    if tokenizer is None:
        return
    subject.encode_sentence, subject.tokenizer = tokenizer.encode_sentence, tokenizer
    if len(tokenizer.common_words) >= 2:
        subject.draw = tokenizer.sample


def read_config(path: Path, label: str) -> dict[str, Any]:
    """The configuration of a checkpoint with plain weights. Raises `CheckpointError`, also for custom code."""
    settings = _settings(path, label)
    if settings.get("quantization_config"):
        raise CheckpointError(f"{label}: the weights are quantised; expected the plain ones")
    return settings


def _settings(path: Path, label: str) -> dict[str, Any]:
    settings = _json(path / CONFIG_FILE, label)
    if "auto_map" in settings:
        raise CheckpointError(
            f"{label}: config.json requires custom code (auto_map), which is not run; "
            "write a function that builds the model and pass it as file.py:name"
        )
    known = known_architectures()
    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in known:
        problem = f"model_type {kind!r} is not known to transformers{did_you_mean(str(kind), known, limit=4)}"
        raise CheckpointError(f"{label}: config.json: {problem if kind else 'no model_type'}")
    return settings


def _json(file: Path, label: str) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{label}: {file.name} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CheckpointError(f"{label}: {file.name} is not readable as JSON: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{label}: {file.name} must be a JSON object; got {type(content).__name__}")
    return content


def check_weight_files(path: Path, label: str) -> set[str]:
    """The dtypes in files of safetensors. Raises `CheckpointError` if they are absent, incomplete or truncated."""
    if (path / INDEX_FILE).is_file():
        table = _json(path / INDEX_FILE, label).get("weight_map")
        if not isinstance(table, dict) or not table:
            raise CheckpointError(f"{label}: {INDEX_FILE} has no weight_map")
        shards = sorted({str(shard) for shard in table.values()})
    elif (path / WEIGHTS_FILE).is_file():
        shards = [WEIGHTS_FILE]
    elif pickles := sorted(file.name for file in path.iterdir() if file.suffix.lower() in PICKLE_SUFFIXES):
        raise CheckpointError(
            f"{label}: only pickled weights ({pickles[0]}), which can run code when opened; convert them to safetensors"
        )
    else:
        raise CheckpointError(f"{label}: no {WEIGHTS_FILE} in the folder")
    return {dtype for shard in shards for dtype in _checked_shard(path, shard, label)}


def _checked_shard(path: Path, shard: str, label: str) -> set[str]:
    """The dtypes of a file, "BF16"."""
    from safetensors import SafetensorError, safe_open

    if Path(shard).name != shard:
        raise CheckpointError(f"{label}: {INDEX_FILE} names a file outside the folder: {shard}")
    if not (path / shard).is_file():
        raise CheckpointError(f"{label}: {INDEX_FILE} names {shard}, which is missing")
    try:
        (path / shard).open("rb").close()
    except OSError as error:
        raise CheckpointError(f"{label}: {shard} cannot be read: {error.strerror}") from error
    try:
        with safe_open(path / shard, framework="pt") as file:
            return {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{label}: {shard} is damaged or cut short: {first_line(error)}") from error


def _check_stored_dtypes(stored: set[str], wanted: torch.dtype | str, settings: dict[str, Any], label: str) -> None:
    """Raise `CheckpointError` for plain weights that are codes, or in a dtype in which nothing is computed."""
    floats = {dtype for dtype in stored if dtype.startswith(("F", "BF"))}
    if stored and not floats:
        raise CheckpointError(
            f"{label}: its weights are in {min(stored)}, and {CONFIG_FILE} does not say how they were quantised"
        )
    is_stated = settings.get("dtype", settings.get("torch_dtype")) is not None
    if wanted == "auto" and not is_stated and (others := floats - COMPUTED_IN_FILES):
        raise CheckpointError(_not_computed(min(others), label))


def _not_computed(dtype: str, label: str) -> str:
    return (
        f"{label}: its weights are in {dtype}, in which no model runs here; choose another dtype with --dtype bfloat16"
    )


def _load_config(source: WeightSource, settings: dict[str, Any], label: str) -> Any:
    kind = settings.get("model_type", "")
    try:
        return source.load_config(kind)
    except Exception as error:  # a third-party constructor: anything may come
        what = f"{CONFIG_FILE} does not fit {kind}" if kind else "its configuration cannot be read"
        raise CheckpointError(f"{label}: {what}: {first_line(error)}") from error


def _wanted_dtype(chosen: str | None, settings: dict[str, Any], label: str) -> torch.dtype | str:
    """The dtype to load: the chosen one, else that of the configuration, else that of the weights.

    Raises `CheckpointError` if nothing is computed in it.
    """
    stated = settings.get("dtype", settings.get("torch_dtype"))
    dtype = getattr(torch, str(stated).removeprefix("torch."), None)
    if chosen is None and isinstance(dtype, torch.dtype) and dtype not in COMPUTED_DTYPES:
        raise CheckpointError(_not_computed(_dtype_name(dtype), label))
    return "auto" if chosen is None else getattr(torch, chosen)


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _load_weights(
    chosen: Any, source: WeightSource, config: Any, attention: str, *, dtype: torch.dtype | str
) -> tuple[Any, str]:
    """The model with its weights, and a remark if it has no pooler because the checkpoint has none."""
    model, missing = _load_pretrained(chosen, source, config, attention, dtype=dtype)
    if not missing:
        return model, ""
    if all(key.split(".")[0] == "pooler" for key in missing):
        model, missing = _load_pretrained(chosen, source, config, attention, dtype=dtype, add_pooling_layer=False)
        if not missing:
            return model, ", without the pooler its checkpoint lacks"
    shown = ", ".join(sorted(missing)[:3]) + (", ..." if len(missing) > 3 else "")
    raise CheckpointError(
        f"{source.label}: {len(missing)} weights of {chosen.__name__} are not in the checkpoint: {shown}"
    )


def _load_pretrained(
    chosen: Any, source: WeightSource, config: Any, attention: str, **more: Any
) -> tuple[Any, set[str]]:
    label = source.label
    options = {
        "config": config,
        "attn_implementation": attention,
        "local_files_only": True,
        "use_safetensors": True,
        "trust_remote_code": False,
        "ignore_mismatched_sizes": True,  # reported below, with their names
        "output_loading_info": True,
        **more,
    }
    try:
        with late_dynamo():  # transformers initialises weights on the meta device, whose operators are marked
            model, report = source.load_model(chosen, options)
    except OrderproofError:
        raise
    except Exception as error:  # a third-party loader: anything may come
        raise CheckpointError(f"{label}: its weights cannot be loaded: {first_line(error)}") from error
    if report.get("mismatched_keys"):
        key, found, expected = min((key, *map(list, shapes)) for key, *shapes in report["mismatched_keys"])
        raise CheckpointError(f"{label}: {key} has shape {found}, and config.json says {expected}")
    return model, set(report["missing_keys"])
