"""Every planted fault: that of each measured law, and those of this folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from orderproof.laws.measured import MeasuredLaw, measured_laws
from tests.laws.more_faults import cached, masked, padded, placed, recurrent, stored, turned
from tests.laws.more_faults.planted import Planted

# Which public reports the fault that a law carries is modelled on.
REPORTS = {
    "batch_mates": ("huggingface/transformers#46773",),
    "cache": ("pytorch/executorch#2010",),
    "cache_chunks": ("huggingface/transformers#46032",),
    "cache_edits": ("Blaizzy/mlx-vlm#1748",),
    "cache_switch": ("meta-pytorch/torchtune#959",),
    "default_positions": ("huggingface/transformers#19265",),
    "distinct": ("huggingface/diffusers#13920", "deepspeedai/DeepSpeed#4932"),
    "live": ("facebookresearch/fairseq#3726",),
    "precision": (
        "huggingface/transformers#25681",
        "NVIDIA-NeMo/Automodel#2549",
        "InternLM/InternLM#239",
        "sgl-project/sglang-jax#1472",
    ),
    "range": ("gty111/gLLM#269",),
    "shift": ("raiyanyahya/how-to-train-your-gpt#6", "huggingface/transformers#47403"),
}


@cache
def planted_faults() -> tuple[Planted, ...]:
    """Those of the laws in the order of their codes, then the others, file by file."""
    own = tuple(Planted(type_of(law), law.faulty, (law.name,), REPORTS.get(law.name, ())) for law in measured_laws())
    more = (cached, padded, recurrent, placed, turned, masked, stored)
    return own + tuple(fault for file in more for fault in file.FAULTS)


def type_of(law: MeasuredLaw) -> type:
    """The class that carries the fault: the driver's, or where that is an honest one the encoding's."""
    return carrier(law.faulty)


def carrier(make: Callable[[], object]) -> type:
    """Of a driver the class that is not of the package's own blocks."""
    driver = make()
    if type(driver).__module__ != "orderproof.blocks.driving":
        return type(driver)
    return type(driver.module.encoding)  # type: ignore[attr-defined]
