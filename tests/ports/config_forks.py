"""Forks of the reading of `config.json` of each installed engine: one key has another value when the engine reads it.

    python -m tests.ports.config_forks [ENGINE ...]     write docs/evidence/ports/forks.md

The engine itself is the library: it computes what its own reader would with one mistake. The audit knows nothing of it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from orderproof import audit
from orderproof.ports.engines.engine import InferenceEngine
from orderproof.ports.engines.registry import find_engine
from orderproof.records.audit import Finding
from orderproof.report.markdown_table import markdown_table

PAGE = Path(__file__).parents[2] / "docs/evidence/ports/forks.md"
ENGINES = (
    "vllm", "mlx", "keras-hub", "ctranslate2", "onnxruntime-genai", "openvino", "mistralrs", "curated-transformers",
    "transformer-lens", "mlx-vlm",
)  # fmt: skip
SETTINGS = {
    "rope_theta": "rope_parameters.rope_theta",
    "partial_rotary_factor": "rope_parameters.partial_rotary_factor",
}
LINEAR = 'rope_parameters={"rope_type":"linear","factor":4.0,"rope_theta":10000.0}'
LLAMA3 = (
    'rope_parameters={"rope_type":"llama3","factor":4.0,"rope_theta":10000.0,"low_freq_factor":1.0,'
    '"high_freq_factor":4.0,"original_max_position_embeddings":16}'
)

HEAD = """# Forks of the reading of a configuration

Written by `python -m tests.ports.config_forks`; not edited by hand. [How to audit a serving
engine](../../how_to/audit_a_serving_engine.md).

Each engine is the library itself, whose reader of `config.json` makes one mistake: a key has another value when the
engine reads it. The audit compares this fork with transformers, and is to name the key and the value. *named*: the
difference is found, and the one setting that explains it, up to rounding, is the one that was changed. *not read*: the
engine computes the same, since it does not read this key. *refused*: it does not take the changed configuration.
*differs by itself*: it differs from transformers without a fork, so that nothing is planted. *not compared*: it has no
such architecture, or does not compute it here."""

Edit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Fork:
    """One mistake of a reader."""

    subject: str
    edit: Edit  # changes the content of config.json
    law: str
    setting: str  # that the audit is to name
    assumed: str  # with this value


def key(**values: Any) -> Edit:
    """The keys have these values, under each name that a version of transformers gives them."""

    def edit(config: dict[str, Any]) -> None:
        config.update({name: value for name, value in values.items() if name in config})

    return edit


def rope(**values: Any) -> Edit:
    """The rotary parameters have these values, and so have the keys that older versions wrote."""

    def edit(config: dict[str, Any]) -> None:
        config["rope_parameters"] = {**config["rope_parameters"], **values}
        config.update(values)

    return edit


def no_scaling(config: dict[str, Any]) -> None:
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": config["rope_parameters"]["rope_theta"]}
    config.update({name: None for name in ("rope_scaling",) if name in config})


def scale_of_head(config: dict[str, Any]) -> None:
    config["query_pre_attn_scalar"] = config["head_dim"]


FORKS: Mapping[str, Fork] = {
    "another base": Fork("arch:llama", rope(rope_theta=1e6), "same_prefill", "rope_parameters.rope_theta", "1e+06"),
    "no linear scaling": Fork(
        f"arch:llama?{LINEAR}", no_scaling, "same_prefill", "rope_parameters.rope_type", "no scaling"
    ),
    "no llama3 scaling": Fork(
        f"arch:llama?{LLAMA3}", no_scaling, "same_prefill", "rope_parameters.rope_type", "no scaling"
    ),
    "another epsilon": Fork("arch:llama", key(rms_norm_eps=1e-3), "same_prefill", "rms_norm_eps", "0.001"),
    "another activation": Fork("arch:llama", key(hidden_act="gelu"), "same_prefill", "hidden_act", "gelu"),
    "another epsilon of GPT-2": Fork(
        "arch:gpt2", key(layer_norm_epsilon=1e-3), "same_prefill", "layer_norm_epsilon", "0.001"
    ),
    "another activation of GPT-2": Fork(
        "arch:gpt2", key(activation_function="relu"), "same_prefill", "activation_function", "relu"
    ),
    "window plus one": Fork("arch:mistral", key(sliding_window=7), "same_past_window", "sliding_window", "7"),
    "no window": Fork("arch:mistral", key(sliding_window=None), "same_past_window", "sliding_window", "no window"),
    "no softcap of logits": Fork(
        "arch:gemma2", key(final_logit_softcapping=1e6), "same_prefill", "final_logit_softcapping", "no softcap"
    ),
    "no softcap of scores": Fork(
        "arch:gemma2?attn_logit_softcapping=2.0", key(attn_logit_softcapping=1e6), "same_prefill",
        "attn_logit_softcapping", "no softcap",
    ),
    "scale of the head": Fork(
        "arch:gemma2?query_pre_attn_scalar=64", scale_of_head, "same_prefill", "scale of scores",
        "from the width of a head",
    ),
    "all features rotated": Fork(
        "arch:phi", rope(partial_rotary_factor=1.0), "same_prefill", "rope_parameters.partial_rotary_factor", "1"
    ),
    "weights of experts divided": Fork(
        "arch:qwen3_moe", key(norm_topk_prob=True), "same_prefill", "norm_topk_prob", "True"
    ),
    "attention and MLP in turn": Fork(
        "arch:gpt_neox", key(use_parallel_residual=False), "same_prefill", "use_parallel_residual", "False"
    ),
    "no multiplier of embeddings": Fork(
        "arch:granite?embedding_multiplier=3.0", key(embedding_multiplier=1.0), "same_prefill", "embedding_multiplier",
        "1.0",
    ),
    "no multiplier of residuals": Fork(
        "arch:granite?residual_multiplier=0.5", key(residual_multiplier=1.0), "same_prefill", "residual_multiplier",
        "1.0",
    ),
    "no scale of logits": Fork("arch:cohere", key(logit_scale=1.0), "same_prefill", "logit_scale", "1.0"),
    "no clipping": Fork("arch:olmo?clip_qkv=0.5", key(clip_qkv=None), "same_prefill", "clip_qkv", "absent"),
}  # fmt: skip


def forked(engine: InferenceEngine, edit: Edit) -> InferenceEngine:
    """The engine, which reads the changed configuration."""

    class Forked(type(engine)):  # type: ignore[misc]
        def load(self, folder: Path) -> Any:
            return super().load(_edited(folder, edit))

        def open_process(self, request: Any) -> Any:
            return super().open_process(replace(request, folder=_edited(request.folder, edit)))

    return Forked(**{each.name: getattr(engine, each.name) for each in fields(engine)})


def _edited(folder: Path, edit: Edit) -> Path:
    """A folder with the files of this one, and the changed configuration."""
    place = Path(tempfile.mkdtemp(dir=folder))
    for file in folder.iterdir():
        if file.is_file() and file.name != "config.json":
            os.link(file, place / file.name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    edit(config)
    (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return place


def finding(engine: InferenceEngine, subject: str, law: str) -> Finding:
    """The finding of one law."""
    return audit(subject, against=engine, laws=[law]).findings[0]


@cache
def own_verdict(engine: str, subject: str, law: str) -> str:
    """The verdict on the engine without a fork."""
    return finding(find_engine(engine), subject, law).verdict


def outcome(engine: str, name: str) -> str:
    """What an audit says of one fork in one engine."""
    fork = FORKS[name]
    if (own := own_verdict(engine, fork.subject, fork.law)) != "held":
        return {"refuted": "differs by itself"}.get(own, "not compared")
    found = finding(forked(find_engine(engine), fork.edit), fork.subject, fork.law)
    if found.verdict != "refuted":
        return "not read" if found.verdict == "held" else "refused"
    causes = [] if found.port is None else [(each.setting, each.assumed) for each in found.port.causes]
    named = found.port is not None and found.port.explained and causes == [(fork.setting, fork.assumed)]
    return "named" if named else f"found: {found.reason[:120]}"


def page(results: Mapping[str, Mapping[str, str]], versions: Mapping[str, str], planted: Mapping[str, int]) -> str:
    """The page of the outcomes by engine and fork."""
    engines = list(results)
    rows = [
        (name, f"`{FORKS[name].setting}`: {FORKS[name].assumed}", *(results[e].get(name, "not run") for e in engines))
        for name in FORKS
    ]
    read = {e: sum(o == "named" or o.startswith("found") for o in results[e].values()) for e in engines}
    named = {e: sum(o == "named" for o in results[e].values()) for e in engines}
    head = ("mistake of the reader", "to be named", *engines)
    counts = [(e, versions[e], str(read[e]), str(named[e])) for e in engines]
    total = ("all", "", str(sum(read.values())), str(sum(named.values())))
    tests = "; ".join(f"{count} {where}" for where, count in planted.items())
    return "\n\n".join(
        [
            HEAD, markdown_table(("engine", "version", "found", "named"), [*counts, total], right=(2, 3)),
            markdown_table(head, rows), f"Planted in the tests besides: {tests}.",
        ]
    ) + "\n"  # fmt: skip


def planted_in_tests() -> dict[str, int]:
    """The numbers of differences that the tests plant in other engines, by where."""
    from tests.ports import test_encoders, test_engine_side, test_planted_differences

    return {
        "in the modules and calls of transformers": len(test_planted_differences.CASES),
        "in an engine in numpy, in a process of its own": len(test_engine_side.CASES),
        "in encoders": len(test_encoders.CASES),
    }


def main(names: Sequence[str]) -> None:
    """Run each fork in each engine that is installed, and write the page; results that are there are kept."""
    store = Path(os.environ.get("FORKS_STORE", tempfile.mkstemp()[1]))
    kept = json.loads(store.read_text(encoding="utf-8") or "{}") if store.exists() else {}
    for name in [each for each in names or ENGINES if find_engine(each).is_installed]:
        own = kept.setdefault(name, {"version": find_engine(name).version, "outcomes": {}})
        for fork in FORKS:
            if fork not in own["outcomes"]:
                own["outcomes"][fork] = outcome(name, fork)
                sys.stderr.write(f"{name}, {fork}: {own['outcomes'][fork]}\n")
                store.write_text(json.dumps(kept), encoding="utf-8")
    results = {name: each["outcomes"] for name, each in kept.items()}
    versions = {name: each["version"] for name, each in kept.items()}
    PAGE.write_text(page(results, versions, planted_in_tests()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
