"""Every planted fault: those of the laws' fixtures, and those of this folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from orderproof.adapter import ModelAdapter
from orderproof.laws import measured_laws
from tests.laws.faults import (
    cache_faults,
    mask_faults,
    padding_faults,
    position_faults,
    recurrence_faults,
    rotary_faults,
    save_load_faults,
)
from tests.laws.faults.fault import Planted
from tests.laws.law_fixture import law_fixtures

# The public reports that the fault of a law's fixture reconstructs.
REPORTS = {
    "batch_composition": ("huggingface/transformers#46773",),
    "cached_decoding": ("pytorch/executorch#2010",),
    "chunked_prefill": ("huggingface/transformers#46032",),
    "cache_editing": ("Blaizzy/mlx-vlm#1748",),
    "use_cache": ("meta-pytorch/torchtune#959",),
    "default_position_ids": ("huggingface/transformers#19265",),
    "distinct_positions": ("huggingface/diffusers#13920", "deepspeedai/DeepSpeed#4932"),
    "ignored_arguments": ("facebookresearch/fairseq#3726",),
    "position_precision": (
        "huggingface/transformers#25681",
        "NVIDIA-NeMo/Automodel#2549",
        "InternLM/InternLM#239",
        "sgl-project/sglang-jax#1472",
    ),
    "context_length": ("gty111/gLLM#269",),
    "position_shift": ("raiyanyahya/how-to-train-your-gpt#6", "huggingface/transformers#47403"),
}


@cache
def planted_faults() -> tuple[Planted, ...]:
    """Those of the fixtures in the order of the laws' codes, then the others, file by file."""
    own = tuple(
        Planted(faulty_class(make), make, (law.name,), REPORTS.get(law.name, ()))
        for law in measured_laws()
        for make in [law_fixtures()[law.name].violating]
    )
    more = (
        cache_faults,
        padding_faults,
        recurrence_faults,
        position_faults,
        rotary_faults,
        mask_faults,
        save_load_faults,
    )
    return own + tuple(fault for file in more for fault in file.FAULTS)


def faulty_class(make: Callable[[], ModelAdapter]) -> type:
    """The class with the fault: that of the adapter, or of its encoding where the adapter is the package's own."""
    adapter = make()
    if type(adapter).__module__ != "orderproof.blocks.transformer_adapter":
        return type(adapter)
    return type(adapter.module.encoding)
