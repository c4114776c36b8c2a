"""Where the weights of a checkpoint come from, as a plain model: adapters are merged, quantised weights dequantised."""

from __future__ import annotations

import io
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from orderproof.checkpoint_forms import CheckpointForm, checkpoint_form
from orderproof.errors import CheckpointError
from orderproof.subject_spec import not_cached


@dataclass(frozen=True)
class WeightSource:
    """A folder of transformers, how its weights are stored, and what is added to them.

    Attributes:
        label: The name of the checkpoint in messages.
        folder: The folder with config.json, or with a GGUF file.
        form: How the weights are stored.
        adapter: The folder of an adapter.
        gguf: The name of a GGUF file in the folder.

    """

    label: str
    folder: Path
    form: CheckpointForm
    adapter: Path | None = None
    gguf: str = ""

    @classmethod
    def of(cls, path: Path, label: str) -> WeightSource:
        """The source of a folder or a file. Raises `CheckpointError`."""
        found = checkpoint_form(path, label)
        if found.form == "gguf":
            return cls(label, path.parent, found, gguf=path.name)
        if found.form == "adapter":
            base = _base_folder(found.stated["base_model_name_or_path"], path, label)
            return cls(label, base, found, adapter=path)
        return cls(label, path, found)

    def load_config(self, model_type: str) -> Any:
        """The configuration, as transformers reads it."""
        from transformers import CONFIG_MAPPING, AutoConfig

        if self.gguf:
            return AutoConfig.from_pretrained(self.folder, gguf_file=self.gguf, local_files_only=True)
        return CONFIG_MAPPING[model_type].from_pretrained(self.folder, local_files_only=True)

    def load_model(self, chosen: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """A plain model of a class, and the report of transformers. Raises what the library does."""
        if self.form.form == "torchao":
            return _load_torchao(chosen, self.folder, options)
        if self.form.form == "compressed-tensors":
            from transformers import CompressedTensorsConfig

            stated = {key: value for key, value in self.form.stated.items() if key != "quant_method"}
            options["quantization_config"] = CompressedTensorsConfig(**{**stated, "dequantize": True})
        if self.gguf:
            options["gguf_file"] = self.gguf
        with redirect_stderr(io.StringIO()) if self.gguf else nullcontext():  # of a bar that no setting turns off
            model, report = chosen.from_pretrained(self.folder, **options)
        _without_quantisation(model)
        if self.adapter is not None:
            _merge_adapter(model, self.adapter, self.label)
        return model, report


def _base_folder(name: str, adapter: Path, label: str) -> Path:
    """The folder of the model that an adapter changes: one on this machine, or one in the hub cache."""
    for place in (Path(name).expanduser(), adapter / name):
        if place.is_dir():
            base = checkpoint_form(place, label)
            if base.form != "plain":
                raise CheckpointError(f"{label}: its base {name} is {base.note}; expected one with plain weights")
            return place
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except Exception as error:  # many kinds: not cached, not a name of the hub
        raise CheckpointError(f"{label}: the base of its adapter: {not_cached(name, ())}") from error


def _load_torchao(chosen: Any, folder: Path, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The base model of the class that was saved: transformers reads these checkpoints into that class only."""
    import transformers

    saved = getattr(transformers, (options["config"].architectures or [""])[0], chosen)
    full, report = saved.from_pretrained(folder, **options)
    model, prefix = full, ""
    if not isinstance(full, chosen):
        model, prefix = getattr(full, full.base_model_prefix), f"{full.base_model_prefix}."
    if not isinstance(model, chosen):
        raise TypeError(f"expected a {chosen.__name__} in {saved.__name__}; got {type(model).__name__}")
    for module in model.modules():
        for name, value in list(module._parameters.items()):
            if value is not None and type(value.data).__module__.startswith("torchao"):
                module._parameters[name] = nn.Parameter(value.detach().dequantize().contiguous(), requires_grad=True)
    _without_quantisation(model)
    missing = {key.removeprefix(prefix) for key in report["missing_keys"] if key.startswith(prefix)}
    return model, {**report, "missing_keys": missing}


def _without_quantisation(model: Any) -> None:
    """Take from a model with plain weights what says that they are quantised."""
    for owner, names in (
        (model.config, ("quantization_config",)),
        (model, ("hf_quantizer", "is_quantized", "quantization_method")),
    ):
        for name in names:
            if name in vars(owner):
                delattr(owner, name)


def _merge_adapter(model: Any, adapter: Path, label: str) -> None:
    """Add a LoRA adapter to the weights; the mapped files of the base are not written. Raises `CheckpointError`."""
    flags = {name: value.requires_grad for name, value in model.named_parameters()}
    report = model.load_adapter(str(adapter))
    if unknown := sorted([*report.unexpected_keys, *report.missing_keys]):
        raise CheckpointError(f"{label}: {len(unknown)} weights of its adapter do not fit the base: {unknown[0]}")
    merged = 0
    for path, module in list(model.named_modules()):
        parent, _, name = path.rpartition(".")
        if hasattr(module, "unload_and_optionally_merge_module"):
            plain = module.unload_and_optionally_merge_module(merge=True, safe_merge=True, adapter_names=None)
        elif hasattr(module, "get_base_layer") and hasattr(module, "merge"):
            module.merge(safe_merge=True)
            plain = module.get_base_layer()
        else:
            continue
        setattr(model.get_submodule(parent), name, plain)
        merged += 1
    if not merged:
        raise CheckpointError(f"{label}: its adapter changes no layer of {type(model).__name__}")
    del model.peft_config
    model._hf_peft_config_loaded = False
    for name, value in model.named_parameters():
        value.requires_grad_(flags[name])
