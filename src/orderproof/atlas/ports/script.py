"""Scripts that reproduce a difference of a port without this package."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from typing import Any

from orderproof.atlas.ports.groups import DifferenceGroup
from orderproof.atlas.ports.row import PortLawResult, PortRow
from orderproof.atlas.ports.script_steps import SERVING, TOKENIZER, Steps
from orderproof.laws.ports.same_greedy_tokens import GENERATED
from orderproof.models.tiny.fixed_sizes import WEIGHT_NOISE_STD
from orderproof.ports.engines.llama_cpp import WITHOUT_VOCABULARY
from orderproof.ports.older_config import older_keys

MOST_CONFIGS = 4  # in one script
PROMPT_LAWS = ("same_prefill", "same_past_window", "same_past_context", "same_far_positions")
PADDED_LAW, TOKENS_LAW = "same_padded_batch", "same_greedy_tokens"
_WIDTH = 110  # characters of a line


def _logits_module(parameters: str, arguments: str) -> tuple[str, ...]:
    """A module with tensors as inputs and output, for torch.onnx.export."""
    return (
        "class Logits(torch.nn.Module):",
        "    def __init__(self, model):",
        "        super().__init__()",
        "        self.model = model",
        "",
        f"    def forward(self, {parameters}):",
        f"        return self.model({arguments}, use_cache=False).logits",
        "",
        "",
    )


_ENGINES = {
    "mlx": Steps(
        ("import mlx.core as mx", "from mlx_lm.utils import load_model"),
        (
            "port, _ = load_model(Path(folder))",
            "actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]",
        ),
    ),
    "ctranslate2": Steps(
        (
            "import ctranslate2",
            "from ctranslate2.converters import TransformersConverter",
            "from tokenizers import Tokenizer, models",
        ),
        (
            *TOKENIZER,
            'TransformersConverter(folder).convert(f"{folder}/port")',
            'port = ctranslate2.Generator(f"{folder}/port", compute_type="float32")',
            'actual = np.array(port.forward_batch([[f"t{k}" for k in tokens[0].tolist()]]))[0]',
        ),
    ),
    "llamacpp": Steps(
        ("from llama_cpp import Llama", "from tokenizers import Tokenizer, models"),
        (
            *TOKENIZER,
            'command = [sys.executable, "-c", WITHOUT_VOCABULARY, CONVERTER, folder, "--outtype", "f32"]',
            'subprocess.run([*command, "--outfile", f"{folder}/port.gguf"], check=True, capture_output=True)',
            'lengths = {"n_ctx": 8192, "n_batch": 8192, "n_ubatch": 8192}',
            'options = {"logits_all": True, "type_k": 0, "type_v": 0, "verbose": False, **lengths}',
            'port = Llama(f"{folder}/port.gguf", **options)',
            "port.eval(tokens[0].tolist())",
            "actual = np.array(port.scores[: tokens.shape[1]])",
        ),
        (
            "CONVERTER = sys.argv[1]  # convert_hf_to_gguf.py of llama.cpp",
            f'WITHOUT_VOCABULARY = """{WITHOUT_VOCABULARY}"""',
            "",
        ),
        ("import subprocess", "import sys"),
    ),
    **SERVING,
    "onnx": Steps(
        ("import onnxruntime",),
        (
            'axes = {0: torch.export.Dim("row"), 1: torch.export.Dim("token")}',
            "example = (torch.ones(2, 5, dtype=torch.long),)",
            'options = {"dynamo": True, "verbose": False, "dynamic_shapes": (axes,)}',
            'torch.onnx.export(Logits(model), example, f"{folder}/port.onnx", **options)',
            'port = onnxruntime.InferenceSession(f"{folder}/port.onnx")',
            "actual = port.run(None, {port.get_inputs()[0].name: tokens.numpy()})[0][0]",
        ),
        _logits_module("tokens", "tokens"),
    ),
}
_PADDED = {  # the same for a row with pads on its left
    "mlx": Steps(
        (
            "import mlx.core as mx",
            "from mlx_lm.models.cache import BatchKVCache, KVCache, make_prompt_cache",
            "from mlx_lm.utils import load_model",
        ),
        (
            "port, _ = load_model(Path(folder))",
            "caches = make_prompt_cache(port)",
            "caches = [BatchKVCache([PADS]) if isinstance(cache, KVCache) else cache for cache in caches]",
            "for cache in caches:",
            "    cache.left_padding = mx.array([PADS])",
            "row = mx.array([[0] * PADS + tokens[0].tolist()])",
            "actual = np.array(port(row, cache=caches).astype(mx.float32))[0, PADS:]",
        ),
        ("PADS = 5", ""),
    ),
    "onnx": Steps(
        ("import onnxruntime",),
        (
            'axes = {0: torch.export.Dim("row"), 1: torch.export.Dim("token")}',
            "ones = torch.ones(2, 5, dtype=torch.long)",
            'options = {"dynamo": True, "verbose": False, "dynamic_shapes": (axes, axes)}',
            'torch.onnx.export(Logits(model), (ones, ones), f"{folder}/port.onnx", **options)',
            'port = onnxruntime.InferenceSession(f"{folder}/port.onnx")',
            "row = np.array([[0] * PADS + tokens[0].tolist()])",
            "mask = np.array([[0] * PADS + [1] * tokens.shape[1]])",
            "names = [entry.name for entry in port.get_inputs()]",
            "actual = port.run(None, dict(zip(names, (row, mask), strict=True)))[0][0, PADS:]",
        ),
        (
            "PADS = 5",
            "",
            "",
            *_logits_module("tokens, mask", "tokens, attention_mask=mask"),
        ),
    ),
}


_GENERATED = {  # the same for tokens that are generated greedily
    "ctranslate2": replace(
        _ENGINES["ctranslate2"],
        steps=(
            *_ENGINES["ctranslate2"].steps[:-1],
            'prompt = [f"t{k}" for k in tokens[0].tolist()]',
            'options = {"sampling_topk": 1, "include_prompt_in_result": False, "return_end_token": True}',
            f"actual = port.generate_batch([prompt], max_length={GENERATED}, **options)[0].sequences_ids[0]",
        ),
        claim="generate other tokens from the same checkpoint and prompt",
        expected=(
            "row = tokens",
            f"for _ in range({GENERATED}):",
            "    row = torch.cat([row, model(row).logits[:, -1:].argmax(-1)], 1)",
            "expected = row[0, tokens.shape[1] :].tolist()",
        ),
        shown=('print(f"{name}: transformers generates {expected}, the port {actual}")',),
    )
}

_WRITE_OLDER_KEYS = (
    'file = Path(folder) / "config.json"',
    "file.write_text(json.dumps(json.loads(file.read_text()) | OLDER_KEYS.get(name, {})))",
)


def has_script(group: DifferenceGroup) -> bool:
    """True if a prompt, a row with pads or generated tokens show the difference: a script makes no other call."""
    return _call_of(group) is not None


def _call_of(group: DifferenceGroup) -> tuple[Steps, list[tuple[PortRow, PortLawResult]]] | None:
    """The steps of a script, and the rows of the group that it shows."""
    for steps, laws in ((_ENGINES, PROMPT_LAWS), (_PADDED, (PADDED_LAW,)), (_GENERATED, (TOKENS_LAW,))):
        shown = [each for each in group.clearest if each[1].law in laws]
        if shown and group.engine in steps:
            return steps[group.engine], shown
    return None


def script(group: DifferenceGroup) -> str:
    """A script that prints the difference for some architectures of a group that has one."""
    call = _call_of(group)
    assert call is not None
    engine, chosen = call[0], call[1][:MOST_CONFIGS]
    configs = {row.model_type: row.values for row, _ in chosen}
    tokens = max(law.tokens for _, law in chosen)
    older = {row.model_type: _older_keys(row.model_type, row.values) for row, _ in chosen if row.needs_older_keys}
    each = group.cause
    cause = (
        "Not explained." if each is None else f"{each.setting}: {each.stated} in the model, {each.assumed} in the port."
    )
    about = textwrap.wrap(cause, _WIDTH)
    classes = ["AutoConfig", "AutoModelForCausalLM", *["PreTrainedTokenizerFast"] * (TOKENIZER[-1] in engine.steps)]
    steps = [*(_WRITE_OLDER_KEYS if older else ()), *engine.steps]
    uses_numpy = any("np." in line for line in (*steps, *engine.shown))
    imports = [*["import numpy as np"] * uses_numpy, "import torch", *engine.imports]
    plain = sorted(line for line in imports if line.startswith("import"))
    named = [line for line in engine.imports if line.startswith("from")]
    lines = [
        f'"""{group.engine} and transformers {engine.claim}.',
        "",
        *about,
        '"""',
        "",
        *["import json"] * (bool(older) and "import json" not in engine.standard),
        *engine.standard,
        *["from pathlib import Path"] * any("Path(" in line for line in steps),
        "from tempfile import TemporaryDirectory",
        "",
        *plain,
        *sorted([*named, f"from transformers import {', '.join(classes)}"]),
        "",
        f"CONFIGS = {literal(configs)}",
        *[f"OLDER_KEYS = {literal(older)}  # without which the engine does not load the checkpoint"] * bool(older),
        "",
        *(["", *engine.before] if engine.before else []),
        "torch.manual_seed(0)",
        "for name, values in CONFIGS.items():",
        "    config = AutoConfig.for_model(name, **values)",
        "    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()",
        "    for parameter in model.parameters():",
        f"        parameter.data += {WEIGHT_NOISE_STD} * torch.randn(parameter.shape)",
        f"    tokens = torch.randint(3, config.vocab_size, (1, {tokens}))",
        "    with torch.no_grad(), TemporaryDirectory() as folder:",
        *(f"        {line}" for line in engine.expected),
        "        model.save_pretrained(folder)",
        *(f"        {line}" for line in steps),
        *(f"    {line}" for line in engine.shown),
    ]
    return "\n".join(lines) + "\n"


def _older_keys(model_type: str, values: dict[str, Any]) -> dict[str, Any]:
    """The keys of older versions that the configuration of an architecture lacks."""
    from transformers import AutoConfig

    return older_keys(AutoConfig.for_model(model_type, **values).to_dict())


def literal(value: Any, indent: int = 0) -> str:
    """A value as Python source, formatted as ruff does it: dictionaries and long lists with one element a line."""
    space = " " * (indent + 4)
    if isinstance(value, dict) and value:
        items = [f"{space}{json.dumps(key)}: {literal(each, indent + 4)},\n" for key, each in sorted(value.items())]
        return "{\n" + "".join(items) + " " * indent + "}"
    if isinstance(value, list):
        flat = f"[{', '.join(literal(each, indent + 4) for each in value)}]"
        if len(flat) + indent + 24 <= _WIDTH and "\n" not in flat:
            return flat
        return "[\n" + "".join(f"{space}{literal(each, indent + 4)},\n" for each in value) + " " * indent + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)
