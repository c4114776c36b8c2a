"""How a checkpoint stores its weights: plain, as an adapter of another one, or quantised; read without torch.

Adapters and quantised weights are made plain when they are loaded. A form that needs a package which is not installed,
or that computes something else than its plain weights do, is one line before anything is loaded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orderproof.errors import CheckpointError
from orderproof.optional_packages import missing_packages

Form = Literal["plain", "adapter", "gguf", "torchao", "compressed-tensors"]

CONFIG_FILE = "config.json"
ADAPTER_FILE = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
GGUF_SUFFIX = ".gguf"
ADAPTER_TYPE = "LORA"  # the type of adapter that is a change of weights
PACKAGES = {"adapter": "peft", "gguf": "gguf", "torchao": "torchao", "compressed-tensors": "compressed-tensors"}
_TITLES = {"adapter": "a LoRA adapter", "gguf": "a GGUF file"}
_READ = "plain ones, or those of torchao, compressed-tensors or GGUF"


@dataclass(frozen=True)
class CheckpointForm:
    """How weights are stored, and what the folder or file states of it."""

    form: Form
    stated: dict[str, Any]  # adapter_config.json, or the quantization_config of config.json

    @property
    def note(self) -> str:
        """The change that loading makes; empty for plain weights."""
        if self.form == "adapter":
            return "with its adapter merged"
        return "" if self.form == "plain" else f"dequantised from {_TITLES.get(self.form, self.form)}"


def checkpoint_form(path: Path, label: str) -> CheckpointForm:
    """The form of a checkpoint. Raises `CheckpointError` if it cannot be loaded here."""
    found = _form(path, label)
    package = PACKAGES.get(found.form, "")
    if package and missing_packages(package.replace("-", "_")):
        what = _TITLES.get(found.form, f"a checkpoint of {found.form}")
        raise CheckpointError(f"{label}: {what} needs {package}, which is not installed: pip install {package}")
    if found.form == "adapter":
        _check_adapter(path, label, found.stated)
    elif found.form in ("torchao", "compressed-tensors"):
        _check_activations(label, found.stated)
        _check_groups(label, found.stated.get("config_groups"))
    return found


def _form(path: Path, label: str) -> CheckpointForm:
    if path.suffix.lower() == GGUF_SUFFIX and not path.is_dir():
        return CheckpointForm("gguf", {})
    is_adapter = (path / ADAPTER_FILE).is_file() and not any(path.glob("model*.safetensors*"))
    stated = _stated(path / (ADAPTER_FILE if is_adapter else CONFIG_FILE))
    if is_adapter:
        return CheckpointForm("adapter", stated)
    quantised = stated.get("quantization_config")
    if not quantised:
        return CheckpointForm("plain", {})
    method = quantised.get("quant_method") if isinstance(quantised, dict) else None
    if method not in ("torchao", "compressed-tensors"):
        by = f" by {method}" if isinstance(method, str) else ""
        raise CheckpointError(f"{label}: its weights are quantised{by}; expected {_READ}")
    return CheckpointForm(method, quantised)


def _stated(file: Path) -> dict[str, Any]:
    """A JSON object; empty if it is none, which the loader says."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _check_adapter(path: Path, label: str, stated: dict[str, Any]) -> None:
    kind = stated.get("peft_type")
    if kind != ADAPTER_TYPE:
        raise CheckpointError(f"{label}: {ADAPTER_FILE}: expected peft_type {ADAPTER_TYPE}; got {kind!r}")
    if not isinstance(stated.get("base_model_name_or_path"), str):
        raise CheckpointError(f"{label}: {ADAPTER_FILE} names no base_model_name_or_path")
    if not (path / ADAPTER_WEIGHTS).is_file():
        raise CheckpointError(f"{label}: no {ADAPTER_WEIGHTS} in the folder; a pickled adapter is not opened")


def _check_activations(label: str, stated: dict[str, Any]) -> None:
    """Raise `CheckpointError` if more than weights is quantised, which plain weights do not compute."""
    groups = stated.get("config_groups") or {}
    kinds = {str(each.get("_type")) for each in _objects(stated.get("quant_type"))}
    of_groups = any(each.get("input_activations") or each.get("output_activations") for each in _objects(groups))
    others = {kind for kind in kinds if kind.endswith("Config") and not kind.endswith("WeightOnlyConfig")}
    if of_groups or stated.get("kv_cache_scheme") or stated.get("transform_config") or others:
        what = f" ({', '.join(sorted(others))})" if others else ""
        raise CheckpointError(
            f"{label}: activations are quantised too{what}, so plain weights compute something else; expected a "
            "checkpoint in which only weights are"
        )


def _check_groups(label: str, groups: Any) -> None:
    """Raise `CheckpointError` if layers are quantised in unlike ways: transformers reads all by their first group.

    Groups of experts are read by their own.
    """
    of_layers = [group for group in _objects(groups)[1:] if "targets" in group and not _is_of_experts(group)]
    if len({_scheme(group) for group in of_layers}) > 1:
        raise CheckpointError(
            f"{label}: its {len(of_layers)} groups of layers are quantised in unlike ways, which transformers reads as "
            "one; expected one scheme for all layers but experts"
        )


def _scheme(group: dict[str, Any]) -> str:
    """How weights are stored, without how they were chosen."""
    weights = group.get("weights") or {}
    stated = {key: value for key, value in weights.items() if not key.startswith("observer")}
    return json.dumps([group.get("format"), stated], sort_keys=True)


def _is_of_experts(group: dict[str, Any]) -> bool:
    targets = group["targets"] if isinstance(group["targets"], list) else []
    return any(str(target).startswith("re:") and "experts" in str(target) for target in targets)


def _objects(value: Any) -> list[dict[str, Any]]:
    """All JSON objects in a value."""
    if not isinstance(value, dict):
        return []
    return [value, *(found for each in value.values() for found in _objects(each))]
