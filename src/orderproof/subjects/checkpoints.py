"""A checkpoint folder: config.json, safetensors, and a tokenizer where there is one.

Nothing in the folder is executed: no pickle is opened, no `auto_map` code is imported. Every weight
of the model must be in the checkpoint; a missing one would be random and nobody would notice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from orderproof.errors import CheckpointError, OrderproofError, first_line
from orderproof.subjects import huggingface
from orderproof.subjects.architectures import known_architectures, near
from orderproof.subjects.classes import attention_of, model_class
from orderproof.subjects.decoding import has_decoder
from orderproof.subjects.quieting import silence, transformers_library
from orderproof.subjects.subject import Subject
from orderproof.subjects.words import give_words

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
SUFFIXES = (*PICKLES, ".safetensors", ".py", ".json", ".gguf", ".h5", ".onnx")
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


def load_checkpoint(path: Path, *, attention: str | None = None, name: str | None = None) -> Subject:
    """Load a checkpoint folder in float32 on the CPU."""
    label = name or path.resolve().name
    if not path.is_dir():
        raise CheckpointError(_not_a_folder(path))
    settings = read_settings(path, label)
    check_weights(path, label)
    transformers_library()
    with silence():
        config = _config(path, settings, label)
        chosen = model_class(config)
        backend = attention_of(chosen, attention)
        model, remark = _weights(chosen, path, config, backend, label)
        detail = f"{backend}, float32, from {label}{remark}"
        subject = huggingface.subject_of(model, name=label, detail=detail)
        give_words(subject, path)
    if has_decoder(config):

        def build(chosen: Any) -> Any:
            return _weights(chosen, path, config, attention_of(chosen, attention), label)[0]

        huggingface.add_decoder(subject, config, build)
    return subject


def _not_a_folder(path: Path) -> str:
    if path.suffix.lower() in PICKLES:
        return f"{path}: a pickle can run code when it is opened, so it is not; convert the checkpoint to safetensors"
    if path.is_file() and path.suffix == ".py":
        return f"{path}: expected {path}:NAME, a module in it or a function that returns one; got the file alone"
    if path.is_file():
        return f"{path}: expected a checkpoint folder with config.json and {SINGLE}; got a file"
    return f"{path}: no such folder"


def read_settings(path: Path, label: str) -> dict[str, Any]:
    """The configuration of a checkpoint as plain data, refused if it asks for code or is quantised."""
    file = path / "config.json"
    if not file.is_file():
        raise CheckpointError(f"{label}: no config.json in the folder, so it is not a checkpoint of transformers")
    settings = _json(file, label)
    if "auto_map" in settings:
        raise CheckpointError(
            f"{label}: config.json asks for code of its own (auto_map), which is not run; "
            "write a function that builds the model and name it as file.py:name"
        )
    if settings.get("quantization_config"):
        raise CheckpointError(f"{label}: the weights are quantised; proofs need the plain ones")
    known = known_architectures()
    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in known:
        said = f"model_type {kind!r} is not known to transformers{near(str(kind), known)}" if kind else "no model_type"
        raise CheckpointError(f"{label}: config.json: {said}")
    return settings


def _json(file: Path, label: str) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{label}: {file.name} is not readable as JSON: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{label}: {file.name} must be a JSON object; got {type(content).__name__}")
    return content


def check_weights(path: Path, label: str) -> None:
    """Refuse a checkpoint whose safetensors are absent, incomplete or cut short."""
    if (path / INDEX).is_file():
        table = _json(path / INDEX, label).get("weight_map")
        if not isinstance(table, dict) or not table:
            raise CheckpointError(f"{label}: {INDEX} has no weight_map")
        shards = sorted({str(shard) for shard in table.values()})
    elif (path / SINGLE).is_file():
        shards = [SINGLE]
    elif pickles := sorted(file.name for file in path.iterdir() if file.suffix.lower() in PICKLES):
        raise CheckpointError(
            f"{label}: only pickled weights ({pickles[0]}), which can run code when opened; convert them to safetensors"
        )
    else:
        raise CheckpointError(f"{label}: no {SINGLE} in the folder")
    for shard in shards:
        _check_shard(path, shard, label)


def _check_shard(path: Path, shard: str, label: str) -> None:
    from safetensors import SafetensorError, safe_open

    if Path(shard).name != shard:
        raise CheckpointError(f"{label}: {INDEX} names a file outside the folder: {shard}")
    if not (path / shard).is_file():
        raise CheckpointError(f"{label}: {INDEX} names {shard}, which is missing")
    try:
        with safe_open(path / shard, framework="pt") as file:
            file.keys()
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{label}: {shard} is damaged or cut short: {first_line(error)}") from error


def _config(path: Path, settings: dict[str, Any], label: str) -> Any:
    from transformers import CONFIG_MAPPING

    try:
        return CONFIG_MAPPING[settings["model_type"]].from_pretrained(path, local_files_only=True)
    except Exception as error:  # a third-party constructor: anything may come
        raise CheckpointError(
            f"{label}: config.json does not fit {settings['model_type']}: {first_line(error)}"
        ) from error


def _weights(chosen: Any, path: Path, config: Any, attention: str, label: str) -> tuple[Any, str]:
    """The model with its weights; without its pooler where the checkpoint has none."""
    model, missing = _filled(chosen, path, config, attention, label)
    if not missing:
        return model, ""
    if all(key.split(".")[0] == "pooler" for key in missing):
        model, missing = _filled(chosen, path, config, attention, label, add_pooling_layer=False)
        if not missing:
            return model, ", without the pooler its checkpoint lacks"
    shown = ", ".join(sorted(missing)[:3]) + (", ..." if len(missing) > 3 else "")
    raise CheckpointError(f"{label}: {len(missing)} weights of {chosen.__name__} are not in the checkpoint: {shown}")


def _filled(chosen: Any, path: Path, config: Any, attention: str, label: str, **options: Any) -> tuple[Any, set[str]]:
    try:
        model, report = chosen.from_pretrained(
            path,
            config=config,
            dtype=torch.float32,
            attn_implementation=attention,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    except OrderproofError:
        raise
    except Exception as error:  # a third-party loader: anything may come
        raise CheckpointError(f"{label}: its weights cannot be loaded: {first_line(error)}") from error
    if report.get("mismatched_keys"):
        key = min(str(entry) for entry in report["mismatched_keys"])
        raise CheckpointError(f"{label}: weights of another shape than config.json says: {key}")
    return model, set(report["missing_keys"])
