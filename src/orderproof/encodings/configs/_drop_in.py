"""Replace the rotary modules of a loaded transformers model by exact ones.

    print(drop_in(model))

A rotary module of transformers computes cosines and sines from angles in float32, which are off by 4e-3 at position
131071, and by more than 1 if the module was cast to bfloat16 with its frequencies. The replacement has the same
interface and computes them from float64 angles, rounded once. Attention, weights and state dict stay as they are.

A module is replaced only if its frequencies are those of its config, up to a cast, and a new module of its class, in
float32, gives the same numbers as the replacement up to the rounding of its angles, at positions up to the model's
declared length. Others stay, and the report says why: their frequencies were changed or depend on the length of the
input, or they have several position axes, or `from_hf_config` has no encoding for them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from orderproof.encodings._cos_sin_table import cos_sin_rows
from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings._frequencies import Spectrum, cos_sin
from orderproof.encodings.checks import working_dtype
from orderproof.encodings.configs.hugging_face import from_hf_config
from orderproof.encodings.none import NoEncoding
from orderproof.encodings.rotary import Rotary
from orderproof.errors import EncodingError, UsageError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_ROTARY_CLASS = re.compile(r"(?i)(rotary|rope)\w*embedding")
_SAMPLES = 512
_ARRANGEMENTS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "half by half": lambda cos, sin: (torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)),
    "pair by pair": lambda cos, sin: (cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)),
    "once a pair": lambda cos, sin: (cos, sin),
    "complex": torch.complex,
}
"""The forms in which transformers' modules return cosines and sines."""


@dataclass(frozen=True)
class ReplacedRotary:
    """One replaced module."""

    name: str
    """Its name in the model."""
    last_position: int
    """The largest position that was compared."""
    dtype: torch.dtype
    """The dtype of the model, in which the errors are measured."""
    error_before: float
    """The largest error of a cosine or sine of the module that was replaced."""
    error_after: float
    """The same of the replacement."""


@dataclass(frozen=True)
class DropInReport:
    """The modules that `drop_in` replaced, and those that it did not, with the reason."""

    replaced: tuple[ReplacedRotary, ...]
    kept: dict[str, str]

    def __str__(self) -> str:
        """One line per module."""
        lines = [
            f"{x.name}: replaced; largest error of a cosine or sine up to position {x.last_position}, in {x.dtype}: "
            f"{x.error_before:.1e} before, {x.error_after:.1e} now"
            for x in self.replaced
        ]
        return "\n".join([*lines, *(f"{name}: kept; {reason}" for name, reason in self.kept.items())])


class ExactRotaryTable(nn.Module):
    """A rotary module with the interface of transformers and float64 angles."""

    def __init__(self, spectra: dict[str | None, Spectrum], arrangement: str, config: object) -> None:
        super().__init__()
        self.spectra = spectra
        self.arrangement = arrangement
        self.config = config

    @torch.no_grad()
    def forward(
        self, x: Float[Tensor, "*any"], position_ids: Int[Tensor, "batch token"], layer_type: str | None = None
    ) -> Any:
        """The cosines and sines of each position, rounded once to the dtype of ``x``, as the model expects them."""
        spectrum = self.spectra[None if None in self.spectra else layer_type]
        complex_numbers = self.arrangement == "complex"
        dtype = working_dtype(x) if complex_numbers else x.dtype
        cos, sin = cos_sin_rows(position_ids.to(x.device).long(), spectrum, dtype=dtype)
        return _ARRANGEMENTS[self.arrangement](cos, sin)

    def extra_repr(self) -> str:
        """The form of the results."""
        return self.arrangement


def drop_in(model: nn.Module) -> DropInReport:
    """Replace the rotary modules of a transformers model, in place, by exact ones.

    Raises `UsageError` if the model has no rotary module. Modules that cannot be replaced are in the report.
    """
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"drop_in: model must be a module, such as a model of transformers, got {type(model).__name__}"
        )
    named = [(name, module) for name, module in model.named_modules() if _ROTARY_CLASS.search(type(module).__name__)]
    if not named:
        raise UsageError(f"drop_in: expected a model with a rotary module of transformers, got {type(model).__name__}")
    dtype = next((x.dtype for x in model.parameters() if x.is_floating_point()), torch.float32)
    replaced, kept = [], {}
    for name, module in named:
        try:
            table = _exact_table(module)
        except EncodingError as error:
            kept[name] = str(error)
            continue
        replaced.append(_compare(name, module, table, dtype))
        parent, _, own = name.rpartition(".")
        table.train(module.training)
        setattr(model.get_submodule(parent), own, table)
    return DropInReport(tuple(replaced), kept)


def _exact_table(module: nn.Module) -> ExactRotaryTable:
    """The replacement of a module, verified. Raises `EncodingError` with the reason if there is none."""
    config = getattr(module, "config", None)
    if config is None:
        raise EncodingError("it has no config, which defines its frequencies")
    spectra = _spectra(module, config)
    fresh, positions = type(module)(config), _sample(config)
    if not _has_the_buffers_of(module, fresh):
        raise EncodingError("its frequencies are not those of its config; they were changed")
    is_complex = isinstance(_call(fresh, positions, next(iter(spectra)), torch.float32), Tensor)
    for arrangement in ("complex",) if is_complex else ("half by half", "pair by pair", "once a pair"):
        table = ExactRotaryTable(spectra, arrangement, config)
        if all(_agrees(fresh, table, positions, kind) for kind in spectra):
            return table
    raise EncodingError("its numbers are not those of the encoding of its config")


def _has_the_buffers_of(module: nn.Module, fresh: nn.Module) -> bool:
    """True if the buffers are those of a new module, up to a cast to bfloat16."""
    own, new = dict(module.named_buffers()), dict(fresh.named_buffers())
    return own.keys() == new.keys() and all(
        x.shape == new[name].shape and torch.allclose(x.cpu().double(), new[name].double(), rtol=2**-8, atol=0)
        for name, x in own.items()
    )


def _spectra(module: nn.Module, config: object) -> dict[str | None, Spectrum]:
    """The frequencies of a module, by layer type if its call names one."""
    # Modules with one set of frequencies accept a layer type and do not use it.
    by_type = "layer_type" in inspect.signature(module.forward).parameters and not hasattr(module, "inv_freq")
    types = list(getattr(config, "layer_types", None) or ())
    if by_type and not types:
        raise EncodingError("its call names a layer type, and its config has none")
    spectra: dict[str | None, Spectrum] = {}
    for layer in range(len(types) or int(getattr(config, "num_hidden_layers", 1))):
        kind = types[layer] if by_type else None
        if kind in spectra:
            continue
        encoding = from_hf_config(config, layer)
        if not isinstance(encoding, NoEncoding):
            spectra[kind] = _fixed_spectrum(encoding)
    if not spectra:
        raise EncodingError("no layer of its config is rotated")
    return spectra


def _fixed_spectrum(encoding: PositionalEncoding) -> Spectrum:
    if not isinstance(encoding, Rotary):
        raise EncodingError(f"its encoding is {type(encoding).__name__}, which has several position axes")
    if encoding.claims.decode_state == "length":
        raise EncodingError("its frequencies depend on the length of the input")
    return encoding.spectrum


def _sample(config: object) -> Int[Tensor, "1 token"]:
    """Positions from 0 to the model's declared length."""
    length = int(getattr(config, "max_position_embeddings", None) or 4096)
    return torch.linspace(0, max(length - 1, 1), min(_SAMPLES, max(length, 2))).round().long().unsqueeze(0)


def _agrees(fresh: nn.Module, table: ExactRotaryTable, positions: Tensor, kind: str | None) -> bool:
    """True if both give the same numbers up to the rounding of float32 angles."""
    theirs, ours = (_numbers(_call(x, positions, kind, torch.float32)) for x in (fresh, table))
    spectrum = table.spectra[kind]
    angles = positions.to(torch.float64).unsqueeze(-1) * torch.tensor(spectrum.frequencies, dtype=torch.float64)
    bound = spectrum.attention_scaling * torch.finfo(torch.float32).eps * (4 + 4 * angles.abs())
    bounds = _numbers(_ARRANGEMENTS[table.arrangement](bound, bound))
    return theirs.shape == ours.shape and bool(((theirs - ours).abs() <= bounds).all())


def _compare(name: str, module: nn.Module, table: ExactRotaryTable, dtype: torch.dtype) -> ReplacedRotary:
    """The errors of a module as it is in the model, and of its replacement."""
    positions = _sample(table.config)
    before, after = 0.0, 0.0
    for kind, spectrum in table.spectra.items():
        exact = _numbers(_ARRANGEMENTS[table.arrangement](*cos_sin(positions, spectrum, dtype=torch.float64)))
        theirs, ours = (_numbers(_call(x, positions, kind, dtype)) for x in (module, table))
        before = max(before, float((theirs - exact).abs().max()))
        after = max(after, float((ours - exact).abs().max()))
    return ReplacedRotary(name, int(positions.max()), dtype, before, after)


def _call(module: nn.Module, positions: Tensor, kind: str | None, dtype: torch.dtype) -> Any:
    """The cosines and sines that a module computes."""
    device = next((x.device for x in module.buffers()), torch.device("cpu"))
    arguments = (torch.zeros(1, 1, dtype=dtype, device=device), positions.to(device))
    with torch.no_grad():
        return module(*arguments) if kind is None else module(*arguments, kind)


def _numbers(found: Any) -> Tensor:
    """Cosines and sines as one float64 tensor on the CPU."""
    pair = (found.real, found.imag) if isinstance(found, Tensor) else found
    return torch.stack([x.detach().cpu().to(torch.float64) for x in pair])
